"""What is kept of successive looks: every change once, nothing else, and what was no count is counted."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judging import facts
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.results.sampler import MOST_KEYS, POLL_EVERY_S, Pace, Recorder, sampled_keys, unsettled
from harness.rundir.store import Store
from harness.selftest import stored
from harness.selftest.report import words_of
from harness.selftest.runs import fake_run
from tests.quick.cases import SPEC

HASHES = st.dictionaries(st.sampled_from([b"0", b"10000", b"20000", b"x"]), st.sampled_from([b"1", b"2", b"30", b"2?"]))
CAMPAIGNS = (4, 7)


def flat(fields):
    return [part for pair in fields.items() for part in pair]


def recorded(looks, keys=CAMPAIGNS):
    recorder = Recorder(keys)
    for number, look in enumerate(looks):
        recorder.record(number * 50_000, look)
    return recorder.sampled(10, 0.0)


def rows(sampled):
    names = ("at_us", "campaign", "window_ms", "count")
    return list(zip(*(sampled.columns[name].tolist() for name in names), strict=True))


def test_a_change_says_since_when_it_can_have_been_there_at_the_earliest():
    """By the beginning of the last look at the same window, which a glance at others is not."""
    recorder = Recorder((4,))
    recorder.record(2_600, [[b"0", b"1", b"90", b"1"]], began_us=0)
    recorder.unchanged(5_200, began_us=2_600)
    recorder.glance(7_800, range(90, 91), [[b"2"]], began_us=5_200)
    recorder.record(9_000, [Exception("LOADING")], began_us=8_000)
    recorder.glance(10_400, range(90, 91), [[b"3"]], began_us=9_000)
    recorder.record(13_000, [[b"0", b"5", b"90", b"4"]], began_us=10_400)
    columns = recorder.sampled(1, 0.0).columns
    assert recorder.changed == (13, 9)  # the count of window 0 may be older, and that of window 90 is not

    found = {(at, window): since for at, since, _, window, _ in zip(*map(list, columns.values()), strict=True)}
    assert found == {
        (2_600, 0): 0,
        (2_600, 90): 0,
        (7_800, 90): 2_600,
        (10_400, 90): 5_200,  # the look between got no answer
        (13_000, 0): 2_600,
        (13_000, 90): 9_000,
    }


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


@given(st.lists(st.tuples(HASHES, HASHES), min_size=1, max_size=8))
def test_polls_of_what_changed_tell_the_same_as_whole_ones(looks):
    """Of a store in which no field vanishes."""
    whole: list[dict[bytes, bytes]] = [{}, {}]
    every, news = Recorder(CAMPAIGNS), Recorder(CAMPAIGNS)
    for number, look in enumerate(looks):
        changed = [{f: v for f, v in new.items() if old.get(f) != v} for old, new in zip(whole, look, strict=True)]
        whole = [old | new for old, new in zip(whole, look, strict=True)]
        every.record(number * 50_000, [flat(fields) for fields in whole])
        news.record(number * 50_000, [flat(fields) for fields in changed], whole=False)

    one, other = every.sampled(2, 0.0), news.sampled(2, 0.0)
    assert (sorted(rows(one)), one.looks) == (sorted(rows(other)), other.looks)
    assert {name: sorted(column) for name, column in one.glitches.items()} == {
        name: sorted(column) for name, column in other.glitches.items()
    }


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


def test_the_time_from_the_start_to_the_first_poll_counts_as_a_period():
    recorder = Recorder(CAMPAIGNS)
    recorder.begin(10_000)
    for at_us in (910_000, 960_000):
        recorder.unchanged(at_us)
    looks = recorder.sampled(4, 0.0).looks

    assert (looks.begun_ms, looks.scans, looks.period_max_ms) == (10, 2, 900.0)


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
    pace = Pace(1)

    def longest_s(took_s, looks=60):
        return max([pace.period_s(took_s) for _ in range(looks)][-30:])

    assert POLL_EVERY_S < longest_s(0.002) <= 1.5 * POLL_EVERY_S
    assert longest_s(3.0, looks=1) <= 1.5 * POLL_EVERY_S
    assert 0.09 < longest_s(0.03) <= 1.5 * 0.09
    assert longest_s(0.002) <= 1.5 * POLL_EVERY_S, "and it recovers"


def test_nobody_can_hide_between_looks_by_their_period():
    """115 blinks of 10 ms, each just after a look by the clock of a fixed period."""
    pace, looks_s = Pace(7), [0.0]
    while looks_s[-1] < 10:
        looks_s.append(looks_s[-1] + pace.period_s(0.001))
    blinks_s = [0.002 + number * POLL_EVERY_S for number in range(115)]

    seen = sum(any(begin <= look < begin + 0.01 for look in looks_s) for begin in blinks_s)
    again = Pace(7)
    assert seen > 5
    assert [again.period_s(0.001) for _ in range(3)] == pytest.approx(np.diff(looks_s[:4]))
    assert np.mean(np.diff(looks_s)) == pytest.approx(POLL_EVERY_S, rel=0.1)


def test_a_count_in_a_window_that_is_over_is_seen_between_two_whole_looks():
    recorder = Recorder([4])
    over, open_ = range(0, 20_000, 10_000), range(20_000, 40_000, 10_000)
    recorder.record(1_000_000, [[b"0", b"5", b"10000", b"6", b"20000", b"1"]])
    recorder.glance(1_050_000, open_, [[b"1", None]])
    recorder.closed(1_100_000, over, [[b"505", b"6"]], began_us=1_099_000)
    recorder.glance(1_150_000, open_, [[b"2", None]])
    recorder.closed(1_200_000, over, [[b"5", b"6"]], began_us=1_199_000)
    recorder.closed(1_300_000, over, None, began_us=1_299_000)

    found = recorder.sampled(1, 0.0)

    kept = list(zip(*(found.columns[name].tolist() for name in ("since_us", "window_ms", "count")), strict=True))
    assert kept[3:] == [(1_000_000, 0, 505), (1_050_000, 20_000, 2), (1_099_000, 0, 5)]
    assert found.looks.closed_period_ms == 100


ALL = range(0, 40_000, 10_000)
COUNTS = st.dictionaries(st.sampled_from(ALL), st.integers(1, 3))
GLANCED = st.sampled_from(
    [None, range(0, 20_000, 10_000), range(10_000, 50_000, 10_000), range(20_000, 30_000, 10_000)]
)


def seen_by(recorder, at_us, counts, windows):
    """A look of the real observer: all of a hash, or some of its fields."""
    texts = {b"%d" % window_ms: b"%d" % count for window_ms, count in counts.items()}
    if windows is None:
        recorder.record(at_us, [flat(texts)])
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
        recorder.record(number * 50_000, look)
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
    recorder.record(100_000, [WRONG, []])
    recorder.record(150_000, [[b"0", b"5"], []])

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
    stored.of_schema_3(run)
    (run.path / "verdict.json").unlink()

    assert words_of(judge(StoredRun(Store(run.path)))) == "UNKNOWN contradicted"  # it was FAIL at first
    assert "unreadable" not in judge(StoredRun(Store(run.path))).words


def test_results_that_could_not_be_read_after_the_stop_are_not_taken_from_a_file(tmp_path):
    _, store = fake_run(tmp_path)
    store.tell("stopped", error="the connection was refused", asked=True)
    after = facts._after_stop(StoredRun(store))

    assert after is not None
    assert (after.error, after.observed) == ("the connection was refused", None)


def test_a_run_that_ended_before_its_first_look_was_not_watched(tmp_path):
    _, store = fake_run(tmp_path)
    assert facts._watched(StoredRun(store)) is not None
    (store.path / "samples.parquet").unlink()

    assert facts._watched(StoredRun(store)) is None
