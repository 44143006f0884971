"""Programs that do all they can to outlive their end: nothing of them is left, also when the harness is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.engines import fake
from harness.metering.cpu_books import Books
from harness.metering.process_sampling import ENGINE, Processes
from harness.results import command
from harness.results.base import ResultLocation
from harness.results.redis_scan import Row, UnreadableError
from harness.services import owners, program
from harness.services.children import Child, spawn
from harness.services.owners import is_running
from harness.util.clock import Clock
from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
NASTY = Path(__file__).with_name("nasty.py")
SLEEP = "import time; time.sleep(600)"
OWNER = """
import signal, sys
from pathlib import Path
from typing import Any
from harness.services import owners
from harness.services.children import spawn
folder, nasty, kind, word = sys.argv[1:]
owners._machine = lambda: folder
spawn([sys.executable, nasty, kind, word], name="nasty", log=Path(folder) / "log")
signal.pause()
"""

pytestmark = [
    pytest.mark.usefixtures("own_machine"),
    pytest.mark.skipif(not program.has_parents(), reason="without subreapers a daemon can leave us"),
]


@pytest.fixture
def word():
    """Of this test alone. What still has it at the end is ended, so that a test that fails leaves nothing either."""
    text = uuid.uuid4().hex
    yield text
    for process in found(text):
        process.kill()


def found(word: str) -> list[psutil.Process]:
    """Our own parents have the word in their command line too, and must be gone as well."""

    def has(process: psutil.Process) -> bool:
        try:
            return word in process.cmdline() and is_running(process)
        except psutil.Error:
            return False

    return [process for process in psutil.process_iter() if process.pid != os.getpid() and has(process)]


def start(kind: str, word: str, tmp_path: Path) -> Child:
    child = spawn([sys.executable, str(NASTY), kind, word], name=kind, log=tmp_path / "log")
    wait_until(lambda: "ready" in child.tail(5), deadline_s=30, what=f"{kind} to be ready", state=child.last_words)
    return child


@pytest.mark.parametrize("kind", ["daemon", "leaver", "hopper", "breeder", "deaf", "frozen", "moved", "jailer"])
def test_nothing_of_it_is_left_after_a_kill(kind, tmp_path, word):
    child = start(kind, word, tmp_path)
    if kind == "leaver":
        wait_until(lambda: not child.alive(), deadline_s=20, what="its end")

    child.kill_group()

    assert found(word) == []
    assert child.members() == []
    assert child.returncode() == (7 if kind == "leaver" else -signal.SIGKILL)


@pytest.mark.parametrize("kind", ["daemon", "hopper", "frozen", "jailer"])
def test_nothing_of_it_is_left_after_a_stop(kind, tmp_path, word):
    child = start(kind, word, tmp_path)

    in_time = child.stop(0.5 if kind == "frozen" else 20)

    assert found(word) == []
    assert in_time is (kind != "frozen")
    assert child.returncode() == -(signal.SIGKILL if kind == "frozen" else signal.SIGTERM)


def test_a_daemon_is_a_member_that_signals_reach_and_its_parent_is_none(tmp_path, word):
    child = start("daemon", word, tmp_path)
    wait_until(lambda: len(child.members()) == 2, deadline_s=20, what="the program and its daemon")

    child.signal_group(signal.SIGSTOP)
    wait_until(
        lambda: {process.status() for process in child.members()} == {psutil.STATUS_STOPPED},
        deadline_s=20,
        what="both to be frozen",
    )
    (parent,) = [process for process in found(word) if process.pid not in {each.pid for each in child.members()}]
    assert parent.status() == psutil.STATUS_SLEEPING
    child.kill_group()
    assert found(word) == []


@pytest.mark.parametrize("kind", ["daemon", "hopper", "frozen"])
def test_nothing_outlives_a_harness_that_was_killed_and_no_sweep_is_needed(kind, tmp_path, word):
    harness = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path), str(NASTY), kind, word], cwd=ROOT)
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and "ready" in log.read_text(), deadline_s=30, what="it to be ready")
    assert len(found(word)) >= 3

    harness.kill()
    harness.wait()

    wait_until(lambda: not found(word), deadline_s=20, what="all of it to end", state=lambda: str(found(word)))


def test_what_a_frozen_parent_could_not_end_the_next_sweep_does(tmp_path, word):
    harness = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path), str(NASTY), "daemon", word], cwd=ROOT)
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and "ready" in log.read_text(), deadline_s=30, what="it to be ready")
    (parent,) = (each for each in psutil.Process(harness.pid).children())
    parent.suspend()
    harness.kill()
    harness.wait()
    assert found(word), "nobody has ended it yet"

    owners.sweep()

    assert found(word) == []


def test_whose_parent_was_killed_is_dead_too_and_that_is_said(tmp_path, word):
    child = spawn([sys.executable, str(NASTY), "orphan", word], name="orphan", log=tmp_path / "log")

    wait_until(lambda: not child.alive(), deadline_s=20, what="it to be seen dead")
    child.kill_group()

    assert found(word) == []
    assert child.returncode() == -signal.SIGKILL
    assert "ended from outside with -9" in child.note


def test_what_a_daemon_uses_is_booked_to_the_engine_and_its_parent_is_not(tmp_path, word):
    child = start("burner", word, tmp_path)
    processes, books = Processes(lambda: {ENGINE: [child.pid]}), Books()
    wait_until(lambda: len(child.members()) == 2, deadline_s=20, what="the daemon")
    members = child.members()
    seen = [each for each in processes.sample() if each.part == ENGINE]
    parent = next(each for each in seen if each.pid not in {process.pid for process in members})

    def used_s() -> float:
        return books.take(processes.sample())[ENGINE].cpu.total_s

    wait_until(
        lambda: used_s() >= 0.4, deadline_s=60, what="almost half a second of its CPU", state=lambda: str(used_s())
    )
    daemon = next(process for process in members if process.pid != child.pid)
    daemon.kill()
    wait_until(lambda: not is_running(daemon), deadline_s=20, what="the daemon's end")

    assert used_s() >= 0.4, "what the parent reaped is not lost"
    assert (parent.cpu.total_s, parent.rss_bytes) == (0.0, 0)
    child.kill_group()


def printer(tmp_path, *argv):
    """Results that a program prints."""
    manifest = replace(fake.MANIFEST, home=str(tmp_path), read=tuple(map(str, argv)))
    nothing: Any = None
    return command.Command(
        ResultLocation(
            nothing,
            nothing,
            "",
            ("name",),
            {},
            10_000,
            10_000,
            0,
            manifest,
            tmp_path / "orders",
            tmp_path / "log",
            Clock(),
        )
    )


def test_a_program_that_prints_results_leaves_nothing_either_and_is_not_waited_for(tmp_path, word):
    """The daemon of this one holds its output open."""
    script = tmp_path / "print.sh"
    script.write_text(f"#!/bin/sh\necho name,0,5\nsetsid env -i {sys.executable} -I -S -c '{SLEEP}' {word} &\n")
    script.chmod(0o700)

    rows = printer(tmp_path, script).rows()

    assert rows == [Row("name", "0", "5", "hash")]
    assert found(word) == []


def test_a_program_that_prints_results_and_does_not_end_is_ended(tmp_path, word, monkeypatch):
    monkeypatch.setattr(command, "DEADLINE_S", 0.5)

    with pytest.raises(UnreadableError, match="did not end within"):
        printer(tmp_path, sys.executable, NASTY, "daemon", word).rows()

    assert found(word) == []


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnreadableError, match="`no-such-program` must print the results, but that program does not"):
        printer(tmp_path, "no-such-program").rows()
