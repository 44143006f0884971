"""What is a burst, and what one did: loads and latencies whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from generators.profiles import PROFILES
from generators.tape import offered_by
from harness.measuring import backlog_catch_up, bursting
from harness.measuring.bursting import Checkpointing, Seen, area, back, borne, longest_between, steady_band
from harness.measuring.latency.ways import Raw, Raws
from harness.measuring.measurement import Lack, Quantity
from harness.measuring.surges import Surge, surges
from harness.model import Segment, Spell
from reports.sections import bursts as words
from tests.quick.cases import SPEC

BAND = Quantity(100.0)
BURST = Surge(from_s=20.0, until_s=30.0, rate_per_s=1000.0, before_per_s=100.0, steady_s=0.0)
SPELL = Spell("burst", 20_000, 30_000, factor=5.0)
NONE = (np.empty(0), np.empty(0))


def flat(*stretches: tuple[int, float]) -> tuple[Segment, ...]:
    return tuple(Segment(seconds * 1000, rate, rate) for seconds, rate in stretches)


def latency(after_s: int = 0, high_ms: float = 5000.0, seconds: int = 60) -> np.ndarray:
    """Of steady 50 ms, and high in the burst and for so long after it."""
    at_s = np.arange(seconds)
    return np.where((at_s >= 20) & (at_s < 30 + after_s), high_ms, 50.0)


def events(p99_ms: np.ndarray) -> Raws:
    """Two a second, as late as all of it."""
    due_us = np.arange(2 * len(p99_ms), dtype=np.int64) * 500_000
    return Raws.of(Raw(due_us, np.repeat(p99_ms, 2), None), Path(gettempdir()))


def seen(p99_ms: np.ndarray) -> Seen:
    at_s = np.arange(60.0)
    return Seen(
        load_s=60.0,
        p99_ms=p99_ms,
        largest_ms=2 * p99_ms,
        backlog=np.where((at_s >= 20) & (at_s < 35), 700.0, 10.0),
        events=events(p99_ms),
        memory=(at_s, 500.0 + at_s),
        checkpoint=NONE,
        commits_s=np.array([0.0, 10.0, 19.0, 31.0, 33.0, 59.0]),
    )


def test_a_burst_is_where_the_rate_rises_to_twice_what_it_was_until_it_is_below_that():
    found = surges(flat((20, 100.0), (5, 100.0), (4, 200.0), (6, 900.0), (3, 200.0), (30, 199.0)))

    assert found == (Surge(25.0, 38.0, 900.0, 100.0, 0.0),)


@pytest.mark.parametrize(
    "segments",
    [
        flat((60, 100.0)),
        flat((20, 100.0), (10, 199.0), (30, 100.0)),
        PROFILES["steps"](1000.0, 60_000),
        PROFILES["ramp"](1000.0, 60_000),
        PROFILES["pause-and-drain"](1000.0, 60_000),
        PROFILES["square"](1000.0, 60_000),
    ],
)
def test_what_rises_by_less_for_ever_or_from_nothing_is_none(segments):
    assert surges(segments) == ()


def test_a_square_wave_has_one_for_each_high():
    found = surges(PROFILES["burst"](100.0, 90_000, factor=10.0, burst_ms=10_000, count=4))

    assert [(each.from_s, each.until_s) for each in found] == [(10, 20), (30, 40), (50, 60), (70, 80)]
    assert {(each.rate_per_s, each.before_per_s, each.until_s - each.steady_s) for each in found} == {(1000, 100, 20)}


def test_one_that_a_fault_makes_is_a_burst_like_any_other():
    (found,) = surges(offered_by(replace(SPEC.tape, profile=flat((60, 100.0)), spells=(SPELL,))))

    assert (found.from_s, found.until_s, found.rate_per_s) == (20.0, 30.0, 500.0)


@pytest.mark.parametrize("after_s", [0, 1, 7, 24, 25])
def test_it_is_back_at_the_first_second_from_which_on_it_is_in_the_band(after_s):
    assert back(latency(after_s), BURST, 60.0, BAND, last=True).value == after_s


def test_a_second_that_is_good_by_chance_is_not_the_end_of_it():
    values = latency(15)
    values[32:36] = 50

    assert back(values, BURST, 60.0, BAND, last=True).value == 15


@pytest.mark.parametrize(
    ("after_s", "next_s", "last", "note"),
    [(26, 60.0, True, "not in the 30 s until the load ended"), (30, 50.0, False, "not in the 20 s until the next")],
)
def test_one_that_had_the_time_and_did_not_come_back_never_did(after_s, next_s, last, note):
    found = back(latency(after_s), BURST, next_s, BAND, last=last)

    assert (found.value, found.lack) == (None, Lack.NEVER)
    assert note in found.note


def test_when_the_next_burst_comes_too_soon_nobody_knows():
    found = back(latency(), BURST, 34.0, BAND, last=False)

    assert (found.value, found.lack) == (None, Lack.UNKNOWN)
    assert "4 s later the next burst began" in found.note


def test_one_that_never_left_the_band_says_so():
    found = back(latency(high_ms=100.0), BURST, 60.0, BAND, last=True)

    assert (found.value, found.note) == (0.0, "it never left the band")


def test_the_area_is_what_each_event_was_later_than_the_band_allows():
    """Of 20 events in the burst and 4 after it, each by 4.9 s."""
    found = area(events(latency(2)), 20.0, 60.0, BAND)

    assert found.value == pytest.approx(24 * 4.9)
    assert found.note == "of 80 events that count, 24 were above the band"
    assert area(events(latency(2)), 32.0, 60.0, BAND).value == 0.0


def test_an_event_that_was_never_seen_has_no_area():
    p99_ms = latency()
    p99_ms[25] = np.inf
    late = events(p99_ms)

    assert area(late, 20.0, 60.0, BAND).lack is Lack.NO_END
    assert area(late, 0.0, 20.0, BAND).value == 0.0


@pytest.mark.parametrize("missing", [None, events(np.empty(0))])
def test_without_events_there_is_no_area(missing):
    assert area(missing, 20.0, 60.0, BAND).lack is Lack.UNKNOWN


def test_the_band_is_that_of_the_steady_seconds_before_the_first_burst():
    values = latency()
    values[3:8] = 90

    assert steady_band(BURST, values).value == 100.0, "twice the median"
    assert steady_band(replace(BURST, steady_s=8.0), values).value == 100.0
    values[:12] = 5000.0
    assert steady_band(replace(BURST, steady_s=8.0), values).value == 200.0, "at most four times"


@pytest.mark.parametrize(
    ("first", "p99_ms", "note"),
    [
        (BURST, None, "latency was not measured"),
        (replace(BURST, steady_s=10.5), latency(), "9 s of steady load before the first burst are too few"),
        (BURST, np.full(60, np.nan), "nothing was due"),
        (BURST, np.full(60, 10_001.0), "latency of up to 10.0 s in the 20 s before it is not steady"),
    ],
)
def test_without_a_band_nothing_is_known_and_it_says_why(first, p99_ms, note):
    found = steady_band(first, p99_ms)

    assert (found.value, found.lack) == (None, Lack.UNKNOWN)
    assert note in found.note
    for each in (back(p99_ms, first, 60.0, found, last=True), area(events(latency()), 20.0, 60.0, found)):
        assert (each.value, each.lack) == (None, Lack.UNKNOWN)
        assert note in each.note


def test_before_in_and_after_a_burst_the_largest_of_each_figure_is_told():
    found = borne([BURST], seen(latency(3)))
    (burst,), stretches = found.bursts, {each.name: each.figures for each in found.stretches}

    assert (burst.times, burst.back.value) == (10.0, 3.0)
    assert [each.until_s for each in found.stretches] == [20.0, 30.0, 60.0]
    assert [stretches[name]["latency_ms"].value for name in ("before", "burst", "after")] == [100, 10_000, 10_000]
    assert [stretches[name]["backlog"].value for name in ("before", "burst", "after")] == [10, 700, 700]
    assert [stretches[name]["memory_mib"].value for name in ("before", "burst", "after")] == [519, 529, 559]
    assert [stretches[name]["commits_s"].value for name in ("before", "burst", "after")] == [12, 12, 26]
    assert {stretches[name]["checkpoint_mib"].lack for name in stretches} == {Lack.UNKNOWN}
    told = [words.told(name, stretches["after"][name]) for name in ("latency_ms", "backlog", "memory_mib", "commits_s")]
    assert told == ["10,000 ms", "700 events", "559 MiB", "26.0 s"]
    assert "checkpoint: it has no folder on this machine" in words.reasons(found)


def test_each_part_of_the_load_has_the_checkpoints_that_were_running_in_it():
    told = Checkpointing(np.array([5.0, 25.0]), np.array([6.0, 33.0]), np.array([10.0, 700.0]))
    found = borne([BURST], replace(seen(latency(3)), checkpoints=told)).stretches

    assert [each.figures["checkpointing_ms"].value for each in found] == [1000, 8000, 8000]
    assert [each.figures["in_flight_kib"].value for each in found] == [10, 700, 700]


def test_the_largest_figure_is_that_of_the_seconds_in_which_it_is_known():
    values = latency(3)
    values[[5, 22]] = np.nan
    stretches = {each.name: each.figures for each in borne([BURST], seen(values)).stretches}

    assert [stretches[name]["latency_ms"].value for name in ("before", "burst", "after")] == [100, 10_000, 10_000]
    values[:20] = np.nan
    assert borne([BURST], seen(values)).stretches[0].figures["latency_ms"].lack is Lack.UNKNOWN


def test_of_several_bursts_each_has_what_came_until_the_next_one():
    second = replace(BURST, from_s=40.0, until_s=50.0)
    values = latency(3)
    values[40:55] = 5000.0
    found = borne([BURST, second], seen(values))

    assert [each.back.value for each in found.bursts] == [3.0, 5.0]
    assert [each.area.value for each in found.bursts] == pytest.approx([26 * 4.9, 30 * 4.9])
    assert [each.name for each in found.stretches] == ["before", "burst 1", "after 1", "burst 2", "after 2"]


def test_a_commit_that_takes_longer_than_a_burst_is_the_longest_in_it():
    assert longest_between(np.array([5.0, 50.0, 51.0]), 20.0, 30.0).value == 45.0
    assert longest_between(np.array([50.0, 5.0, 51.0]), 20.0, 30.0).value == 45.0, "a crash may leave them out of order"
    assert longest_between(np.array([5.0]), 20.0, 30.0).lack is Lack.UNKNOWN


def test_memory_is_that_of_the_engine_and_its_workers_and_of_a_run_elsewhere_nothing_is_known():
    table = pa.table(
        {
            "at_ms": [1000, 1000, 1000, 2000],
            "part": ["engine", "python workers", "kafka", "engine"],
            "rss_bytes": [3 << 20, 2 << 20, 9 << 20, 7 << 20],
        }
    )
    at_s, mib = bursting._memory(table, 0)

    assert (at_s.tolist(), mib.tolist()) == ([1.0, 2.0], [5.0, 7.0])
    for nothing in (bursting._memory(None, 0), bursting._checkpoint(None, 0)):
        assert [len(each) for each in nothing] == [0, 0]


def test_a_checkpoint_that_ended_when_a_part_began_did_not_run_in_it():
    told = Checkpointing(np.array([19.0, 30.0]), np.array([20.0, 31.0]), np.array([10.0, 10.0]))

    assert told.under_way(0.0, 20.0).tolist() == [True, False]
    assert told.under_way(20.0, 30.0).tolist() == [False, False]


def test_checkpoints_lie_in_the_seconds_of_the_load():
    told = (SimpleNamespace(at_ms=5000, took_ms=1500, in_flight_bytes=2048),)
    run: Any = SimpleNamespace(checkpoints=told, epoch_ms=1000)
    found = bursting.checkpointing(run)

    assert found is not None
    assert (found.begun_s.tolist(), found.ended_s.tolist(), found.in_flight_kib.tolist()) == ([4.0], [5.5], [2.0])


@pytest.mark.parametrize("rows", [None, 0, 2])
def test_the_latency_of_each_second_is_known_if_any_was_measured(monkeypatch, rows):
    """The other figures are read of files of their own."""
    table = pa.table({"second": [0, 7], "p99_ms": [20.0, None], "max_ms": [30.0, None]})
    parts = {"Lines": None, "by_rank": None, "resources_of": None, "checkpointing": None, "progress_lines": ()}
    for name, part in parts.items():
        monkeypatch.setattr(bursting, name, lambda _, part=part: part)
    monkeypatch.setattr(bursting, "_table", lambda *_: None)
    monkeypatch.setattr(backlog_catch_up, "to_do", lambda _lines, seconds: np.zeros(seconds))
    tape = SimpleNamespace(load_ms=60_500)
    run: Any = SimpleNamespace(spec=SimpleNamespace(tape=tape), epoch_ms=1000, store=None)
    found = bursting.seen(run, None if rows is None else table.slice(0, rows))

    assert (found.load_s, found.backlog is not None and len(found.backlog)) == (60.5, 60)
    if not rows:
        assert (found.p99_ms, found.largest_ms) == (None, None)
    else:
        assert found.p99_ms is not None
        assert found.largest_ms is not None
        assert [len(found.p99_ms), found.p99_ms[0], found.largest_ms[0], found.p99_ms[7]] == [60, 20.0, 30.0, np.inf]
        assert np.isnan(found.p99_ms[1])
