"""What a JVM's compilers use is told apart by the names of their threads."""

from __future__ import annotations

import pytest

from harness.host import cpu_starvation
from harness.metering import jit_time
from harness.metering.jit_time import Compilers


@pytest.fixture
def threads(tmp_path, monkeypatch):
    """Makes the threads of process 7, as the kernel shows them."""
    for module in (jit_time, cpu_starvation):
        monkeypatch.setattr(module, "PROC", tmp_path)

    def make(**names):
        for number, (name, ran_ns) in names.items():
            thread = tmp_path / "7" / "task" / number.lstrip("t")
            thread.mkdir(parents=True, exist_ok=True)
            (thread / "comm").write_text(f"{name}\n")
            (thread / "schedstat").write_text(f"{ran_ns} 1 2\n")
        return tmp_path / "7" / "task"

    return make


def test_only_threads_that_compile_are_billed(threads):
    threads(t8=("C2 CompilerThre", 2_000_000_000), t9=("C1 CompilerThre", 500_000_000), t10=("Executor task l", 9**12))

    assert Compilers().take_s([7]) == pytest.approx(2.5)


def test_waiting_for_a_core_is_known_of_the_others(threads):
    place, seen = threads(t8=("C2 CompilerThre", 2), t9=("Executor task l", 3)), Compilers()
    (place / "8" / "schedstat").write_text("2 7000000000 2\n")
    (place / "9" / "schedstat").write_text("3 1500000000 2\n")
    seen.take_s([7])

    assert seen.others_waited_s == pytest.approx(1.5)


def test_a_thread_that_has_ended_keeps_what_it_had_used(threads):
    """HotSpot ends the compilers that have nothing to do."""
    seen, place = Compilers(), threads(t8=("C2 CompilerThre", 2_000_000_000))
    seen.take_s([7])
    (place / "8").rename(place / "gone")
    threads(t11=("C2 CompilerThre", 1_000_000_000))

    assert seen.take_s([7]) == pytest.approx(3.0)


def test_processes_that_are_gone_or_no_jvm_have_none(threads):
    threads(t8=("python", 10**9))

    assert Compilers().take_s([7, 8]) == 0.0
