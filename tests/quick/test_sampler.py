"""What is kept of successive looks: every change once, nothing else, and what was no count is counted."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.experiments.selftest.report import words_of
from harness.experiments.selftest.runs import fake_run
from harness.judging.judge import judge
from harness.store import Store
from harness.stored import StoredRun
from harness.watching.sampler import LOOK_EVERY_S, MOST_KEYS, Pace, Recorder, sampled_keys, unsettled
from tests.quick.cases import SPEC

HASHES = st.dictionaries(st.sampled_from([b"0", b"10000", b"20000", b"x"]), st.sampled_from([b"1", b"2", b"30", b"2?"]))
CAMPAIGNS = (4, 7)


def flat(fields):
    return [part for pair in fields.items() for part in pair]


def recorded(looks, campaigns=CAMPAIGNS):
    recorder = Recorder(campaigns)
    for number, look in enumerate(looks):
        recorder.look(number * 50_000, look)
    return recorder.sampled(10, 0.0)


def rows(sampled):
    return list(zip(*(column.tolist() for column in sampled.columns.values()), strict=True))


def test_it_says_for_how_long_a_reader_waits():
    recorder = Recorder(CAMPAIGNS)
    for ms in (*[2.0] * 98, 40.0, 50.0):
        recorder.took(ms)
    looks = recorder.sampled(2, 0.0).looks

    assert looks.took_ms == 2.0
    assert 40.0 <= looks.took_p99_ms <= 50.0


@given(st.lists(st.tuples(HASHES, HASHES), min_size=1, max_size=8))
def test_the_changes_tell_every_count_at_every_look_and_nothing_twice(looks):
    sampled = recorded([[flat(fields) for fields in look] for look in looks])
    changes = rows(sampled)
    told: dict[tuple[int, int], int] = {}
    wanted: dict[tuple[int, int], int] = {}
    for number, look in enumerate(looks):
        for at_us, campaign, window_ms, count in changes:
            if at_us == number * 50_000:
                assert told.get((campaign, window_ms)) != count, "a row for each change only"
                told[campaign, window_ms] = count
        for campaign, fields in zip(CAMPAIGNS, look, strict=True):
            wanted |= {cell: 0 for cell in wanted if cell[0] == campaign and b"%d" % cell[1] not in fields}
            sound = {f: v for f, v in fields.items() if f.isdigit() and v.isdigit()}
            wanted |= {(campaign, int(field)): int(value) for field, value in sound.items()}
        assert told == wanted

    assert sampled.looks.scans == len(looks)
    bad = {(p, f, v) for look in looks for p, fields in enumerate(look) for f, v in fields.items() if b"x" in f + v}
    assert (sampled.looks.garbage > 0) == bool(bad or any(b"2?" in look[p].values() for look in looks for p in (0, 1)))


def test_a_count_that_vanished_is_zero_and_one_that_comes_back_is_told_again():
    sampled = recorded([[[b"0", b"5"], []], [[], []], [[b"0", b"5"], []]])

    assert rows(sampled) == [(0, 4, 0, 5), (50_000, 4, 0, 0), (100_000, 4, 0, 5)]


def test_what_is_no_count_is_passed_over_and_counted_once_for_each_change():
    sampled = recorded([[[b"0", b"5"], WRONG], [[b"0", b"5?"], []], [[b"0", b"5?"], []], [[b"0", b"9" * 30], []]])

    assert rows(sampled) == [(0, 4, 0, 5)]
    assert sampled.looks.garbage == 3


WRONG = ValueError("WRONGTYPE")


def test_the_period_is_what_it_was_not_what_was_wished():
    recorder = Recorder(CAMPAIGNS)
    for at_us in (0, 50_000, 100_000, 400_000):
        recorder.unchanged(at_us)
    recorder.failed(OSError("gone"))
    looks = recorder.sampled(4, 0.25).looks

    assert (looks.scans, looks.period_ms, looks.period_max_ms) == (4, 50.0, 300.0)
    assert 250 < looks.period_p99_ms <= 300
    assert (looks.campaigns, looks.cells_sampled_share) == (2, 0.5)
    assert (looks.errors, looks.first_error, looks.cpu_s, looks.wall_s) == (1, "OSError: gone", 0.25, 0.4)


def test_no_look_at_all_has_no_period():
    looks = Recorder(CAMPAIGNS).sampled(2, 0.0).looks

    assert (looks.scans, looks.period_ms, looks.wall_s) == (0, 0.0, 0.0)


@pytest.mark.parametrize(("campaigns", "probes"), [(100, 300), (500, 0), (1000, 300), (1000, 0), (20_000, 499)])
def test_a_sample_holds_all_probes_and_as_many_others_as_fit(campaigns, probes):
    tape = replace(SPEC.tape, campaigns=campaigns, probes=probes)
    chosen = sampled_keys(tape)

    assert len(chosen) == min(campaigns + probes, MOST_KEYS)
    assert chosen == tuple(sorted(set(chosen)))
    assert set(range(campaigns, campaigns + probes)) <= set(chosen)
    assert sampled_keys(tape) == chosen
    if campaigns + probes > MOST_KEYS:
        assert sampled_keys(replace(tape, seed=99)) != chosen


def test_more_probes_than_can_be_looked_at_fill_the_sample():
    assert sampled_keys(replace(SPEC.tape, campaigns=10, probes=2000)) == tuple(range(10, 510))


def test_slow_looks_come_less_often_and_one_hiccup_changes_nothing():
    pace = Pace()
    assert [pace.period_s(0.002) for _ in range(30)] == [LOOK_EVERY_S] * 30
    assert pace.period_s(3.0) == LOOK_EVERY_S
    slow = [pace.period_s(0.03) for _ in range(30)][-1]
    assert slow == pytest.approx(0.09)
    assert [pace.period_s(0.002) for _ in range(30)][-1] == LOOK_EVERY_S, "and it recovers"


ALL = range(0, 40_000, 10_000)
COUNTS = st.dictionaries(st.sampled_from(ALL), st.integers(1, 3))
GLANCED = st.sampled_from(
    [None, range(0, 20_000, 10_000), range(10_000, 50_000, 10_000), range(20_000, 30_000, 10_000)]
)


def seen_by(recorder, at_us, counts, windows):
    """A look of the real observer: all of a hash, or some of its fields."""
    texts = {b"%d" % window_ms: b"%d" % count for window_ms, count in counts.items()}
    if windows is None:
        recorder.look(at_us, [flat(texts)])
    else:
        recorder.glance(at_us, windows, [[texts.get(b"%d" % window_ms) for window_ms in windows]])


@given(st.lists(st.tuples(COUNTS, GLANCED), min_size=1, max_size=12))
def test_glances_tell_the_truth_of_their_windows_and_a_whole_look_of_all(looks):
    recorder, late = Recorder([4]), 0
    known: dict[int, int] = {}
    for number, (counts, windows) in enumerate(looks):
        seen_by(recorder, number * 50_000, counts, windows)
        truth = dict.fromkeys(known, 0) | counts
        glanced = looks[number - 1][1] if number else None
        changed = {w for w in truth if truth[w] != known.get(w) and (windows is None or w in windows)}
        known |= {window_ms: truth[window_ms] for window_ms in changed}
        late += sum(glanced is not None and window_ms not in glanced for window_ms in changed)
        sampled = recorder.sampled(1, 0.0)
        told = {window_ms: count for _, _, window_ms, count in rows(sampled)}
        assert told == known

    assert sampled.looks.seen_late == late
    assert (sampled.looks.scans, sampled.looks.whole) == (len(looks), sum(w is None for _, w in looks))


def test_a_count_that_went_back_to_what_the_last_whole_look_saw_is_a_change():
    """A whole answer that equals the one before may still be news after a glance."""
    recorder = Recorder([4])
    for number, (count, windows) in enumerate([(5, None), (6, range(0, 10_000, 10_000)), (5, None)]):
        seen_by(recorder, number * 50_000, {0: count}, windows)

    assert [count for *_, count in rows(recorder.sampled(1, 0.0))] == [5, 6, 5]


def test_how_late_a_settled_window_may_be_seen_is_told():
    recorder = Recorder([4])
    for at_ms, windows in [(0, None), (50, range(20_000, 30_000, 10_000)), (900, range(20_000, 30_000, 10_000))]:
        seen_by(recorder, at_ms * 1000, {0: 1, 20_000: at_ms + 1}, windows)
    seen_by(recorder, 950_000, {0: 2, 20_000: 901}, None)
    looks = recorder.sampled(1, 0.0).looks

    assert (looks.seen_late, looks.whole_period_max_ms, looks.whole) == (1, 950.0, 2)


def test_as_many_windows_are_glanced_at_however_long_a_run_takes():
    newest = [unsettled(now_ms - 3_000, now_ms, 10_000, 10_000) for now_ms in range(10**9, 10**9 + 10**8, 999_983)]

    assert {len(windows) for windows in newest} == {7, 8}


def test_while_an_engine_is_behind_nothing_of_what_it_has_to_do_is_settled():
    windows = unsettled(1_000_000, 1_600_000, 10_000, 10_000)

    assert {*range(970_000, 1_600_001, 10_000)} <= {*windows}
    assert 960_000 not in windows
    assert not unsettled(None, 1_600_000, 10_000, 10_000)


def test_dates_of_the_future_settle_nothing():
    recorder = Recorder([4])
    seen_by(recorder, 15_000_000, {0: 1, 10_000: 1, 9_000_000: 1}, None)

    assert (recorder.newest_ms, recorder.windows) == (10_000, 3)


def glitches(recorder):
    columns = recorder.sampled(10, 0.0).glitches
    return list(zip(*columns.values(), strict=True))


def looked(*looks):
    recorder = Recorder(CAMPAIGNS)
    for number, look in enumerate(looks):
        recorder.look(number * 50_000, look)
    return recorder


@pytest.mark.parametrize(
    ("before", "after"), [([b"0", b"5?"], []), ([b"0", b"5?"], [b"0", b"5"]), ([b"00", b"5"], [b"0", b"5"])]
)
def test_what_was_no_count_for_a_while_is_told_with_both_moments(before, after):
    recorder = looked([[b"0", b"5"], []], [before, []], [before, []], [after, []], [after, []])

    assert glitches(recorder) == [("unreadable", 4, before[0].decode(), before[1].decode(), 50_000, 150_000)]


def test_what_changes_and_is_never_a_count_is_one_glitch_and_what_comes_again_is_another():
    recorder = looked(*([[b"0", text], []] for text in (b"\xff", b"b", b"5", b"c")))

    assert glitches(recorder) == [
        ("unreadable", 4, "0", r"\xff", 0, 100_000),
        ("unreadable", 4, "0", "c", 150_000, 0),
    ]


def test_a_key_of_another_type_is_a_glitch_until_its_hash_is_back():
    recorder = looked([[b"0", b"5"], []])
    recorder.glance(50_000, range(0, 10_000, 10_000), [WRONG, [None]])
    recorder.look(100_000, [WRONG, []])
    recorder.look(150_000, [[b"0", b"5"], []])

    assert glitches(recorder) == [("unreadable", 4, "", "a key of another type", 50_000, 150_000)]
    assert rows(recorder.sampled(10, 0.0)) == [(0, 4, 0, 5)]


def test_an_error_of_the_service_is_no_glitch():
    sampled = looked([ValueError("LOADING Redis is loading the dataset in memory"), []]).sampled(10, 0.0)

    assert (sampled.looks.glitches, sampled.looks.errors) == (0, 1)
    assert sampled.looks.first_error.startswith("ValueError: LOADING")


def test_a_stranger_is_told_when_it_stayed_and_is_gone():
    recorder = Recorder(CAMPAIGNS)
    for second, keys in enumerate([{"stays", "goes"}, {"stays", "goes", "flits"}, {"stays", "goes"}, {"stays"}]):
        recorder.strangers(second * 1_000_000, keys)

    assert glitches(recorder) == [("stranger", -1, "goes", "a hash", 0, 3_000_000)]


@given(st.lists(st.tuples(HASHES, HASHES), min_size=1, max_size=8))
def test_at_each_look_a_field_is_a_count_or_a_glitch(looks):
    recorder = looked(*([flat(fields) for fields in look] for look in looks))
    told = [(c, name, from_us, until_us or 1 << 60) for _, c, name, _, from_us, until_us in glitches(recorder)]
    for number, look in enumerate(looks):
        at_us = number * 50_000
        for campaign, fields in zip(CAMPAIGNS, look, strict=True):
            bad = {field.decode() for field, text in fields.items() if not (field + text).isdigit()}
            assert {n for c, n, from_us, until_us in told if c == campaign and from_us <= at_us < until_us} == bad


def test_a_run_that_is_older_than_glitches_is_judged_without_them(tmp_path):
    _, run = fake_run(tmp_path, conf={"misbehave": "visiting-text"})
    assert words_of(judge(StoredRun(Store(run.path)))) == "FAIL unreadable"
    history = [msgspec.json.decode(line) for line in (run.path / "history.jsonl").read_bytes().splitlines()]
    for entry in history:
        entry.pop("glitches", None)
    (run.path / "history.jsonl").write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in history))
    (run.path / "glitches.parquet").unlink()
    (run.path / "digests.json").unlink()
    run.write_json("owner.json", {"schema": 2, "pid": 1, "started": 0.0})

    assert words_of(judge(StoredRun(Store(run.path)))) == "PASS"
