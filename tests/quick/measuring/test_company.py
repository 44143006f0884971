"""What another reader of the results costs: turns whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from harness.measuring.company import WORDS, cost, figures, is_steady, spans_of
from harness.measuring.latency.ways import Raw, Raws
from harness.measuring.measurement import Company, Lack, Quantity, Turn
from harness.model import Segment
from reports.sections import company as words

EPOCH_MS = 1_750_000_000_000
READ_S = [(10.0, 10.5, 20.5), (30.5, 31.0, 41.0), (51.0, 51.2, 61.2)]


def turns(times: float = 1.0, drift: float = 0.0) -> tuple[Turn, ...]:
    """Figures of 100 and more; with a reader so many times as much."""
    spans = enumerate(spans_of(READ_S, 80.0))
    return tuple(
        Turn(reads, *span, dict.fromkeys(WORDS, (100 + drift * i) * (times if reads else 1)))
        for i, (reads, span) in spans
    )


def test_a_turn_begins_when_the_reader_is_answered_and_the_next_when_it_has_gone():
    assert [*spans_of(READ_S[:2], 50.0)] == [
        (False, (0.0, 10.0)),
        (True, (10.5, 20.5)),
        (False, (20.5, 30.5)),
        (True, (31.0, 41.0)),
        (False, (41.0, 50.0)),
    ]


@pytest.mark.parametrize("drift", [0.0, 20.0])
def test_what_a_reader_costs_is_found_and_what_changes_by_itself_is_not_put_down_to_it(drift):
    """Planted: one that makes all of it a quarter more."""
    found = cost("latency_p99_ms", turns(1.25, drift))

    assert found.value == pytest.approx(1.25)
    assert found.note == "1.25 to 1.25 in 3 turns"
    assert cost("latency_p99_ms", turns(1.0, drift)).value == pytest.approx(1.0)


def test_few_turns_and_turns_of_which_nothing_is_known_say_nothing():
    known = turns()
    found = cost("engine_cores", known[:5])
    without = [replace(each, figures={**each.figures, "engine_cores": None}) for each in known]

    assert (found.value, found.lack) == (None, Lack.UNKNOWN)
    assert "only 2 turns between two without a reader can be compared, and 3 are needed" in found.note
    assert cost("engine_cores", without).lack is Lack.UNKNOWN
    assert cost("latency_p50_ms", without).value == pytest.approx(1.0)


def test_only_a_steady_load_can_be_compared_with_itself():
    assert is_steady((Segment(1000, 50.0, 50.0), Segment(9000, 50.0, 50.0)))
    assert not is_steady((Segment(1000, 50.0, 50.0), Segment(9000, 50.0, 60.0)))


def test_the_first_seconds_of_a_turn_are_left_out(tmp_path):
    """From 10 s on each event takes 300 ms and the engine half a core; before, and until 12 s, far more."""
    at_s = np.arange(0.0, 30.0, 0.5)
    due_us = ((EPOCH_MS / 1000 + at_s) * 1e6).astype(np.int64)
    events = Raws.of(Raw(due_us, np.where(at_s < 12, 9000.0, 300.0), None), tmp_path)
    second = np.arange(0, 30)
    used_s = np.where(second < 12, 5.0 * second, 60 + 0.5 * (second - 12))
    resources = pa.table(
        {
            "at_ms": EPOCH_MS + second * 1000,
            "part": ["engine"] * 30,
            "cpu_user_s": used_s,
            "cpu_system_s": np.zeros(30),
            "rss_bytes": second,
        }
    )
    found = figures(events, resources, EPOCH_MS, 10.0, 20.0)

    assert (found["latency_p50_ms"], found["latency_p99_ms"]) == (300, 300)
    assert found["engine_cores"] == pytest.approx(0.5)
    assert found["redis_cores"] is None, "it ran elsewhere"
    assert set(figures(events, resources, EPOCH_MS, 10.0, 14.0).values()) == {None}, "too short"
    assert set(figures(None, None, EPOCH_MS, 10.0, 20.0).values()) == {None}


def test_it_is_said_in_a_sentence_and_in_rows():
    known = turns(1.25)
    found = Company(known, {name: cost(name, known) for name in WORDS})

    assert "latency p99 1.25 (1.25 to 1.25 in 3 turns)" in words.in_words(found)
    assert [row[0] for row in words.rows(found)] == [*(["without", "with"] * 3), "without", "with / without"]
    unknown = Company(known, dict.fromkeys(WORDS, Quantity(None, "the load is not steady", lack=Lack.UNKNOWN)))
    assert words.in_words(unknown) == "its cost is not known: the load is not steady"
