"""One round of a gate: what a burst cost is what was used from its begin until the engine fell idle again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.drivers import gate_side, gate_sides
from harness.drivers.gate_side import Done, Side, SideRun, Used
from harness.experiments.gating.rounds import Round
from harness.load.burst_load import Bursts, Sent
from harness.metering.counted_work import CountedWork, Totals
from harness.model import HarnessError
from harness.runner.world.real import RealWorld


class Counting:
    """Twice as much at each reading."""

    def __init__(self) -> None:
        self._commands, self.collected = 5, 0

    def collect_garbage(self) -> None:
        self.collected += 1

    def read(self, java_pids: Sequence[int], pids: Sequence[int]) -> Totals:
        self._commands *= 2
        return Totals(redis_commands=self._commands, checkpoint_bytes=100 * self._commands)


class Metered(Side):
    """Its meter reads what the test says, in order."""

    def __init__(self, readings: list[Used]) -> None:
        run = SimpleNamespace(
            spec=SimpleNamespace(tape=SimpleNamespace(partitions=2)),
            manifest=SimpleNamespace(progress=True),
            stretches=0,
            done=Done(9_500.0, 1_000),
        )
        engine = SimpleNamespace(pid=0, freeze=lambda: None, thaw=lambda: None)
        world = SimpleNamespace(engine=engine)
        run.clock = SimpleNamespace(now_ms=lambda: 9_100)
        work = cast(CountedWork, Counting())
        super().__init__("head", cast(SideRun, run), cast(RealWorld, world), work, {}, start=3)
        self._readings: Iterator[Used] = iter(readings)

    @property
    def going(self) -> bool:
        return True

    @property
    def _load(self) -> Bursts:
        load: Any = SimpleNamespace(write=lambda _: [], send=lambda _: Sent(events=400, begun_ms=9_000.0))
        return cast(Bursts, load)

    def engine_pids(self) -> list[int]:
        return []

    def _used(self) -> Used:
        used = next(self._readings)
        self._most_memory_bytes = max(self._most_memory_bytes, used.memory_bytes)
        return used


def burst(side: Side) -> Round:
    side.collect_garbage()
    sent = side.send([])
    side.wake()
    return side.round(sent)


def test_a_round_bills_the_burst_and_says_what_the_engine_used_while_it_was_idle_before():
    side = Metered(
        [
            Used(99.0, 49.0, 2.9, 7),  # its garbage is collected: idle since 0.0
            Used(100.0, 50.0, 3.0, 7),  # it begins
            Used(101.0, 54.0, 3.5, 9),  # all is done
            Used(101.5, 55.0, 3.7, 9),  # it goes on: two cores
            Used(102.0, 55.1, 3.8, 8),  # a fifth of one: idle
            Used(102.5, 55.2, 3.8, 8),  # and once more
            Used(109.0, 55.9, 3.9, 8),  # the next one is prepared
            Used(110.0, 56.0, 3.9, 8),  # it begins
            Used(111.0, 60.0, 4.0, 8),
            Used(111.5, 60.1, 4.1, 6),
            Used(112.0, 60.2, 4.1, 6),
        ]
    )

    side._settled = replace(side._settled, work=Totals(checkpoint_bytes=300))
    first, second = burst(side), burst(side)

    assert (first.side, first.start) == ("head", 3)
    assert (first.number, first.events, first.took_ms, first.at_ms) == (1, 400, 400.0, 9_000.0)
    assert (round(first.cpu_s, 6), round(first.compiling_s, 6)) == (5.2, 0.8)
    assert first.billed_ms == pytest.approx(2_500.0, abs=50), "less the moment in which it was frozen"
    assert (first.quiet_ms, second.quiet_ms) == (1_000.0, 1_000.0)
    assert (first.memory_bytes, second.memory_bytes) == (9, 8)
    assert (first.redis_commands, second.redis_commands, first.allocated_bytes) == (10, 40, None)
    assert (first.checkpoint_bytes, second.checkpoint_bytes) == (2000 - 300, 8000 - 2000), "also of the pause before"
    assert (second.number, second.idle_s) == (2, 6.5), "until its garbage was collected"
    assert round(second.idle_cpu_s, 6) == 0.6, "of 0.7 s it compiled for 0.1 s"
    assert round(second.cpu_s, 6) == 4.2
    assert second.billed_ms == pytest.approx(2_000.0, abs=50)


@pytest.mark.parametrize(
    ("window_ms", "part_ms", "step_ms"),
    [
        pytest.param(10_000, 500, 10_000, id="with a window"),
        pytest.param(10_000, 10_000, 10_000, id="a part is a window"),
        pytest.param(3_600_000, 500, 500, id="an hour is too long to wait"),
        pytest.param(1_500, 1_000, 1_000, id="sessions have no edge"),
    ],
)
def test_all_sides_begin_with_a_window(window_ms, part_ms, step_ms):
    run = SideRun.__new__(SideRun)
    run.spec, run.oracle = cast(Any, SimpleNamespace(window_ms=window_ms)), cast(Any, SimpleNamespace(part_ms=part_ms))

    assert run._epoch_step_ms == step_ms


def test_a_side_waits_for_its_epoch_before_it_can_be_sent_anything():
    log: list[str] = []

    class Waiting(SideRun):
        def __init__(self) -> None:
            self.begun = cast(Any, SimpleNamespace(set=lambda: log.append("begun")))
            self.fleet = cast(Any, SimpleNamespace(status=lambda: SimpleNamespace(finished=True)))

        def _begin_load(self) -> None:
            log.append("load")

        def _await_epoch(self) -> None:
            log.append("epoch")

        def cut(self) -> None:
            pass

        def _end_load(self) -> None:
            pass

    Waiting().load()

    assert log == ["load", "epoch", "begun"]


@pytest.mark.parametrize("later", [set(), {11}])
def test_a_thread_that_was_pinned_and_is_elsewhere_chose_so(monkeypatch, later):
    side, moves = Metered([]), iter([{11, 12}, later | {13}])
    monkeypatch.setattr(gate_side, "pin", lambda _pids, _cores: next(moves))

    assert side.pin(frozenset({1})) == ""
    told = side.pin(frozenset({1}))
    assert told == ("1 thread of the head moved to other cores, and was moved back" if later else "")


class Recorded:
    """One side that writes down what it was asked."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def send(self, _written: object) -> str:
        self.log.append(f"send {self.name}")
        if self.name == "broken":
            raise HarnessError("Kafka did not confirm.")
        return self.name

    def wake(self) -> None:
        self.log.append(f"wake {self.name}")

    def round(self, sent: str) -> str:
        self.log.append(f"round {sent}")
        return sent


def at_once(*names: str) -> list[str]:
    log: list[str] = []
    with ThreadPoolExecutor(len(names)) as pool, suppress(HarnessError):
        gate_sides._at_once(pool, [(cast(Side, Recorded(name, log)), []) for name in names])
    return log


def test_no_engine_wakes_up_before_all_bursts_are_sent():
    log = at_once("base", "head")

    assert sorted(log[:2]) == ["send base", "send head"]
    assert log[2:4] == ["wake base", "wake head"]
    assert sorted(log[4:]) == ["round base", "round head"]


def test_no_engine_stays_frozen_where_a_burst_could_not_be_sent():
    log = at_once("base", "broken")

    assert log[2:] == ["wake base", "wake broken"]


@pytest.mark.parametrize(("waited_s", "cores"), [(0.0, 0.2), (0.5, 1.2)])
def test_an_engine_that_waits_for_its_share_of_a_core_is_not_idle(waited_s, cores):
    before = Used(100.0, 50.0, 3.0, 7)
    now = Used(100.5, 50.2, 3.1, 7, waited_s=waited_s)

    assert now.cores_wanted_since(before) == pytest.approx(cores)
