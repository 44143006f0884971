"""A partition of a backlog, made by itself, is what the ad servers send there: keys, values and order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from generators import fleet
from generators.by_partition import KEY, PARTITION, VALUE, Partition, as_arrow
from generators.encode import Encoder
from generators.fleet import Fleet, LoadConfig
from generators.schedule import Schedule
from harness.config import plan
from harness.model import EngineManifest, Segment, SinkClaim, TapeSpec
from tests.quick.tapes import specs
from workloads.base import Values
from workloads.registry import codec_of
from workloads.shipped import WORKLOADS

EPOCH_MS = 1_763_700_000_000
NOBODY = EngineManifest("none", (), "", shipped=True, sinks=(SinkClaim("none", "keep", "none"),), checksum=True)
Records = list[tuple[bytes, bytes | None]]


def tape_of(workload: str, **more: str) -> TapeSpec:
    keys = {"workload": workload, "sink": "", "requires": [], "late_dropped_max": "any", "backlog": "3s", **more}
    return plan.resolve("x", {"rate": "700", "duration": "1s", **keys}, {}, lambda *_: NOBODY)[0].tape


def sent_by_servers(spec: TapeSpec, folder: str) -> dict[int, Records]:
    """What the process of the ad servers would send to each partition."""
    servers: Any = Fleet(LoadConfig(spec, "", "", "", {}, folder))
    servers._encoder = Encoder(codec_of(spec), EPOCH_MS)
    found: dict[int, Records] = {number: [] for number in range(spec.partitions)}
    for part in servers.backlog():
        found[part.partition] += [(message["key"], message["value"]) for message in part.messages]
    return found


def made_alone(spec: TapeSpec, number: int) -> Records:
    return records_of(Partition(spec, number).batches(EPOCH_MS))


def records_of(batches: Iterable[pa.RecordBatch]) -> Records:
    return [pair for batch in batches for pair in zip(batch[KEY].to_pylist(), batch[VALUE].to_pylist(), strict=True)]


@pytest.fixture
def no_client(monkeypatch):
    monkeypatch.setattr(fleet, "make_producer", lambda *_: None)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_partition_made_alone_is_what_the_servers_send_there(workload, tmp_path, no_client):
    spec = tape_of(workload, disorder="mobile,poison_share=0.01")
    sent = sent_by_servers(spec, str(tmp_path))

    assert sum(map(len, sent.values())) == Schedule(spec).warm_up_total > 0
    for number, records in sent.items():
        assert made_alone(spec, number) == records
        assert len(Partition(spec, number)) == len(records)


@given(specs())
def test_any_tape_is_the_same_by_partition(tmp_path_factory, spec):
    backlog = replace(spec, warm_up=(*spec.profile, Segment(100, 50.0, 50.0)), waits=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "make_producer", lambda *_: None)
        sent = sent_by_servers(backlog, str(tmp_path_factory.getbasetemp()))

    assert {number: made_alone(backlog, number) for number in sent} == sent


def test_its_batches_do_not_depend_on_how_many_slices_are_made_at_once(monkeypatch):
    spec = tape_of("ad_impressions")
    whole = [hashlib.sha256(repr(made_alone(spec, number)).encode()).digest() for number in range(spec.partitions)]
    monkeypatch.setattr(Partition, "_slices_at_once", 3)
    few = [*Partition(spec, 1).batches(EPOCH_MS)]

    assert [hashlib.sha256(repr(made_alone(spec, number)).encode()).digest() for number in range(4)] == whole
    assert len(few) > 10
    assert {number for batch in few for number in batch[PARTITION].to_pylist()} == {1}


def test_a_tape_without_a_backlog_is_refused():
    with pytest.raises(ValueError, match="no backlog"):
        Partition(replace(tape_of("ad_impressions"), warm_up=(), waits=False), 0)


@pytest.mark.parametrize("apart", [False, True])
def test_values_are_the_same_as_a_column(apart):
    held: list[bytes | None] = [b"ab", None, b"", b"cde"]
    values = Values.of([b"x", *held, b"y"]).only(slice(1, 5))
    if apart:  # not one after the other, as after a change of some
        values = Values(
            np.concatenate((values.octets, values.octets)), values.begins + np.array([0, 0, 0, 7]), values.lengths
        )

    assert as_arrow(values).to_pylist() == held
