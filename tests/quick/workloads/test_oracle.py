"""The fold, the reading of records, the comparison of tape and log, and the certificate: the judge's own tools."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.profiles import steady
from generators.schedule import Schedule
from generators.sends import SENDS
from harness.judging import log_audit
from harness.kafka_log import recount
from harness.load.certificate import certify
from harness.model import INDEX_BITS, INDEX_MASK, FaultSpec, RunSpec, TapeSpec
from tests.quick.tapes import specs
from workloads.ad_impressions import oracle, records
from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.reference import Counts
from workloads.ad_impressions.schema import population_of
from workloads.base import COUNTS, NO_EVENT, Values
from workloads.keys import read_keys
from workloads.registry import codec_of, oracle_of
from workloads.sentinels import mark

EPOCH_MS = 1_763_700_000_000
SPEC = TapeSpec(11, steady(1000, 2000), 3, 20, 3, 10, 10, PRESETS["storm"], probes=4, probe_every_ms=200)
MARKS = tuple(mark(p, 0, p, EPOCH_MS + 90_000, "closing") for p in range(3))


# Partition, value, key.
Sent = tuple[int, bytes | None, bytes]


def messages_of(spec: TapeSpec) -> list[Sent]:
    """Everything that a tape sends: partition, value, key."""
    encoder = Encoder(codec_of(spec), EPOCH_MS)
    return [
        (int(partition), message["value"], message["key"] or b"")
        for block in Schedule(spec).blocks()
        for partition, message in zip(block.partition, encoder.batch(block), strict=True)
    ]


def log_of(spec: TapeSpec, messages: Sequence[Sent]) -> pa.Table:
    parts = []
    for partition in range(spec.partitions):
        mine = [message for message in messages if message[0] == partition]
        parts.append((partition, [value for _, value, _ in mine], [key for _, _, key in mine]))
    return pa.table(recount.columns_of(parts, codec_of(spec)))


def counted_slowly(spec: TapeSpec, window_ms: int) -> Counter[tuple[int, int]]:
    population = population_of(spec)
    numbers = {name: number for number, name in enumerate(population.campaign_ids)}
    cells: Counter[tuple[int, int]] = Counter()
    for _, value, _ in messages_of(spec):
        try:
            event = json.loads((value or b"").decode())
            campaign, time_ms = population.ad_to_campaign[event["ad_id"]], int(event["event_time"])
        except (ValueError, KeyError):
            continue
        if event["event_type"] == "view":
            cells[numbers[campaign], (time_ms - EPOCH_MS) // window_ms * window_ms] += 1
    return cells


@given(specs(), st.sampled_from([1, 50, 333, 10_000]))
def test_the_fold_is_what_one_gets_by_counting_json(spec, window_ms):
    assert oracle.fold(Schedule(spec).blocks(77), population_of(spec), window_ms) == counted_slowly(spec, window_ms)


@given(specs(), st.integers(0, 99), st.sampled_from([500, 1000, 1500]))
def test_the_plan_settled_at_any_epoch_is_what_the_log_then_holds(spec, parts, window_ms):
    run = RunSpec("", "", "", spec, window_ms, 0, "", None, FaultSpec("none"))
    oracle = oracle_of(run)
    epoch_ms = EPOCH_MS + parts * oracle.part_ms
    planned = oracle.settle(oracle.plan(Schedule(spec).blocks(77)), epoch_ms)

    totals: Counter[int] = Counter()
    for block in Schedule(spec).blocks():
        counted = codec_of(spec).counts(block.content) & (block.poison == 0)
        events = {name: column[counted] for name, column in block.content.items()}
        events["event_time_ms"] = block.event_time_rel_ms[counted] + epoch_ms
        totals.update(dict(zip(*map(np.ndarray.tolist, oracle.fold(oracle.places(events).cell, {})), strict=True)))

    assert dict(zip(*map(np.ndarray.tolist, planned), strict=True)) == dict(totals)


MUTATIONS = (
    lambda value, at, byte: value[:at] + bytes([byte]) + value[at + 1 :],
    lambda value, at, byte: value[:at] + value[at + 1 :],
    lambda value, at, byte: value[:at] + bytes([byte]) + value[at:],
    lambda value, at, byte: value[:at],
    lambda value, at, byte: value + b"\0" * (at % 3),
    lambda value, at, byte: value.replace(b'": "', b'":"'),
    lambda value, at, byte: value.replace(b'"view"', b'"click"'),
    lambda value, at, byte: value.replace(b'": "17', b'": 17').replace(b'", "ip', b', "ip'),
    lambda value, at, byte: b"[" + value + b"]",
)


@given(st.lists(st.tuples(st.integers(0, 1999), st.sampled_from(MUTATIONS), st.integers(0, 263), st.integers(0, 255))))
def test_reading_fast_is_reading_slowly(changes):
    values = list(VALUES)
    for place, mutate, at, byte in changes:
        if (value := values[place]) is not None:
            values[place] = mutate(value, min(at, max(0, len(value) - 1)), byte)
    reader = records.reader(population_of(SPEC))
    fast, slow = reader.read(Values.of(values), IDS).columns(), reader.read_slowly(values, IDS).columns()

    for name, column in fast.items():
        assert column.dtype == slow[name].dtype
        assert column.tolist() == slow[name].tolist(), name


MESSAGES = messages_of(SPEC)
VALUES = [value for _, value, _ in MESSAGES]
IDS = read_keys(Values.of([key for _, _, key in MESSAGES]))


def test_records_say_what_the_tape_had_planned():
    read = records.reader(population_of(SPEC)).read(Values.of(VALUES), IDS)
    blocks = list(Schedule(SPEC).blocks())
    poison = np.concatenate([block.poison for block in blocks])
    time_ms = np.concatenate([block.event_time_rel_ms for block in blocks])

    assert ((read.kind == NO_EVENT) == (poison > 0)).all()
    assert (read.event_time_ms[poison == 0] == time_ms[poison == 0] + EPOCH_MS).all()


def test_records_as_the_tape_writes_them_are_read_fast(monkeypatch):
    """Reading one by its JSON takes a hundred times as long."""
    slowly: list[int] = []
    monkeypatch.setattr(records.RecordReader, "_read_slowly", lambda _self, _value, row, _into: slowly.append(row))
    records.reader(population_of(SPEC)).read(Values.of(VALUES), IDS)
    poison = np.concatenate([block.poison for block in Schedule(SPEC).blocks()])

    assert {*slowly} <= {*np.flatnonzero(poison).tolist()}


def test_the_reference_job_counts_what_one_gets_by_counting_json():
    population = population_of(SPEC)
    counts = Counts(population.ad_to_campaign, 1000)
    for value in VALUES:
        counts.add(value)
    numbers = {name: number for number, name in enumerate(population.campaign_ids)}
    poison = sum(int((block.poison > 0).sum()) for block in Schedule(SPEC).blocks())

    totals = {(numbers[name], at_ms - EPOCH_MS): count for (name, at_ms), count in counts.totals.items()}
    assert totals == counted_slowly(SPEC, 1000)
    assert 0 < counts.unusable <= poison


def test_the_table_of_ads_is_every_string_under_a_uuid_that_names_a_campaign():
    ads = population_of(SPEC).ad_ids[:3]
    table = {ads[0]: "c", ads[1]: "d", ads[2]: None, "streamgauge": "x"}
    client: Any = SimpleNamespace(scan_iter=lambda **_: table, mget=lambda keys: [table[key] for key in keys])

    assert read_ads(client) == {ads[0]: "c", ads[1]: "d"}


@pytest.mark.parametrize("byte", [b"/", b":", b"a", b" ", b"-", b"\xb0", b"\0"])
def test_a_time_with_anything_but_digits_is_no_event(byte):
    place = next(i for i, value in enumerate(VALUES) if value and value.count(b'": "17') == 1)
    value = VALUES[place] or b""
    start = value.index(b'": "17') + 4
    spoilt = [value[: start + i] + byte + value[start + i + 1 :] for i in range(13)]
    read = records.reader(population_of(SPEC)).read(Values.of(spoilt), np.repeat(IDS[place], 13))

    assert read.kind.tolist() == [NO_EVENT] * 13
    assert read.event_time_ms.tolist() == [-1] * 13


@pytest.mark.parametrize(("time_ms", "kind"), [(253_402_300_799_999, COUNTS), (253_402_300_800_000, NO_EVENT)])
def test_a_time_from_the_year_10000_on_is_no_event(time_ms, kind):
    event = {"ad_id": population_of(SPEC).ad_ids[0], "event_type": "view", "event_time": str(time_ms)}
    value = json.dumps(event).encode()

    assert records.reader(population_of(SPEC)).read_slowly([value], IDS[:1]).kind.tolist() == [kind]


def test_an_event_in_the_place_of_poison_is_altered():
    events = next(block for block in Schedule(SPEC).blocks() if block.poison.any())
    poison = b"%012x" % int(events.id[events.poison > 0][0])
    log = [(partition, VALUES[0] if key == poison else value, key) for partition, value, key in MESSAGES]
    audit = log_audit.compare(Schedule(SPEC), EPOCH_MS, log_of(SPEC, log), ())

    assert {name[:12] for name in audit.altered.examples} == {poison.decode()}
    assert (audit.missing.count, audit.doubled.count, audit.foreign.count) == (0, 0, 0)


def test_an_empty_log_has_its_columns():
    table = log_of(SPEC, [])

    assert table.num_rows == 0
    assert {"partition", "offset", "event_id", "campaign", "event_time_ms", "kind"} <= set(table.column_names)
    assert log_audit.compare(Schedule(SPEC), EPOCH_MS, table, []).missing.count == Schedule(SPEC).total


@pytest.mark.parametrize("preset", PRESETS)
def test_a_true_log_has_nothing_wrong(preset):
    spec = replace(SPEC, disorder=PRESETS[preset])
    encoder = Encoder(codec_of(spec), EPOCH_MS)
    marks = [(mark.partition, (sent := encoder.mark(mark))["value"], sent["key"] or b"") for mark in MARKS]
    audit = log_audit.compare(Schedule(spec), EPOCH_MS, log_of(spec, [*messages_of(spec), *marks]), MARKS)

    assert audit.planned == audit.found == Schedule(spec).total + 3
    assert audit.removed == 0
    assert [named.count for named in (audit.missing, audit.doubled, audit.foreign, audit.altered)] == [0, 0, 0, 0]


@given(st.randoms(use_true_random=False), *(st.integers(0, 4) for _ in range(4)))
def test_the_comparison_names_exactly_what_was_done_to_the_log(chance, lost, twice, strange, changed):
    spec = replace(SPEC, disorder=PRESETS["mobile"])
    messages = messages_of(spec)
    chosen = iter(random.Random(chance.random()).sample(range(len(messages)), lost + twice + changed))
    gone, again, other = ([next(chosen) for _ in range(count)] for count in (lost, twice, changed))
    log = [message for place, message in enumerate(messages) if place not in gone]
    log += [messages[place] for place in again]
    for place in other:
        partition, value, key = messages[place]
        assert value is not None
        time_ms = json.loads(value)["event_time"].encode()
        log[log.index(messages[place])] = (partition, value.replace(time_ms, b"1763700000001"), key)
    log += [(0, messages[0][1], b"not a key")] * strange
    audit = log_audit.compare(Schedule(spec), EPOCH_MS, log_of(spec, log), ())

    def keys(places):
        return sorted(messages[place][2].decode() for place in places)

    def ids(named):
        return sorted(name[:12] for name in named.examples)

    assert (audit.missing.count, ids(audit.missing)) == (lost, keys(gone))
    assert (audit.doubled.count, ids(audit.doubled)) == (twice, keys(again))
    assert (audit.altered.count, sorted(name[:12] for name in audit.altered.examples)) == (changed, keys(other))
    assert audit.foreign.count == strange


def test_of_a_record_that_is_missing_or_doubled_it_is_said_where_it_should_be_and_where_it_is():
    place = 7
    partition, _, key = MESSAGES[place]
    number = int(key, 16)
    server, slot = number >> INDEX_BITS, number & INDEX_MASK
    planned = Schedule(SPEC).events(server, np.array([slot]))
    without = log_audit.compare(Schedule(SPEC), EPOCH_MS, log_of(SPEC, [*MESSAGES[:place], *MESSAGES[place + 1 :]]), ())
    twice = log_audit.compare(Schedule(SPEC), EPOCH_MS, log_of(SPEC, [*MESSAGES, MESSAGES[place]]), ())

    due = f"slot {slot} of server {server}: partition {partition}, due at {planned.intended_us[0] / 1e6:.3f} s"
    assert without.missing.examples == (f"{key.decode()} ({due})",)
    before = sum(other == partition for other, _, _ in MESSAGES[:place])
    all_of_it = sum(other == partition for other, _, _ in MESSAGES)
    places = f"partition {partition}, offset {before}; partition {partition}, offset {all_of_it}"
    assert twice.doubled.examples == (f"{key.decode()} ({places})",)


def test_of_a_copy_that_is_missing_it_is_said_where_the_other_one_is():
    keys = [key for _, _, key in MESSAGES]
    second = next(place for place, key in enumerate(keys) if key in keys[:place])
    audit = log_audit.compare(Schedule(SPEC), EPOCH_MS, log_of(SPEC, [*MESSAGES[:second], *MESSAGES[second + 1 :]]), ())

    first = keys.index(keys[second])
    partition = MESSAGES[first][0]
    offset = sum(other == partition for other, _, _ in MESSAGES[:first])
    (named,) = audit.missing.examples
    assert named.endswith(f"; there is one at partition {partition}, offset {offset})")


def test_the_id_of_a_slot_that_sent_a_copy_is_foreign():
    tape = Schedule(SPEC)
    events = next(block for block in tape.blocks() if block.duplicate.any())
    never_sent = (events.server << INDEX_BITS) | int(events.slot[events.duplicate][0])
    audit = log_audit.compare(tape, EPOCH_MS, log_of(SPEC, [*MESSAGES, (0, VALUES[0], b"%012x" % never_sent)]), ())

    assert (audit.foreign.count, audit.missing.count, audit.doubled.count) == (1, 0, 0)


def test_a_mark_that_is_missing_or_doubled_or_changed_is_named():
    encoder = Encoder(codec_of(SPEC), EPOCH_MS)
    first, second = (encoder.mark(mark) for mark in MARKS[:2])
    changed = (first["value"] or b"").replace(b"view", b"click")
    log = [(0, first["value"], first["key"] or b"")] * 2 + [(1, changed, second["key"] or b"")]
    audit = log_audit.compare(Schedule(SPEC), EPOCH_MS, log_of(SPEC, [*MESSAGES, *log]), MARKS)

    after = Counter(partition for partition, _, _ in MESSAGES)
    assert audit.doubled.examples == (
        f"fff000000000 (partition 0, offset {after[0]}; partition 0, offset {after[0] + 1})",
    )
    assert audit.missing.examples == ("fff000000002 (the closing event of partition 2)",)
    assert [name[:12] for name in audit.altered.examples] == ["fff000000001"]


DUE_US = 20_000


def books(*rows: tuple[int, int, int], due_us: int = DUE_US) -> pa.Table:
    """Lag in us, sent, acknowledged, per slice."""
    columns = {name: [0] * len(rows) for name in SENDS}
    columns["intended_us"] = [due_us] * len(rows)
    columns["finished_us"] = [due_us + lag for lag, _, _ in rows]
    columns["sent"] = [sent for _, sent, _ in rows]
    columns["acked"] = [acked for _, _, acked in rows]
    return pa.table({name: pa.array(columns[name], kind) for name, kind in SENDS.items()})


def test_a_kept_schedule_is_certified():
    certificate = certify(books((1000, 999, 999), (250_000, 1, 1)), 1000, 100.0)

    assert certificate.valid
    assert certificate.lag_ms == {"p50": 1.0, "p99": 1.0, "p99.9": 1.0, "max": 250.0}


def test_of_a_warm_up_all_has_to_be_sent_and_its_lag_is_none_of_the_load():
    late, kept = books((900_000, 500, 500), due_us=0), books((1000, 500, 500))

    certificate = certify(pa.concat_tables([late, kept]), 1000, 100.0)

    assert certificate.valid, certificate.reasons
    assert (certificate.sent, certificate.lag_ms["max"]) == (1000, 1.0)
    assert not certify(kept, 1000, 100.0).valid


@pytest.mark.parametrize(
    ("rows", "intended", "reason"),
    [
        ([(0, 900, 900)], 1000, "100 of 1,000 planned records were not sent"),
        ([(0, 1000, 998)], 1000, "2 of 1,000 sent records were not acknowledged"),
        ([(0, 998, 998), (101_000, 2, 2)], 1000, "101.0 ms or more after it was due"),
        ([], 1000, "1,000 of 1,000 planned records were not sent"),
        ([], 0, "no events"),
    ],
)
def test_a_void_certificate_says_why(rows, intended, reason):
    certificate = certify(books(*rows), intended, 100.0)

    assert not certificate.valid
    assert reason in " ".join(certificate.reasons)


@pytest.mark.parametrize(
    ("since_ms", "said"), [(-300, "(+0 s)"), (300, "(+0 s)"), (-4_200, "(-4 s)"), (6_000, "(+6 s)")]
)
def test_a_cell_has_the_time_from_the_load_start_to_its_window(since_ms, said):
    ads = oracle_of(RunSpec("", "", "", SPEC, 10_000, 0, "", None, FaultSpec("none")))

    assert ads.name(ads.codes.one(0, EPOCH_MS), EPOCH_MS - since_ms).endswith(said)


def test_an_audit_names_twenty_examples_and_the_first_event_of_all_by_its_id():
    audit = log_audit.compare(Schedule(SPEC), EPOCH_MS, log_of(SPEC, []), ())

    assert len(audit.missing.examples) == 20
    assert audit.missing.examples[0].startswith("000000000000 ")
