"""Children and their owners, with shells instead of servers: nothing is left behind, nobody else is touched."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.model import HarnessError, Stopped
from harness.services import logs, owners, state_records
from harness.services.children import CHILD_VARIABLE, FIRST, Child, guard, spawn
from harness.services.owners import OWNER_VARIABLE, is_alive, is_dead, lease_folder, owner_mark, release_folder, sweep
from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]
# An owner that starts a child, whose own child leaves the group; both are named, then it stays until it is killed.
OWNER = """
import sys, time
from pathlib import Path
from harness.services import owners
from harness.services.children import spawn
from harness.services.owners import lease_folder
folder = Path(sys.argv[1])
owners._machine = lambda: str(folder.parent)
(lease_folder(folder / "leased") / "file").write_text("data")
spawn(["bash", "-c", "setsid sleep 600 & echo $! $$; wait"], name="test", log=folder / "log")
time.sleep(600)
"""


pytestmark = pytest.mark.usefixtures("own_machine")


def shell(script: str, tmp_path: Path) -> Child:
    return spawn(["bash", "-c", script], name="shell", log=tmp_path / "log")


def says(child: Child, word: str) -> list[str]:
    return wait_until(
        lambda: [line for line in child.tail(50) if word in line],
        deadline_s=20,
        what=f"the child to say {word}",
        state=lambda: str(child.tail(50)),
    )


def runs(pid: int) -> bool:
    try:
        return owners.is_running(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def test_a_child_has_a_session_a_mark_a_log_and_an_entry_in_the_ledger(tmp_path):
    child = shell(f"echo owner ${OWNER_VARIABLE}; echo error >&2; read || echo no input; sleep 600", tmp_path)
    says(child, "no input")
    assert child.tail(2) == ["error", "no input"]
    assert child.tail(3)[0] == f"owner {owner_mark()}"
    assert os.getsid(child.pid) == child.pid
    assert [entry.pid for _, entry in owners._entries()] == [child.pid]
    child.kill_group()
    assert not owners._entries()
    assert child.returncode() == -signal.SIGKILL


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/self/autogroup").exists(),
    reason="only root may put a session first, and only a kernel that deals out the CPU by sessions",
)
def test_a_child_that_goes_first_does_so_with_its_session_alone(tmp_path):
    first, other = (shell("echo up; sleep 600", tmp_path) for _ in range(2))
    says(first, "up")
    first.go_first()

    def share(child: Child) -> str:
        return Path(f"/proc/{child.pid}/autogroup").read_text().split("nice ")[1].strip()

    assert (share(first), share(other)) == (str(FIRST), "0")
    for child in (first, other):
        child.kill_group()


def test_stop_asks_first_and_reports_the_exit_code(tmp_path):
    child = shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done", tmp_path)
    says(child, "ready")
    assert child.stop(20)
    assert child.returncode() == 7
    assert child.tail(1) == ["bye"]


def test_stop_says_when_the_child_did_not_hear_it(tmp_path):
    child = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done", tmp_path)
    says(child, "ready")
    assert not child.stop(0.1)
    assert child.returncode() == -signal.SIGKILL


@pytest.mark.parametrize(("whole", "said"), [(False, "ready"), (True, "written")])
def test_what_came_from_a_child_may_end_by_itself_where_that_is_asked_for(tmp_path, whole, said):
    writes = "while kill -0 $$; do sleep 0.05; done 2> /dev/null; sleep 0.5; echo written"
    child = shell(f"({writes}) & echo ready; wait", tmp_path)
    says(child, "ready")

    assert child.stop(20, whole=whole)

    assert (child.tail(1), child.members()) == ([said], [])


def test_killing_a_group_takes_those_who_left_it_and_who_are_frozen(tmp_path):
    child = shell("setsid sleep 600 & sleep 600 & kill -STOP $!; echo $! ready; wait", tmp_path)
    says(child, "ready")
    members = [process.pid for process in child.members()]
    assert len(members) == 3
    child.kill_group()
    assert not any(map(runs, members))
    assert child.members() == []


def test_one_that_has_ended_before_anybody_looked_has_its_exit_code(tmp_path, monkeypatch):
    """Both lines of its parent are there at the first reading."""
    read = os.read

    def read_both(descriptor: int, size: int) -> bytes:
        text = read(descriptor, size)
        while text.startswith(b"pid") and b"end" not in text:
            text += read(descriptor, size)
        return text

    monkeypatch.setattr(os, "read", read_both)
    child = shell("sleep 600 & exit 3", tmp_path)
    monkeypatch.undo()

    assert child.returncode() == 3
    child.kill_group()


def test_a_group_outlives_its_leader_and_still_dies(tmp_path):
    child = shell("sleep 600 & exit 3", tmp_path)
    wait_until(lambda: not child.alive(), deadline_s=20, what="the leader to end")
    (survivor,) = child.members()
    child.kill_group()
    assert not runs(survivor.pid)
    assert child.returncode() == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such a process is not called a zombie")
def test_a_process_whose_first_thread_ended_is_not_dead(tmp_path):
    """It looks like a zombie, and still writes: a killed JVM does so for a moment."""
    script = (
        "import ctypes, threading, time; "
        "threading.Thread(target=lambda: (time.sleep(0.3), print('still here', flush=True), time.sleep(600))).start(); "
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    child = spawn([sys.executable, "-c", script], name="headless", log=tmp_path / "log")
    says(child, "still here")
    (member,) = child.members()
    assert member.status() == psutil.STATUS_ZOMBIE
    child.kill_group()
    assert child.returncode() == -signal.SIGKILL
    assert child.members() == []


def test_killing_one_child_leaves_another(tmp_path):
    one, other = (shell("setsid sleep 600 & wait", tmp_path) for _ in range(2))
    one.kill_group()
    assert other.alive()
    other.kill_group()


def test_a_signal_reaches_all_members(tmp_path):
    child = shell("sleep 600 & wait", tmp_path)
    wait_until(lambda: len(child.members()) == 2, deadline_s=20, what="two members")
    child.signal_group(signal.SIGSTOP)
    wait_until(
        lambda: {process.status() for process in child.members()} == {psutil.STATUS_STOPPED},
        deadline_s=20,
        what="all to be frozen",
    )
    child.kill_group()


def test_the_tail_reads_only_the_end(tmp_path):
    child = shell("true", tmp_path)
    child.kill_group()
    child.log.write_bytes(b"x" * 100 + b"\n")
    with child.log.open("r+b") as log:
        log.seek(2_000_000_000)  # a hole, so it takes no space
        log.write(b"\nlast but one \xff\nlast\n")
    assert child.tail(2) == ["last but one \ufffd", "last"]


@pytest.fixture
def short_logs(monkeypatch):
    for name, size in (("MOST_BYTES", 400_000), ("HEAD_BYTES", 100_000), ("END_BYTES", 50_000)):
        monkeypatch.setattr(logs, name, size)


def test_a_log_that_grows_without_end_keeps_its_beginning_and_its_end(tmp_path, short_logs):
    long_line = "head -c 300000 /dev/zero | tr '\\0' x"
    child = shell(f"echo first; for i in {{1..20}}; do {long_line}; echo; echo $i; done", tmp_path)
    wait_until(lambda: not child.alive(), deadline_s=60, what="the child to end")
    child.kill_group()

    said = child.log.read_bytes()
    assert len(said) <= logs.MOST_BYTES
    assert said.startswith(b"first\nxxx")
    assert said.endswith(b"x\n20\n")
    assert child.tail(1) == ["20"]
    assert child.tail(2)[0] == "x" * logs.LINE_CHARACTERS + " ..."


def test_a_log_is_cut_again_and_again_while_it_is_written(tmp_path, short_logs):
    child = shell("while :; do head -c 100000 /dev/zero | tr '\\0' x; echo; done", tmp_path)

    def cut_bytes() -> list[int]:
        found = re.findall(r"about ([\d,]+) bytes were cut out here", child.log.read_text())
        return [int(number.replace(",", "")) for number in found]

    wait_until(lambda: any(number > 2_000_000 for number in cut_bytes()), deadline_s=60, what="several cuts")
    child.kill_group()

    assert len(cut_bytes()) == 1, "one sentence, with the sum of all that was cut out"
    assert child.log.stat().st_size <= logs.MOST_BYTES


def test_the_tail_is_plain_text(tmp_path):
    child = shell("printf 'red \\e[31m\\0 \\t end\\r\\n'", tmp_path)
    wait_until(lambda: not child.alive(), deadline_s=20, what="the child to end")
    child.kill_group()

    assert child.tail(1) == ["red \ufffd[31m\ufffd \t end"]


def test_the_environment_is_the_one_given(tmp_path):
    child = spawn(["env"], name="env", log=tmp_path / "log", env={"PATH": os.environ["PATH"], "COLOUR": "red"})
    wait_until(lambda: not child.alive(), deadline_s=20, what="env to end")
    child.kill_group()
    names = {line.partition("=")[0] for line in child.tail(100)}
    assert names - {"LC_CTYPE"} == {"PATH", "COLOUR", OWNER_VARIABLE, CHILD_VARIABLE}


def test_a_program_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(HarnessError, match="fake cannot be started: the program 'no-such-program' does not exist"):
        spawn(["no-such-program"], name="fake", log=tmp_path / "log")


def test_a_child_outlives_the_thread_that_asked_for_it(tmp_path):
    born: list[Child] = []
    thread = threading.Thread(target=lambda: born.append(shell("echo ready; sleep 600", tmp_path)))
    thread.start()
    thread.join()
    says(born[0], "ready")
    assert born[0].alive()
    born[0].kill_group()


def test_the_guard_turns_sigterm_into_an_orderly_end(tmp_path):
    outside, begun = shell("sleep 600", tmp_path), list[Any]()

    def terminated() -> None:
        with guard():
            begun.extend([shell("sleep 600", tmp_path), lease_folder(tmp_path / "leased")])
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as ended:
        terminated()
    child, folder = begun
    assert ended.value.code == 128 + signal.SIGTERM
    assert not child.alive()
    assert not folder.exists()
    assert outside.alive(), "what was started outside is not the guard's"
    outside.kill_group()


def start_owner(folder: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """An owner in a process of its own, and the pids of its child and grandchild."""
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], cwd=ROOT)
    log = folder / "log"
    line = wait_until(lambda: log.exists() and log.read_text(), deadline_s=20, what="the owner's child")
    return process, [int(word) for word in str(line).split()]


def test_sweep_clears_what_a_killed_owner_left_and_nothing_of_a_living_one(tmp_path):
    dead, left = start_owner(tmp_path / "dead")
    living, kept = start_owner(tmp_path / "living")
    os.kill(psutil.Process(left[1]).ppid(), signal.SIGSTOP)  # else it has ended all below it before the sweep can
    dead.kill()
    dead.wait()
    ours = shell("sleep 600", tmp_path)
    try:
        said = sweep()
        assert not any(map(runs, left))
        assert not (tmp_path / "dead" / "leased").exists()
        assert any(f"process {left[0]} " in sentence for sentence in said)
        assert any(str(tmp_path / "dead" / "leased") in sentence for sentence in said)
        assert all(map(runs, kept))
        assert (tmp_path / "living" / "leased" / "file").read_text() == "data"
        assert ours.alive()
        assert not [sentence for sentence in sweep() if str(tmp_path) in sentence]
    finally:
        ours.kill_group()
        living.kill()
        living.wait()
        sweep()
    assert not any(map(runs, kept))


def test_two_sweeps_at_once_do_the_work_once(tmp_path):
    dead, left = start_owner(tmp_path / "dead")
    dead.kill()
    dead.wait()
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.extend(sweep())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(map(runs, left))
    assert len([sentence for sentence in said if str(tmp_path) in sentence]) == 1


def test_an_orphan_without_a_readable_environment_is_found_by_the_ledger(tmp_path):
    """redis-server overwrites its environment with its title; here the mark is taken away before the start."""
    bare = {name: value for name, value in os.environ.items() if name != OWNER_VARIABLE}
    orphan = subprocess.Popen(["sleep", "600"], env=bare)
    dead = owner_mark().replace(f"{os.getpid()}:", "4194999:", 1)
    state_records.write(owners.LEDGER, owners.Entry(dead, "redis", pid=orphan.pid, start=owners.start_of(orphan.pid)))
    sweep()
    assert orphan.wait(20) == -signal.SIGKILL


def test_a_pid_that_is_somebody_else_by_now_is_left_alone(tmp_path):
    stranger = subprocess.Popen(["sleep", "600"])
    dead = owner_mark().replace(f"{os.getpid()}:", "4194999:", 1)
    state_records.write(owners.LEDGER, owners.Entry(dead, "redis", pid=stranger.pid, start="1"))
    sweep()
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_whose_owner_is_dead_and_who_cannot_be_judged_from_here():
    pid, start, machine = owner_mark().split(":", 2)
    assert is_alive(owner_mark())
    assert not is_dead(owner_mark())
    assert is_dead(f"{pid}:{int(start) + 1}:{machine}")  # the pid was given to us later
    assert not is_dead(f"{pid}:{start}:another host")
    assert not is_dead("")
    assert not is_dead("nonsense")


def test_a_folder_that_holds_files_is_not_taken(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("data")
    with pytest.raises(HarnessError, match="already contains files"):
        lease_folder(tmp_path / "precious")
    sweep()
    assert (tmp_path / "precious" / "file").exists()


def test_a_leased_folder_is_private_and_goes_with_its_entry(tmp_path):
    folder = lease_folder(tmp_path / "a" / "b")
    assert folder.stat().st_mode & 0o777 == 0o700
    release_folder(folder)
    assert not folder.exists()
    assert not owners._entries()


def test_a_torn_entry_of_the_ledger_does_not_stop_a_sweep(tmp_path):
    """What is whole beside it is swept all the same."""
    (state_records.folder(owners.LEDGER) / "torn.json").write_text('{"owner": "1')
    (tmp_path / "left").mkdir()
    dead = owner_mark().replace(f"{os.getpid()}:", "4194999:", 1)
    state_records.write(owners.LEDGER, owners.Entry(dead, "a folder", folder=str(tmp_path / "left")))

    said = sweep()

    assert [sentence for sentence in said if str(tmp_path) in sentence] == [
        f"Deleted {tmp_path / 'left'}, which a dead run left behind."
    ]
    assert not (tmp_path / "left").exists()


def test_who_stops_the_program_while_its_children_are_ended_does_not_save_them(tmp_path, monkeypatch):
    """A Ctrl-C in the middle of the guard's own end."""
    end, begun = Child.kill_group, []

    def disturbed(child: Child) -> None:
        begun.append(child)
        if len(begun) == 1:
            raise Stopped(signal.SIGINT)
        end(child)

    monkeypatch.setattr(Child, "kill_group", disturbed)
    with pytest.raises(Stopped), guard():
        child = spawn(["sleep", "600"], name="sleeper", log=tmp_path / "log")

    assert len(begun) == 2
    assert not child.alive()
