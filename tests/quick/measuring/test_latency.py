"""Latency against truths that are known: exact where that is promised, a bound where it is not, never flattering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measuring import latency
from harness.measuring.latency import evidence, measured, quantiles
from harness.measuring.latency.evidence import Cells
from harness.measuring.latency.visibility import Samples, Visibility, overtaken_us
from harness.measuring.latency.ways import FINAL, FIRST, Ways
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from tests.quick.latencies import PERIOD_MS, by_cell, looked_at, offered, world

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


def batches(due_us, every_ms, road_ms):
    """An engine that takes all there is every so often, and needs a while to write it."""
    return -(-(due_us + road_ms * 1000) // (every_ms * 1000)) * every_ms * 1000


def fifo(due_us, delay_us):
    """Any delays, but nobody overtakes."""
    order = np.argsort(due_us, kind="stable")
    visible_us = np.empty_like(due_us)
    visible_us[order] = np.maximum.accumulate((due_us + delay_us)[order])
    return visible_us


def by_way(evidence):
    return {each.way: each for each in measured(evidence).latency}


def assert_exact(found, true_ms):
    """Late by at most one look, at every percentile and in the mean."""
    truth = quantiles(true_ms)
    for name in (*SHARES, "mean", "max"):
        off_ms = getattr(found, name) - getattr(truth, name)
        assert -1e-6 <= off_ms <= PERIOD_MS + 1e-6, (name, off_ms)
    assert (found.count, found.censored) == (truth.count, 0)


@pytest.mark.parametrize("rate", [20, 300, 5000])
@pytest.mark.parametrize("every_ms", [100, 500, 1500])
def test_order_preserving_delays_are_the_same_by_both_rules_at_every_rate(rate, every_ms):
    campaign, due_us = offered(rate, 60, campaigns=20, probes=300)
    truth = world(campaign, due_us, batches(due_us, every_ms, road_ms=120), probes_from=20)
    found = by_way(looked_at(truth, turn=truth.visible_us))
    probes, ranks = found["probes"], found["rank-matched"]

    assert not ranks.tail_is_lower_bound
    assert "so every percentile is exact" in ranks.exactness
    assert_exact(ranks.corrected, truth.latency_ms)
    assert_exact(probes.corrected, truth.latency_ms[truth.campaign >= 20])
    for name in ("p50", "p99", "p999"):
        assert abs(getattr(probes.corrected, name) - getattr(ranks.corrected, name)) <= PERIOD_MS, name


@given(
    rate=st.sampled_from([5, 50, 400]),
    spread_ms=st.sampled_from([1, 200, 4000]),
    heavy=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_delays_that_preserve_the_order_are_measured_to_one_look(rate, spread_ms, heavy, seed):
    random = np.random.default_rng(seed)
    campaign, due_us = offered(rate, 30, campaigns=7, probes=40, seed=seed)
    delay_us = spread_ms * 1000 * (random.pareto(2.5, len(due_us)) if heavy else random.random(len(due_us)))
    truth = world(campaign, due_us, fifo(due_us, delay_us.astype(np.int64)), probes_from=7)
    found = by_way(looked_at(truth, turn=truth.visible_us))

    assert_exact(found["rank-matched"].corrected, truth.latency_ms)
    assert_exact(found["probes"].corrected, truth.latency_ms[truth.campaign >= 7])
    assert not found["rank-matched"].tail_is_lower_bound


def tail_mean(values_ms, share):
    ordered = np.sort(values_ms)
    return ordered[int(share * len(ordered)) :].mean()


@given(
    spread_ms=st.sampled_from([300, 3000]),
    heavy=st.booleans(),
    known=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_where_events_overtake_the_mean_holds_the_tail_is_a_bound_and_probes_stay_exact(spread_ms, heavy, known, seed):
    random = np.random.default_rng(seed)
    campaign, due_us = offered(400, 30, campaigns=3, probes=300, seed=seed)
    delay_us = spread_ms * 1000 * (random.pareto(2.5, len(due_us)) if heavy else random.random(len(due_us)))
    truth = world(campaign, due_us, due_us + delay_us, probes_from=3)
    evidence = looked_at(truth, turn=truth.visible_us if known else None)
    result = measured(evidence)
    probes, ranks = (next(each for each in result.latency if each.way == way) for way in ("probes", "rank-matched"))
    raw = pa.concat_tables(result.raw.parts())
    matched_ms = raw.filter(pc.equal(raw.column("way"), "rank-matched")).column("corrected_ms")

    assert 0 <= ranks.corrected.mean - truth.latency_ms.mean() <= PERIOD_MS
    assert ranks.tail_is_lower_bound
    assert "lower bounds" in ranks.exactness
    for share in SHARES.values():
        assert tail_mean(matched_ms.to_numpy(), share) <= tail_mean(truth.latency_ms, share) + PERIOD_MS + 1e-6
    if known:
        furthest_ms = overtaken_us(truth.cell, truth.due_us, truth.visible_us).max() / 1000
        assert f"by up to {furthest_ms:,.0f} ms" in ranks.exactness
        for name in SHARES:
            off_ms = getattr(ranks.corrected, name) - getattr(quantiles(truth.latency_ms), name)
            assert -furthest_ms <= off_ms <= furthest_ms + PERIOD_MS, name
    assert_exact(probes.corrected, truth.latency_ms[truth.campaign >= 3])
    assert_within_their_own_interval(probes.corrected, truth.latency_ms)


def assert_within_their_own_interval(found, all_ms):
    """A quantile of n probes lies between those of all events 5 standard deviations of its rank below and above."""
    ordered = np.sort(all_ms)
    for name, share in list(SHARES.items())[:3]:
        reach = 5 * np.sqrt(share * (1 - share) / found.count) + 1 / found.count
        low, high = (ordered[int(np.clip(s, 0, 1) * (len(ordered) - 1))] for s in (share - reach, share + reach))
        assert low <= getattr(found, name) <= high + PERIOD_MS, name


@given(
    stall_ms=st.integers(1000, 8000),
    share=st.floats(0.05, 0.5),
    seed=st.integers(0, 2**32),
)
def test_a_stall_of_the_generator_shows_from_due_times_and_not_from_sending(stall_ms, share, seed):
    campaign, due_us = offered(200, 30, campaigns=5, probes=300, seed=seed)
    begin_us = 10_000_000
    end_us = begin_us + stall_ms * 1000
    sent_us = np.where((due_us >= begin_us) & (due_us < end_us), end_us, due_us)
    truth = world(campaign, due_us, batches(sent_us, 200, road_ms=30), probes_from=5, sent_us=sent_us)
    found = by_way(looked_at(truth, turn=truth.visible_us))

    for way in ("probes", "rank-matched", "final value", "first seen"):
        corrected, uncorrected = found[way].corrected, found[way].uncorrected
        assert corrected.max >= stall_ms - 200, way
        assert corrected.max >= uncorrected.max + stall_ms - 400, way
        assert uncorrected.max <= 30 + 200 + PERIOD_MS + 1, way
    assert found["probes"].corrected.p99 > stall_ms / 2
    assert found["rank-matched"].corrected.p99 > stall_ms / 2


def seen(rows, cells=1):
    """Samples as (cell, second, count)."""
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)] if rows else [EMPTY] * 3
    return Visibility(Samples(columns[0], columns[1] * 1_000_000, columns[2]), cells)


EMPTY = np.zeros(0, dtype=np.int64)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 6)), unique_by=lambda row: row[:2], max_size=40
    )
)
def test_visible_is_never_again_below_as_one_would_look_it_up_by_hand(rows):
    visibility = seen(rows, cells=4)
    for cell in range(4):
        mine = sorted((at, count) for c, at, count in rows if c == cell)
        for wanted in range(1, 8):
            since = [at for i, (at, _) in enumerate(mine) if all(count >= wanted for _, count in mine[i:])]
            found = visibility.since_us(np.array([cell]), np.array([wanted]))[0]
            assert found == (since[0] * 1e6 if since else np.inf)
        first = [at for at, count in mine if count > 0]
        assert visibility.first_us(np.array([cell]))[0] == (first[0] * 1e6 if first else np.inf)
        counts = [count for _, count in mine]
        assert visibility.dipped()[cell] == (counts != sorted(counts))
        for value in range(7):
            held = bool(mine) and mine[-1][1] == value
            assert visibility.final_us(np.array([cell]), np.array([value]))[0] == (
                mine[-1][0] * 1e6 if held else np.inf
            )


def test_a_count_that_falls_back_makes_events_visible_only_when_it_is_there_for_good():
    truth = world(np.zeros(3, dtype=np.int64), np.array([0, 1, 2]) * 1000, np.array([100, 100, 200]) * 1000, 1)
    honest = looked_at(truth)
    emptied = replace(
        honest,
        samples=Samples(
            np.zeros(4, dtype=np.int64),
            honest.epoch_ms * 1000 + np.array([1, 2, 5, 9]) * 100_000,
            np.array([2, 3, 0, 3]),
        ),
    )
    result = measured(emptied)

    assert by_way(honest)["rank-matched"].corrected.max == 198
    assert by_way(emptied)["rank-matched"].corrected.p50 == 899
    assert by_way(emptied)["final value"].corrected.max == 898
    assert by_way(emptied)["first seen"].corrected.max == 100
    assert (measured(honest).dipped_share, result.dipped_share, result.never_final_share) == (0.0, 1.0, 0.0)


def test_what_was_never_seen_is_beyond_every_percentile_and_never_dropped():
    campaign, due_us = offered(100, 10, campaigns=2, probes=10)
    truth = world(campaign, due_us, due_us + 100_000, probes_from=2)
    evidence = looked_at(truth)
    late = evidence.samples.at_us > evidence.epoch_ms * 1000 + 5_000_000
    cut = replace(
        evidence,
        samples=Samples(
            *(column[~late] for column in (evidence.samples.cell, evidence.samples.at_us, evidence.samples.count))
        ),
    )
    result = measured(cut)
    ranks, probes = by_way(cut)["rank-matched"].corrected, by_way(cut)["probes"].corrected

    assert ranks.count + ranks.censored == len(due_us)
    assert 0.4 < ranks.censored / len(due_us) < 0.6
    assert (ranks.p99, ranks.max, ranks.mean) == (None, None, None)
    middle = quantiles(np.array([100.0, 120.0, np.inf])).p50
    assert middle is not None
    assert 100 <= middle <= 120
    assert probes.censored == 5
    assert result.never_final_share == pytest.approx(7 / 12)
    assert pa.concat_tables(result.raw.parts()).column("corrected_ms").null_count > ranks.censored
    assert result.by_second.to_pylist()[-1]["p50_ms"] is None


def test_cells_with_wrong_counts_and_marks_have_no_latency():
    campaign, due_us = offered(100, 10, campaigns=2, probes=10)
    evidence = looked_at(world(campaign, due_us, due_us + 100_000, probes_from=2))
    final, marked = evidence.cells.final.copy(), evidence.cells.marked.copy()
    final[0], marked[1] = -1, True
    found = by_way(replace(evidence, cells=replace(evidence.cells, final=final, marked=marked)))

    assert found["rank-matched"].corrected.count == len(due_us) - evidence.cells.events[0]
    assert found["final value"].corrected.count == len(final) - 2
    assert found["first seen"].corrected.count == len(final) - 2


def test_changes_that_only_whole_looks_could_see_are_told():
    campaign, due_us = offered(20, 20, campaigns=2, probes=0)
    evidence = looked_at(world(campaign, due_us, due_us, probes_from=2))
    late = replace(evidence, looked=replace(evidence.looked, seen_late=3, whole_period_max_ms=1_234.0))

    told = "3 changes of settled windows are late by up to 1,234 ms."
    assert told in by_way(late)["rank-matched"].exactness
    assert "settled" not in by_way(evidence)["rank-matched"].exactness


def test_nothing_to_measure_gives_no_way_at_all():
    nothing = looked_at(world(EMPTY, EMPTY, EMPTY, 0))
    result = measured(nothing)

    assert (result.latency, result.never_final_share, result.dipped_share) == ((), None, None)
    assert result.by_second.num_rows == pa.concat_tables(result.raw.parts()).num_rows == 0


def test_overtaking_is_measured_within_cells_and_between_turns_only():
    cell, due_us = np.array([0, 0, 0, 1, 1]), np.array([10, 20, 30, 5, 40])

    assert overtaken_us(cell, due_us, np.array([0, 0, 0, 0, 0])).tolist() == [0, 0, 0, 0, 0]
    assert overtaken_us(cell, due_us, np.array([2, 0, 1, 3, 1])).tolist() == [20, 0, 0, 35, 0]
    assert overtaken_us(cell, due_us, np.array([0, 1, 2, 0, 1])).tolist() == [0, 0, 0, 0, 0]


def test_yahoos_own_figure_counts_the_negative_ones():
    evidence = replace(looked_at(world(EMPTY, EMPTY, EMPTY, 0)), yahoo_ms=np.array([-500, 100, 300]))
    yahoo = by_way(evidence)["yahoo"]

    assert (yahoo.corrected.count, yahoo.corrected.p50, yahoo.corrected.mean) == (3, 100, pytest.approx(-100 / 3))
    assert yahoo.uncorrected is None
    assert "1 of them are negative" in yahoo.exactness


def test_each_second_has_the_figures_of_what_was_due_in_it():
    campaign, due_us = offered(100, 10, campaigns=2, probes=0)
    truth = world(campaign, due_us, due_us + np.where(due_us < 5_000_000, 100_000, 900_000), probes_from=2)
    rows = measured(looked_at(truth, turn=truth.visible_us)).by_second.to_pylist()

    assert [row["second"] for row in rows] == list(range(10))
    assert {row["events"] for row in rows} == {100}
    assert [row["p50_ms"] > 500 for row in rows] == [False] * 5 + [True] * 5


def test_an_output_for_each_event_has_the_latency_of_its_event():
    """Two outputs, for events of 0 and 100 ms, which are seen at 300 and 450 ms. No rank of a count says so."""
    cell, due_us = np.array([0, 1]), np.array([0, 100_000])
    events = by_cell(cell, due_us, due_us, None, np.zeros(2, dtype=np.bool_))
    none, one = np.zeros(2, dtype=np.bool_), np.ones(2, dtype=np.int64)
    seen = Visibility(Samples(cell, np.array([300_000, 450_000]), 5 * one), 2)

    def of_events(*, counts):
        cells = Cells(one, one, one if counts else 5 * one, none, np.array([counts] * 2), cell)
        return Ways(events, cells, seen, probes_from=2, epoch_us=0).of_events.whole.corrected_ms.tolist()

    assert of_events(counts=False) == [300.0, 350.0]
    assert of_events(counts=True) == [300.0, 350.0]


def test_of_a_value_that_is_no_count_only_the_first_moment_is_known():
    """Two events and the value 2: it may be two users, or one worth two, after whom nothing changed."""
    cell, due_us = np.array([0, 0]), np.array([0, 100_000])
    events = by_cell(cell, due_us, due_us, None, np.zeros(2, dtype=np.bool_))
    samples = Samples(np.array([0, 0]), np.array([300_000, 400_000]), np.array([1, 2]))

    def found(*, counts):
        one = np.zeros(1, dtype=np.int64)
        cells = Cells(one, one + 2, one + 2, np.zeros(1, dtype=np.bool_), np.array([counts]), one)
        return Ways(events, cells, Visibility(samples, 1), probes_from=1, epoch_us=0)

    assert found(counts=True).rank_matched.whole.corrected_ms.tolist() == [300, 300]
    assert found(counts=False).rank_matched.whole.corrected_ms.tolist() == []
    assert found(counts=True).final_value().whole.corrected_ms.tolist() == [300]
    assert found(counts=False).final_value().whole.corrected_ms.tolist() == []
    assert found(counts=False).first_seen().whole.corrected_ms.tolist() == [300]


def test_each_way_says_from_which_event_to_which_poll_it_measures():
    campaign, due_us = offered(100, 10, campaigns=2, probes=1)
    ways = by_way(looked_at(world(campaign, due_us, due_us + 100_000, probes_from=2)))

    assert FINAL in ways
    said = {way for way, each in ways.items() if "to the look that showed" in each.exactness}
    assert said == {FINAL, FIRST} & ways.keys()
    assert "from the last event of each to the look that showed its right final count" in ways[FINAL].exactness


def test_a_second_begins_on_its_microsecond():
    due_us = 7_000_000 + np.array([0, 999_999, 1_000_000, 99_999_999])

    assert latency._seconds(due_us, 7000).tolist() == [0, 0, 1, 99]


def test_a_run_whose_results_were_not_polled_has_no_latency(tmp_path):
    store = Store.create(tmp_path, "run")
    with pytest.raises(MissingEvidence, match="has no entry 'observer'"):
        evidence._looked(store)
    store.tell("observer", period_ms="often")

    with pytest.raises(MissingEvidence, match="has an entry 'observer' that can't be read"):
        evidence._looked(store)
