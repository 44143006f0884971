"""The history of real Delta and Iceberg tables: every version is found, also one that was never polled."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.model import Disorder, KafkaAddress, Segment, TapeSpec
from harness.results.base import ResultLocation
from harness.results.registry import open_results
from harness.results.sampler import PlainObserver
from harness.util.clock import Clock
from tests.quick.cases import ANY
from tests.services.made_tables import Made, MadeDelta, MadeIceberg, readers_of

TAPE = TapeSpec(1, (Segment(1000, 10.0, 10.0),), 1, 20, 2, campaigns=2, ads_per_campaign=1, disorder=Disorder())
STANDS_S = 0.05


@pytest.fixture(scope="module", autouse=True)
def readers():
    with readers_of("spark-delta", "spark-iceberg"):
        yield


@pytest.fixture(params=[MadeDelta, MadeIceberg])
def table(request, tmp_path) -> Made:
    made: Made = request.param(tmp_path)
    return made


def observed(table: Made, **described: Any) -> PlainObserver:
    manifest = replace(ANY, results=table.results)
    place = ResultLocation(
        None, KafkaAddress(""), "", ["a", "b"], {}, 10_000, 10_000, 0, manifest, Path(), Path(), Clock()
    )
    observer = open_results(replace(place, folder=table.folder, manifest=replace(manifest, sums=True))).observer(TAPE)
    assert isinstance(observer, PlainObserver)
    return observer


def row(count: int, campaign: str = "a") -> pa.Table:
    return pa.table({"campaign": [campaign], "opens": [0], "count": [count]})


def now_us() -> int:
    return time.time_ns() // 1000


def test_versions_that_were_never_polled_are_found_with_their_times(table):
    observer = observed(table)
    observer._poll(full=True)
    committed_us = []
    for count in (3, 27):
        begun_us = now_us()
        table.add(row(count))
        committed_us.append((begun_us, now_us()))
        time.sleep(STANDS_S)
    begun_us = now_us()
    table.take_back()
    committed_us.append((begun_us, now_us()))
    time.sleep(STANDS_S)
    observer._poll(full=True)
    sampled = of(observer)

    assert sampled.columns["count"].tolist() == [3, 30, 3]
    tick_us = 10_000  # the file system's clock
    for at_us, (earliest_us, latest_us) in zip(sampled.columns["at_us"].tolist(), committed_us, strict=True):
        assert earliest_us - tick_us <= at_us <= latest_us
    assert sampled.columns["since_us"].tolist() == sampled.columns["at_us"].tolist()
    assert set(sampled.columns["at_us"].tolist()) <= set(sampled.versions["at_us"])
    assert sampled.looks.scans == 2, "a version is no poll"


def of(observer: PlainObserver):
    return observer._recorder.sampled(2, 0.0)


def test_nothing_is_read_while_no_version_comes(table, monkeypatch):
    observer = observed(table)
    table.add(row(3))
    observer._poll(full=True)
    monkeypatch.setattr("harness.results.table_files.FileTable.take", None)
    observer._poll(full=True)

    assert of(observer).columns["count"].tolist() == [3]


def test_what_was_there_before_the_first_poll_is_no_history(table):
    table.add(row(3))
    table.add(row(4))
    observer = observed(table)
    observer._poll(full=True)
    table.add(row(1))
    observer._poll(full=True)

    assert of(observer).columns["count"].tolist() == [7, 8]
    assert len(of(observer).versions["at_us"]) == 1
