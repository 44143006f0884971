"""Streaming ETL: the expected rows are those of a plain reading of the records."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from generators.disorder import PRESETS
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.ledger import Ledger
from harness.evidence.observed import folded
from harness.judging.lateness import CountedLog
from harness.model import TapeSpec
from harness.results.parquet import committed
from harness.selftest import by_hand
from tests.quick.tapes import specs
from tests.quick.workloads.test_oracle import EPOCH_MS, log_of, messages_of
from workloads.ad_impressions.schema import population_of
from workloads.base import Kind
from workloads.etl.jobs import reference
from workloads.etl.oracle import CAMPAIGN, HOUR, ROWS, TIME, TYPE
from workloads.registry import codec_of, oracle_of
from workloads.text_values import text_value

DIRTY = replace(PRESETS["storm"], poison_share=0.1)
TAPE = TapeSpec(5, steady(300, 4000), 3, 20, 2, 20, 10, DIRTY, workload="etl")


def rows_slowly(spec: TapeSpec, hour_ms: int) -> Counter[tuple[str, str, object]]:
    """Clean each record by Python's JSON: how often each event has each value."""
    ads, found = population_of(spec).ad_to_campaign, Counter[tuple[str, str, object]]()
    for _, value, key in messages_of(spec):
        try:
            event = json.loads((value or b"").decode())
            row = {CAMPAIGN: ads[event["ad_id"]], TIME: int(event["event_time"]), TYPE: event["event_type"]}
        except (ValueError, KeyError):
            continue
        row |= {HOUR: row[TIME] // hour_ms * hour_ms, ROWS: "one"}
        found.update((name, f"event {int(key, 16):012x}", each) for name, each in row.items())
    return found


def as_named(rows: Counter[tuple[str, str, object]]) -> dict[str, int]:
    return {
        f"{name} of {event}": times
        if name == ROWS
        else text_value(value)
        if isinstance(value, str)
        else int(str(value))
        for (name, event, value), times in rows.items()
    }


def named(ledger: Ledger, oracle) -> dict[str, int]:
    return {oracle.name(cell, EPOCH_MS): value for cell, value in ledger.items()}


@given(specs())
def test_both_routes_give_the_rows_of_a_plain_reading(spec):
    spec = replace(spec, workload="etl", probes=0, checksum=False)
    run = replace(by_hand.SPEC, tape=spec)
    oracle = oracle_of(run)
    expected = as_named(rows_slowly(spec, run.window_ms))

    assert named(Ledger.of(oracle.settle(oracle.plan(Schedule(spec).blocks(77)), EPOCH_MS)), oracle) == expected
    counted = CountedLog(log_of(spec, messages_of(spec)), None, run, oracle, codec_of(spec)).whole
    assert named(folded(oracle, counted.events), oracle) == expected


def test_dirty_records_are_no_rows_and_clicks_are():
    rows = rows_slowly(TAPE, 10_000)
    types = {value for name, _, value in rows if name == TYPE}
    poison = sum(int(np.count_nonzero(block.poison)) for block in Schedule(TAPE).blocks())

    assert types == {"view", "click", "purchase"}
    assert poison > 50
    assert sum(times for (name, _, _), times in rows.items() if name == ROWS) == len(messages_of(TAPE)) - poison


def test_no_event_is_too_late_for_its_row():
    oracle, log = oracle_of(replace(by_hand.SPEC, tape=TAPE)), log_of(TAPE, messages_of(TAPE))
    counted = CountedLog(log, None, replace(by_hand.SPEC, tape=TAPE), oracle, codec_of(TAPE)).whole

    assert not counted.permitted.any()
    assert {value.kind for value in oracle.values} == {Kind.COUNT, Kind.PER_EVENT}


HOUR_MS = 10_000
ROW_1, ROW_2, ROW_3 = (reference.CleanRow(n, 20_000 + 5_000 * n, "c", "view") for n in range(3))


def test_a_batch_of_the_reference_job_is_there_when_its_list_is(tmp_path):
    table = reference.Table(tmp_path, HOUR_MS)
    assert table.done() == (0, {})
    table.commit(0, [ROW_1, ROW_2, ROW_3], {0: 2, 1: 1})
    reference.Table(tmp_path, HOUR_MS)._write(1, 20_000, [ROW_1])  # and a crash before the list

    assert reference.Table(tmp_path, HOUR_MS).done() == (1, {0: 2, 1: 1})
    files = [Path(name).relative_to(tmp_path) for name in committed(tmp_path / "_spark_metadata")]
    hours = "hour=1970-01-01 00%3A00%3A20", "hour=1970-01-01 00%3A00%3A30"
    assert files == [Path(hour, "batch-000000.parquet") for hour in hours]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{",
        b"[]",
        b'{"ad_id": "a", "event_type": "view"}',
        b'{"ad_id": "a", "event_type": null, "event_time": "1"}',
        b'{"ad_id": "a", "event_type": "view", "event_time": "yesterday"}',
        b'{"ad_id": "b", "event_type": "view", "event_time": "1"}',
        b'{"ad_id": "\xff", "event_type": "view", "event_time": "1"}',
    ],
)
def test_a_dirty_record_is_dropped(value):
    assert reference.cleaned(b"1f", value, {"a": "c"}) is None


def test_a_clean_record_is_a_row():
    value = b'{"event_time": "7", "more": 1, "ad_id": "a", "event_type": "view"}'

    assert reference.cleaned(b"1f", value, {"a": "c"}) == (31, 7, "c", "view")


class Records:
    """A consumer of these records, of partition 0."""

    def __init__(self, stopped: Any, values: list[bytes]) -> None:
        self._stopped, self._values = stopped, values
        self.closed = False

    def consume(self, most: int, wait_s: float) -> list[Any]:
        self._stopped.set()  # after this turn
        return [Record(offset, value) for offset, value in enumerate(self._values)]

    def close(self) -> None:
        self.closed = True


class Record:
    def __init__(self, offset: int, value: bytes) -> None:
        self._offset, self._value = offset, value

    def error(self) -> None:
        return None

    def key(self) -> bytes:
        return b"%x" % self._offset

    def value(self) -> bytes:
        return self._value

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


def test_the_reference_job_commits_what_it_consumed_with_its_offsets(tmp_path, monkeypatch):
    stopped, values = threading.Event(), [b'{"ad_id": "a", "event_type": "view", "event_time": "7"}', b"dirty"]
    consumer = Records(stopped, values)
    monkeypatch.setattr(reference, "until_told", lambda: stopped)
    monkeypatch.setattr(reference, "open_consumer", lambda config, offsets: consumer)
    monkeypatch.setattr(reference, "WRITE_EVERY_S", 0.0)
    config: Any = {"progress_path": str(tmp_path / "progress.jsonl")}
    reference.run(config, {"a": "c"}, reference.Table(tmp_path / "events", HOUR_MS))

    assert reference.Table(tmp_path / "events", HOUR_MS).done() == (1, {0: 2})
    (file,) = committed(tmp_path / "events" / "_spark_metadata")
    assert pq.read_table(file).column("campaign_id").to_pylist() == ["c"]
    told = json.loads((tmp_path / "progress.jsonl").read_text())
    assert (told["rows"], told["offsets"], told["unusable"]) == (2, {"0": 2}, 1)
    assert consumer.closed
