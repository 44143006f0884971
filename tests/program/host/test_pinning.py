"""Processes on cores: who is put where, who can't be, and who gets away."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness.host import pinning
from harness.services.children import spawn
from harness.util.wait import wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system can't pin a process")

THREADS = 5
JOB = f"""
import sys, threading
for _ in range({THREADS}):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("up", flush=True)
for line in sys.stdin:
    import os
    os.sched_setaffinity(0, {{int(line)}})
    print("moved", flush=True)
"""


@pytest.fixture
def job() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


def test_each_half_of_the_cores_is_somebodys(monkeypatch):
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    for cores, shared in (({0, 1}, {1}), ({2, 5, 7, 9}, {7, 9}), ({0, 1, 2}, {1, 2})):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        placed = pinning.placement()

        assert (placed.reason, set(placed.shared), set(placed.all)) == ("", shared, cores)
        assert not placed.shared & placed.others


def test_one_core_alone_is_shared_by_all(monkeypatch):
    """As a control group leaves it (cpuset)."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)

    assert pinning.placement().reason == "there is only one core"
    assert "one after the other" in pinning.placement().words


def test_a_system_that_lets_nobody_pin_is_told(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)

    assert pinning.placement().reason == "the system refuses to pin: Operation not permitted"
    monkeypatch.delattr(os, "sched_setaffinity")
    assert pinning.placement().reason == "this system can't pin a process to a core"


def test_all_threads_of_a_process_are_moved_once(job):
    threads = pinning.threads(job.pid)
    core = frozenset({min(os.sched_getaffinity(0))})

    assert len(threads) == THREADS + 1
    moved = pinning.pin([job.pid], core)
    if len(os.sched_getaffinity(0)) > 1:
        assert moved == threads
    assert {frozenset(os.sched_getaffinity(thread)) for thread in threads} == {core}
    assert pinning.pin([job.pid], core) == set()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="it takes two cores")
def test_a_thread_that_pins_itself_is_put_back_and_told(job):
    first, second, *_ = sorted(os.sched_getaffinity(0))
    pinning.pin([job.pid], frozenset({first}))
    job.stdin.write(f"{second}\n")
    job.stdin.flush()
    assert job.stdout.readline() == "moved\n"

    assert pinning.pin([job.pid], frozenset({first})) == {job.pid}
    assert os.sched_getaffinity(job.pid) == {first}


def test_a_child_is_born_on_its_cores_and_we_stay_on_ours(tmp_path):
    before = os.sched_getaffinity(0)
    (core,) = pinning.last(1)

    child = spawn(
        [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0), flush=True)"],
        name="pinned",
        log=tmp_path / "pinned.log",
        cores=frozenset({core}),
    )
    wait_until(lambda: not child.alive(), deadline_s=20, what="its end")
    child.kill_group()

    assert child.tail(1) == [str(core)]
    assert core == max(before)
    assert os.sched_getaffinity(0) == before


def test_no_number_of_cores_is_all_of_them():
    assert pinning.last(0) == frozenset()
    assert pinning.impossible(0) == ""
    assert pinning.impossible(5000).startswith("this process may use ")


def test_a_process_that_has_ended_is_nowhere(job):
    job.kill()
    wait_until(lambda: job.poll() is not None, deadline_s=20, what="its end")

    assert pinning.pin([job.pid], frozenset({0})) == set()
