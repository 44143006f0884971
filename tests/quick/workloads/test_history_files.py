"""The older part of a topic as files: cut by time, byte for byte, and what is wrong with files is found."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.kafka_log import recount
from harness.model import KafkaAddress, Segment
from harness.runner.world.history_files import STRETCHES, HistoryFiles, Moments, as_lines, cuts, seam_of
from harness.services import kafka
from tests.quick.cases import SPEC
from tests.quick.spoiled import ENDS, EVENT, SPOILED, named, spoil, write_files
from workloads.base import BESIDE, COUNTS, NO_EVENT
from workloads.jobs.history_files import files_of, wrong_with

FIELDS = ("ad_id", "event_type", "event_time")
UNTIL_MS, HISTORY_MS = 1_750_000_060_000, 60_000


TAPE = replace(SPEC.tape, warm_up=(Segment(90_000, 1, 1),), waits=True, history_ms=HISTORY_MS)
MOMENTS = Moments(TAPE, UNTIL_MS)


def columns(times_ms, kinds=None):
    return {"kind": np.array(kinds or [COUNTS] * len(times_ms)), "event_time_ms": np.array(times_ms, dtype=np.int64)}


@given(st.lists(st.integers(0, 50), max_size=60), st.lists(st.integers(-5, 60), min_size=1, max_size=6))
def test_a_cut_lies_before_the_first_event_that_reaches_its_moment(times_ms, moments_ms):
    for cut, moment_ms in zip(cuts(columns(times_ms), np.array(moments_ms)), moments_ms, strict=True):
        assert all(time_ms < moment_ms for time_ms in times_ms[:cut])
        assert cut == len(times_ms) or times_ms[cut] >= moment_ms


def test_what_is_no_event_has_no_time():
    assert cuts(columns([1, 99, 5, 7], [COUNTS, NO_EVENT, BESIDE, COUNTS]), np.array([6])) == [3]


def test_a_seam_by_time_lies_where_both_have_all():
    """Of what is out of order by less than they overlap, nothing is in neither."""
    times_ms = [UNTIL_MS - 60_000 + 100 * n - (5000 if n % 7 == 0 else 0) for n in range(800)]
    seam = seam_of([columns(times_ms)], MOMENTS, "time")

    assert seam.until_ms == UNTIL_MS - 15_000
    in_files, in_kafka = times_ms[: seam.ends[0]], times_ms[seam.begins[0] :]
    counted = [time for time in in_files if time < seam.until_ms] + [time for time in in_kafka if time >= seam.until_ms]
    assert sorted(counted) == sorted(times_ms)
    assert seam_of([columns(times_ms)], MOMENTS, "offset").until_ms is None


def test_the_stretches_end_where_the_history_does():
    assert MOMENTS.stretches_ms[-1] == UNTIL_MS
    assert all(later - earlier == HISTORY_MS // STRETCHES for earlier, later in pairwise(MOMENTS.stretches_ms.tolist()))
    assert set(MOMENTS.days) == {"2025-06-15"}


class Kept:
    """A log of which records are taken out."""

    def __init__(self):
        self.below = None

    def keep(self, below, done):
        assert below == done
        self.below = below


class Codec:
    def read(self, values, _ids):
        times = [int(bytes(value).split(b'"')[11]) if value else 0 for value in values]
        return columns(times, [COUNTS if time else NO_EVENT for time in times])


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Two partitions of 80 s in steps of 100 ms; each seventh record of the first one has no value."""
    logs = [
        [None if p == 0 and n % 7 == 0 else EVENT % (UNTIL_MS - 60_000 + 100 * n) for n in range(800)] for p in (0, 1)
    ]
    folder, log, deleted = tmp_path / "history", Kept(), list[object]()
    folder.mkdir()
    monkeypatch.setattr(kafka, "delete_records", lambda *args: deleted.append(args[-1]))
    monkeypatch.setattr(kafka, "end_offsets", lambda *_: {0: 800, 1: 800})
    monkeypatch.setattr(recount, "read_values", lambda *_: logs)
    made: Any = HistoryFiles
    found = made(KafkaAddress("nowhere"), "topic", log, Codec(), folder).move(MOMENTS, "offset")
    assert deleted == [log.below]
    return folder, found.seam, logs


def test_files_hold_what_kafka_held_byte_for_byte_and_their_age_is_their_order(moved):
    folder, seam, logs = moved
    paths = sorted(files_of(folder), key=lambda path: (path.stat().st_mtime, path.name))
    held = {0: b"", 1: b""}
    for path in paths:
        content = path.read_bytes()
        held[named(path).partition] += gzip.decompress(content) if path.suffix == ".gz" else content

    assert seam.ends == (600, 600)
    assert seam.begins == (450, 450)
    assert {p: logs[p][: seam.ends[p]] for p in held} == {
        p: [line or None for line in text.split(b"\n")[:-1]] for p, text in held.items()
    }
    assert {path.suffix for path in paths} == {".gz", ".json"}
    assert {path.parent.name for path in paths} == {"2025-06-15"}


def test_what_was_moved_can_be_counted(moved):
    folder, seam, _ = moved

    assert wrong_with(folder, dict(enumerate(seam.ends)), FIELDS) == []


@pytest.mark.parametrize(("how", "said"), SPOILED)
def test_what_is_wrong_with_files_is_said(tmp_path, how, said):
    folder = tmp_path / "history"
    write_files(folder)
    assert wrong_with(folder, dict(enumerate(ENDS)), FIELDS) == []
    spoil(folder, how)
    wrong = wrong_with(folder, dict(enumerate(ENDS)), FIELDS)

    assert any(said in each for each in wrong), wrong


def test_a_backlog_is_what_no_file_has():
    assert (TAPE.backlog_ms, TAPE.history_kept_ms, TAPE.warmed_ms) == (30_000, 15_000, 0)


def test_a_record_without_a_value_is_an_empty_line():
    assert as_lines([b"a", None], packed=False) == b"a\n\n"
    assert gzip.decompress(as_lines([b"a", None], packed=True)) == b"a\n\n"
