"""Page visits: the reference job counts what the oracle's SQL says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
import redis
from redis.client import Pipeline

from generators.schedule import Schedule
from generators.sends import SENDS
from harness.evidence.observed import folded
from harness.measuring.latency.sending import Sending
from harness.selftest import visits as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.declared import Events, events, in_cells
from workloads.jobs.redis_results import key_of
from workloads.page_visits.jobs.reference import Visits
from workloads.page_visits.jobs.reference_sessions import Sessions
from workloads.page_visits.jobs.visits import LENGTH_MS, STEP_MS, VISITORS, VISITS
from workloads.registry import codec_of, oracle_of, results_of


@dataclass(frozen=True)
class Planned:
    """Events as a codec writes them, none of them poison."""

    columns: Events

    @property
    def id(self):
        return self.columns["event_id"].astype(np.uint64)

    @property
    def event_time_rel_ms(self):
        return self.columns["event_time_ms"] - EPOCH_MS

    @property
    def content(self):
        return self.columns

    @property
    def poison(self):
        return np.zeros(len(self), dtype=np.int8)

    def __len__(self):
        return len(self.columns["event_id"])


class Redis:
    """As much of a transaction as the job uses."""

    def __init__(self) -> None:
        self.hashes: dict[tuple[str, int], int] = {}

    def sadd(self, key, *members): ...

    def hset(self, key, field=None, value=None, mapping=None):
        for each, number in (mapping or {field: value}).items():
            if not key.startswith(("updated:", "reference:")):
                self.hashes[key, int(each)] = number

    def hdel(self, key, field):
        self.hashes.pop((key, int(field)), None)


@pytest.mark.parametrize(
    ("workload", "make"),
    [
        ("page_visits", partial(Visits, LENGTH_MS, "event")),
        ("page_visits_sliding", partial(Visits, STEP_MS, "event")),
        ("page_visits_sessions", Sessions),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_reference_job_says_what_the_oracle_says(workload, make, seed):
    spec = planted.asked(workload)
    tape = replace(spec.tape, seed=seed)
    oracle, keys = oracle_of(replace(spec, tape=tape)), results_of(tape).keys
    sent = events(tape)
    job, redis = make(), Redis()
    for value in codec_of(tape).write(Planned(sent), EPOCH_MS):
        job.add(value if isinstance(job, Sessions) else (value, 0))
    job.write(cast(Pipeline, redis))

    right = folded(oracle, in_cells(sent, oracle))
    codes = oracle.codes
    assert redis.hashes == {(keys[codes.key(cell)], codes.field(cell)): count for cell, count in right.items()}
    assert job.unusable == 0


class Kept(Redis):
    """As much of a server as the job reads when it starts again."""

    def __init__(self) -> None:
        super().__init__()
        self.sets: dict[str, set[str]] = {}

    def sadd(self, key, *members):
        self.sets.setdefault(key, set()).update(members)

    def scan_iter(self, pattern, count):
        return iter(key for key in self.sets if key.startswith(pattern.removesuffix("*")))

    def smembers(self, key):
        return set(self.sets[key])

    def hget(self, key, field):
        return str(self.hashes[key, int(field)])


def test_a_reference_job_that_is_started_again_goes_on_from_its_last_transaction():
    spec = planted.asked("page_visits")
    values: list[Any] = [*codec_of(spec.tape).write(Planned(events(spec.tape)), EPOCH_MS)]
    whole, kept = Visits(LENGTH_MS, "event"), Kept()
    for value in values:
        whole.add((value, 0))
    for part in (values[: len(values) // 2], values[len(values) // 2 :]):
        job = Visits(LENGTH_MS, "event")
        job.restore(cast(redis.Redis, kept))
        for value in part:
            job.add((value, 0))
        job.write(cast(Pipeline, kept))

    assert (job.visits, job.visitors) == (whole.visits, whole.visitors)


def test_records_that_are_no_visits_are_left_out():
    job = Visits(LENGTH_MS, "event")
    for value in (None, b"", b"not an event", b'{"v', b'{"visitor": 7, "country": "a", "seen_at": 1}'):
        job.add((value, 0))

    assert (job.unusable, dict(job.visits)) == (5, {})


def test_keys_are_named_by_value_and_country():
    assert key_of(VISITS, "country-3") in results_of(planted.asked(planted.SLIDING).tape).keys
    assert key_of(VISITORS, "country-20") in results_of(planted.asked(planted.SLIDING).tape).keys
    assert np.unique(results_of(planted.asked(planted.SLIDING).tape).keys).size == 40


def test_a_visit_that_lies_in_five_windows_was_sent_once_in_each_of_them():
    """Its rows are no copies of each other: each is known, and was due when the visit was."""
    spec = planted.asked(planted.SLIDING)
    schedule = Schedule(spec.tape)
    blocks = list(schedule.blocks())
    columns = {name: np.concatenate([each.content[name] for each in blocks]) for name in blocks[0].content}
    ids = np.concatenate([each.id for each in blocks]).astype(np.int64)
    columns |= {"event_id": ids, "offset": np.arange(len(ids))}
    columns["partition"] = np.concatenate([each.partition for each in blocks])
    columns["event_time_ms"] = EPOCH_MS + np.concatenate([each.event_time_rel_ms for each in blocks])
    due_us = dict(zip(ids.tolist(), np.concatenate([each.intended_us for each in blocks]).tolist(), strict=True))
    log = in_cells(columns, oracle_of(spec))

    known, due, _ = Sending(schedule, EPOCH_MS, books(schedule)).of(log)

    assert len(log) == 2 * 5 * len(ids)
    assert known.all()
    assert due.tolist() == [due_us[each] + EPOCH_MS * 1000 for each in log.id.tolist()]


def books(schedule: Schedule) -> pa.Table:
    """Each slice was sent when it was due."""
    rows = [(server, j, low) for server in range(schedule.spec.servers) for j, low, _ in schedule.slices(server)]
    columns = dict.fromkeys(SENDS, [0] * len(rows))
    columns |= dict(zip(("server", "slice", "slot_lo"), (list(each) for each in zip(*rows, strict=True)), strict=True))
    due_us = [schedule.slice_due_us(server, j) for server, j, _ in rows]
    columns |= {"intended_us": due_us, "sent_us": due_us}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in SENDS.items()})
