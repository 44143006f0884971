"""Sums of ids: the same by every way, in the event's bytes and back, and they name what a right count hides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.profiles import steady
from generators.tape import Tape
from harness.config import plan
from harness.engines import fake
from harness.engines.manifest import load
from harness.evidence import checksums
from harness.evidence.checksums import ID_RANGE, PRIME, Checksum, Swap, by_cell, swaps
from harness.kafka_log.recount import parse_records
from harness.measuring.measure import withheld
from harness.model import Certificate, Outcome, Sentinel, TapeSpec, UsageError, Verdict
from tests.quick.cases import EPOCH_MS
from workloads.ad_impressions.jobs import id_sums
from workloads.ad_impressions.records import reader
from workloads.ad_impressions.schema import population_of
from workloads.base import NO_EVENT, Values
from workloads.keys import read_keys
from workloads.registry import codec_of

SPEC = TapeSpec(11, steady(500, 2000), 3, 20, 3, 10, 10, PRESETS["storm"], probes=4, probe_every_ms=200, checksum=True)
ids = st.integers(0, ID_RANGE - 1)


@given(st.lists(st.tuples(st.integers(0, 5), ids), max_size=40))
def test_by_event_by_column_and_as_a_job_does_it_the_sums_are_the_same(events):
    cells, numbers = (
        np.array(column, dtype=np.int64) for column in (zip(*events, strict=True) if events else ([], []))
    )

    found = by_cell(cells, numbers)

    for cell in {cell for cell, _ in events}:
        mine = [number for at, number in events if at == cell]
        job = (0, 0)
        for number in mine:
            job = id_sums.add_id(job, number)
        assert found[cell] == Checksum.of(mine) == job
        assert Checksum.read(id_sums.spell(job)) == job == id_sums.read(str(found[cell]))
    assert found.keys() == {cell for cell, _ in events}


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "1,-2", "1, 2", f"{ID_RANGE},0", f"0,{PRIME}", "a,b", "1_0,1"])
def test_what_is_no_pair_of_sums_is_none(text):
    assert Checksum.read(text) is None


@given(st.lists(ids, min_size=3, max_size=30, unique=True), st.data())
def test_one_missing_and_one_too_many_are_named(members, data):
    lost, extra = data.draw(st.permutations(members))[:2]
    kept = [number for number in members if number != lost]

    pairs, candidates = swaps(
        Checksum.of(members), Checksum.of([*kept, extra]), np.array(members), np.array(members, dtype=np.int64)
    )

    assert Swap(lost, extra) in pairs
    assert candidates >= len(pairs)


def test_the_first_sum_names_many_and_the_second_one_the_right_one():
    members = np.arange(0, 300, 3)

    pairs, candidates = swaps(Checksum.of(members), Checksum.of([*members[1:], 30]), members, members)

    assert pairs == [Swap(0, 30)]
    assert candidates == 90


def test_a_record_carries_the_id_of_its_event_and_reads_as_if_it_did_not():
    plain = replace(SPEC, checksum=False)
    with_ids, without = ((Encoder(codec_of(spec), EPOCH_MS), Tape(spec)) for spec in (SPEC, plain))
    read = []
    for encoder, tape in (with_ids, without):
        messages = [message for block in tape.blocks() for message in encoder.batch(block)]
        values, keys = [m["value"] for m in messages], [m["key"] for m in messages]
        read.append(parse_records(Values.of(values), Values.of(keys), encoder.codec))
        slow = reader(population_of(tape.spec)).read_slowly(values, read_keys(Values.of(keys)))
        assert all((column == read[-1][name]).all() for name, column in slow.columns().items())

    assert all((read[0][name] == read[1][name]).all() for name in read[0])
    assert (read[0]["kind"] == NO_EVENT).any()
    events = with_ids[1].events(0, np.arange(50))
    for number, message in zip(events.id, with_ids[0].batch(events), strict=True):
        if message["value"] and b'"user_id": "' in message["value"] and message["value"].endswith(b"}"):
            user = message["value"].split(b'"', 4)[3].decode()
            assert (len(user), id_sums.id_of(user)) == (36, number)
    mark = Sentinel(4095 << 36 | 7, 2, 0, EPOCH_MS, "closing")
    sent = with_ids[0].mark(mark)["value"] or b""
    assert id_sums.id_of(sent.split(b'"', 4)[3].decode()) == mark.id


def test_a_record_that_carries_another_id_is_of_no_known_user():
    messages = Encoder(codec_of(SPEC), EPOCH_MS).batch(
        Tape(replace(SPEC, disorder=PRESETS["none"])).events(0, np.arange(3))
    )
    values, keys = [m["value"] for m in messages], [m["key"] for m in messages]

    read = parse_records(Values.of(values), Values.of([keys[0], keys[2], keys[1]]), codec_of(SPEC))

    assert [user >= 0 for user in read["user"]] == [True, False, False]


def test_equal_tapes_but_for_the_ids_have_other_digests():
    assert Tape(SPEC).digest() != Tape(replace(SPEC, checksum=False)).digest()


def test_only_an_engine_that_can_sum_is_asked_to():
    can_not = replace(fake.MANIFEST, checksum=False)

    with pytest.raises(UsageError, match="does not have checksum = true"):
        plan.resolve("x", {"engine": "fake", "checksum": True}, {}, lambda *_: can_not)

    spec, _ = plan.resolve("x", {"engine": "fake", "checksum": True}, {}, lambda *_: fake.MANIFEST)
    assert spec.tape.checksum
    assert all(load(engine).checksum for engine in ("spark", "reference"))


def test_a_run_with_checksums_gives_no_speed():
    spec, _ = plan.resolve("x", {"engine": "fake", "checksum": True}, {}, lambda *_: fake.MANIFEST)
    verdict = Verdict(Outcome.PASS, "right", 0, (), {})
    certificate = Certificate(True, (), 1, 1, 1, 1, {}, 100.0)

    assert withheld(spec, verdict, certificate, "").startswith("in checksum mode ids are summed")
    assert withheld(spec, verdict, None, "").startswith("in checksum mode ids are summed")
    assert withheld(replace(spec, tape=replace(spec.tape, checksum=False)), verdict, certificate, "") == ""
    void = replace(certificate, valid=False)
    assert withheld(replace(spec, tape=replace(spec.tape, checksum=False)), verdict, void, "") == (
        "the load certificate is void"
    )


def test_differences_are_told_as_small_numbers():
    assert [checksums.signed(number) for number in (0, 18, -18, ID_RANGE - 18)] == [0, 18, -18, -18]
