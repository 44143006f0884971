"""The deciders of a search on one living engine: by hand, and on queues whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.experiments.curve import crossing, labels, lives, pulse, service, steer
from harness.experiments.curve.labels import Held
from harness.experiments.curve.plateau import Latencies, Measured, Piece, Plateau, Standing, Why
from tools.search_proof import proof
from tools.search_proof.proof import KINDS

OBJECTIVE_MS = 10_000.0
KIND = {kind.name: kind for kind in KINDS}


def visit(number, rate, took_ms, growth=0.0, from_s=0, length_s=60, probes_ms=None):
    plateau = Plateau(number, rate, Why.LEVEL, from_s * 1000, (from_s + length_s) * 1000)
    due_ms = np.arange(plateau.from_ms, plateau.until_ms, 50.0)
    latencies = Latencies.of(due_ms, np.full(len(due_ms), took_ms), plateau)
    probes = latencies if probes_ms is None else Latencies.of(due_ms, np.full(len(due_ms), probes_ms), plateau)
    noise = np.random.default_rng(number).normal(0, 0.05 * rate, length_s)
    backlog = rate * (took_ms / 1000 + growth * np.arange(length_s)) + noise
    return Measured(plateau, probes, latencies, backlog, rate)


BURSTS = replace(steer.QUICK, pulse_times=2.0)


def following(pieces, standings):
    piece = steer.next_piece(steer.QUICK, pieces, standings)
    assert piece
    return piece


def held(*visits):
    return labels.labels(visits, OBJECTIVE_MS)[-1].held


def test_two_visits_within_the_objective_hold():
    assert held(visit(1, 1000, 4000), visit(2, 1000, 4000, from_s=200)) is Held.YES


@pytest.mark.parametrize(
    "second",
    [
        visit(2, 1000, 4000, from_s=90),  # too near
        visit(2, 1000, 4000, from_s=200, length_s=40),  # too short
        visit(2, 1000, 12_000, from_s=200),  # another story
        replace(visit(2, 1000, 4000, from_s=200), unsound="late"),
        replace(visit(2, 1000, 4000, from_s=200), backlog=np.zeros(60)),  # done, says the engine; readers wait
        visit(2, 1000, 4000, from_s=200, probes_ms=200),  # only the probes are in time
    ],
)
def test_what_was_not_shown_twice_is_open(second):
    assert held(visit(1, 1000, 4000), second) is Held.OPEN


def test_an_objective_that_is_missed_twice_fails():
    assert held(visit(1, 1000, 12_000), visit(2, 1000, 12_000, from_s=200)) is Held.NO


def test_growth_in_both_visits_fails_though_each_is_in_time():
    assert held(visit(1, 1000, 4000, 0.1), visit(2, 1000, 4000, 0.1, from_s=200)) is Held.NO


def test_growth_that_is_the_same_at_low_rates_is_no_failure():
    low = [visit(n, 100.0 * n, 4000, 0.1) for n in (1, 2)]
    assert held(*low, visit(3, 1000, 4000, 0.1), visit(4, 1000, 4000, 0.1, from_s=200)) is Held.YES


def test_the_rest_before_whole_blocks_is_settling():
    plateau = Plateau(1, 10.0, Why.LEVEL, 0, 70_000)
    due_ms = np.arange(0, 70_000, 1000.0)
    latencies = Latencies.of(due_ms, np.where(due_ms < 10_000, 9e6, 100.0), plateau)
    assert (len(latencies.blocks), latencies.samples) == (3, 60)
    assert latencies.quantile_ms(1.0) < 110


def test_a_warm_up_goes_on_until_two_windows_cost_alike():
    """Each window has 1,000 events, and takes less and less."""
    pieces, standings, busy_ms = [Piece(100.0, Why.WARM_UP, 0)], [], 0.0
    costs = iter([4000, 2000, 1000, 990, 980])
    while pieces[-1].why is Why.WARM_UP:
        busy_ms += next(costs)
        count = 1000 * len(pieces)
        standings.append(Standing(10_000 * len(pieces) - 3000, count, count, 0.0, 10 * len(pieces), busy_ms))
        pieces.append(following(pieces, standings))
    assert (len(pieces), pieces[-1].why) == (5, Why.LOOK)


def test_a_warm_up_in_which_no_batch_ended_goes_on():
    """As with one that calls done what it has fetched."""
    pieces = [Piece(100.0, Why.WARM_UP, 0)] * 3
    standings = [Standing(7000 + 10_000 * n, 1000 * n, 1000 * n, 0.0, batches=1, busy_ms=500.0) for n in range(3)]

    assert following(pieces, standings).why is Why.WARM_UP


def test_a_level_without_end_is_left():
    pieces = [Piece(100.0, Why.LEVEL, 0)]
    late = Standing(7000, 700, 10, steer.QUICK.patience_ms + 1)
    assert following(pieces, [late]).why is Why.REST
    assert following(pieces, [replace(late, waits_ms=0.0, unseen_ms=late.waits_ms)]).why is Why.REST


def test_a_look_ends_where_the_generator_does_not_follow_and_nothing_higher_is_offered():
    pieces = [Piece(100_000.0, Why.WARM_UP, 0), Piece(150_000.0, Why.LOOK, 1)]
    standings = [Standing(7000, 700_000, 700_000, 0.0), Standing(17_000, 2_100_000, 2_000_000, 0.0, unsent_ms=2000.0)]
    rest = steer.next_piece(steer.QUICK, pieces, standings)

    assert rest is not None
    assert rest.why is Why.REST
    pieces += [rest, Piece(rest.rate_per_s, Why.REST, 2)]
    standings += [Standing(27_000 + 10_000 * n, 2_100_000, 2_100_000, 0.0) for n in range(2)]
    level = steer.next_piece(replace(steer.QUICK, ladder=(5.0,)), pieces, standings)
    assert level is not None
    assert level.rate_per_s == 120_000.0


def test_a_look_goes_on_as_often_as_it_may_and_while_there_is_something_higher():
    def after(looks: int, most_per_s: float = 1e9) -> Piece:
        settings = replace(steer.QUICK, most_per_s=most_per_s)
        pieces = [Piece(100.0, Why.WARM_UP, 0), *(Piece(1000.0, Why.LOOK, 1 + n) for n in range(looks))]
        standings = [Standing(7000 + 10_000 * n, 1000 * n, 1000 * n, 0.0) for n in range(len(pieces))]
        piece = steer.next_piece(settings, pieces, standings)
        assert piece
        return piece

    most = steer.QUICK.look_most
    assert (after(most - 1).why, after(most - 1).rate_per_s) == (Why.LOOK, 1500.0)
    assert after(most).why is Why.REST
    assert (after(1, 1001.0).why, after(1, 1000.0).why) == (Why.LOOK, Why.REST)


@pytest.mark.parametrize(
    ("batches", "busy_ms", "windows"),
    [(0, 0.0, 1), (10, 20_000.0, 1), (10, 34_000.0, 2), (10, 67_000.0, 3), (10, 200_000.0, 3)],
)
def test_a_burst_lasts_for_three_steps_of_what_the_engine_told_before_it(batches, busy_ms, windows):
    """A step takes busy_ms / batches, from the first word to the last one before the burst; a window is ten seconds."""
    pieces = [Piece(100.0, Why.WARM_UP, 0), Piece(100.0, Why.LEVEL, 1), *[Piece(200.0, Why.PULSE, 2)] * 2]
    told = [(5, 1000.0), (5 + batches, 1000.0 + busy_ms), (99, 10.0), (99, 10.0)]
    standings = [Standing(7000, 1, 1, 0.0, count, busy) for count, busy in told]

    assert steer._Course(BURSTS, pieces, standings)._pulse_windows == windows


def test_what_a_generator_still_has_to_send_of_a_look_does_not_hold_a_rest_down():
    pieces = [Piece(100_000.0, Why.WARM_UP, 0), Piece(300_000.0, Why.LOOK, 1), Piece(10_000.0, Why.REST, 2)]
    standings = [Standing(7000 + 10_000 * n, 700_000 * (n + 1), 700_000 * (n + 1), 0.0) for n in range(3)]
    standings[2] = replace(standings[2], unsent_ms=1500.0)
    level = steer.next_piece(replace(steer.QUICK, ladder=(5.0,)), pieces, standings)

    assert level is not None
    assert level.rate_per_s > 100_000.0


@pytest.mark.parametrize("name", ["tells of what it fetched", "answers probes only"])
def test_the_highest_rate_of_a_liar_is_not_held(name):
    """A planted mistake: without what the readers of all events say, it would be."""
    kind, settings = KIND[name], steer.QUICK
    draw = np.random.default_rng(3)
    (course,) = proof.courses(kind, kind.engines(draw, 1), draw, [settings])
    told = proof.measured(kind, course, settings)
    twice = [label for label in crossing.answer(told, OBJECTIVE_MS).labels if label.visits > 1]
    assert twice[-1].held is not Held.YES


def test_the_service_curve_is_found():
    draw = np.random.default_rng(3)
    engines = KIND["smooth"].engines(draw, 1)
    (course,) = proof.courses(KIND["smooth"], engines, draw, [steer.QUICK])
    curve = service.fitted(proof.measured(KIND["smooth"], course, steer.QUICK))
    assert curve
    assert curve.base_ms == pytest.approx(engines.base_s[0] * 1000, rel=0.02)
    assert curve.each_ms == pytest.approx(engines.each_s[0] * 1000, rel=0.02)


@pytest.mark.parametrize("slower", [0.0, 0.05, -0.05])
def test_what_gets_slower_by_the_minute_is_told_from_larger_batches(slower):
    """Rates rise with time here, as they do in a search, and those near the answer come again."""
    told = []
    for minute, rate in enumerate([100.0, 300.0, 500.0, 700.0, 800.0, 900.0, 800.0, 900.0, 500.0]):
        events = np.full(20, rate)
        took_ms = (500 + 5 * events) * np.exp(slower * minute)
        told.append(replace(visit(minute, rate, 4000, from_s=60 * minute), batch_took_ms=took_ms, batch_events=events))
    curve = service.fitted(told)
    assert curve
    assert service.slower_a_minute(curve, told) == pytest.approx(slower, abs=0.015)


@pytest.mark.parametrize(
    ("label", "low"),
    [
        (labels.Label(800.0, Held.NO, "", 2), 800),  # whatever was foretold, at this rate it failed
        (labels.Label(800.0, Held.OPEN, "", 2), 917),  # never for a minute: nothing is known of it
    ],
)
def test_an_interval_begins_not_above_what_failed(label, low):
    told = service.Foretold(1000.0, 950.0, 0.0, 0.0)
    visits = [visit(number, rate, 4000, length_s=20) for number, rate in enumerate((500.0, 800.0, 1000.0))]
    assert crossing._interval(visits, [label], told, (0.0, 0.0))[0] == pytest.approx(low, abs=1)


def test_what_held_above_the_interval_of_an_engine_without_batches_is_open():
    """A planted mistake: by its own two visits it is held."""
    visits = [
        visit(number, rate, p99_ms, from_s=200 * number)
        for number, (rate, p99_ms) in enumerate([(300.0, 1000), (600.0, 2000), (900.0, 8000)] * 2)
    ]
    found = crossing.answer(visits, OBJECTIVE_MS)
    by_visits = {label.rate_per_s: label.held for label in labels.labels(visits, OBJECTIVE_MS)}

    assert by_visits[900.0] is Held.YES
    assert found.low_per_s is not None
    assert found.high_per_s is not None
    assert found.low_per_s < 900.0 < found.high_per_s
    assert {label.rate_per_s: label.held for label in found.labels} == {**by_visits, 900.0: Held.OPEN}


def test_lives_that_contradict_each_other_have_no_answer(monkeypatch):
    of = {1: crossing.Answer(90, 100, (), None, 0.0), 2: crossing.Answer(101, 110, (), None, 0.0)}
    each = [[visit(number, 50.0, 1000)] for number in of]
    monkeypatch.setattr(crossing, "answer", lambda own, _: of[own[0].plateau.number])
    found = lives.answer(each, OBJECTIVE_MS)

    assert found.low_per_s is None
    assert found.why_not == "one engine run ends at 100/s where another begins at 101/s"


@pytest.mark.parametrize(("silent", "known"), [(1, True), (2, False)])
def test_most_lives_have_to_have_an_interval(monkeypatch, silent, known):
    unknown = crossing.Answer(None, None, (), None, 0.0, "p99 does not grow with the rate")
    of = {1: unknown, 2: unknown if silent > 1 else crossing.Answer(90, 110, (), None, 0.0)}
    answer = crossing.Answer(90, 110, (), None, 0.0)
    monkeypatch.setattr(crossing, "answer", lambda own, _: of.get(own[0].plateau.number, answer))
    found = lives.answer([[visit(number, 50.0, 1000)] for number in (1, 2, 3)], OBJECTIVE_MS)

    assert (found.low_per_s is not None) is known
    if not known:
        assert found.why_not == "2 of 3 lives say nothing: p99 does not grow with the rate"


def test_a_rate_that_failed_in_all_lives_lies_not_below_their_interval(monkeypatch):
    answer = crossing.Answer(90.0, 110.0, (labels.Label(80.0, Held.NO, "", 2),), None, 0.0)
    monkeypatch.setattr(crossing, "answer", lambda *_: answer)
    found = lives.answer([[visit(number, 50.0, 1000)] for number in (1, 2, 3)], OBJECTIVE_MS)

    assert found.low_per_s == 80.0


def test_a_course_is_short_and_has_the_rates_of_a_curve():
    draw = np.random.default_rng(4)
    engines = KIND["noisy"].engines(draw, 5)
    for course in proof.courses(KIND["noisy"], engines, draw, [steer.QUICK] * 5):
        assert len(course.pieces) <= steer.QUICK.most
        assert len({piece.rate_per_s for piece in course.pieces if piece.why is Why.LEVEL}) >= 7


def test_the_budget_of_each_part_is_kept():
    draw = np.random.default_rng(4)
    kind, budget = KIND["all of it"], steer.budget_s(steer.QUICK)
    for course in proof.courses(kind, kind.engines(draw, 5), draw, [steer.QUICK] * 5):
        for part in (Why.WARM_UP, Why.LOOK, Why.REST):
            least_s, most_s = budget[part]
            assert least_s <= 10 * sum(piece.why is part for piece in course.pieces) <= most_s


def trigger_standings(count, per_window):
    """Of an engine whose batches last as long as their trigger, whatever is in them: two in each window."""
    done = [per_window * n for n in range(1, count + 1)]
    return [Standing(10_000 * n - 3000, all_, all_, 0.0, 2 * n, 10_000.0 * n) for n, all_ in enumerate(done, start=1)]


def test_a_batch_that_lasts_as_long_as_its_trigger_is_no_work():
    """Of Spark's Real-Time Mode: its half of the objective would be spent without an event."""
    pieces = [Piece(100_000.0, Why.WARM_UP, 0)] * 3 + [Piece(150_000.0, Why.LOOK, 1)]
    standings = trigger_standings(4, 1_000_000)
    standings[-1] = replace(standings[-1], unseen_ms=6000.0)

    rest = following(pieces, standings)
    assert (rest.why, rest.rate_per_s) == (Why.REST, 10_000.0)

    took_ms = np.linspace(5200, 5300, 200)
    told = replace(visit(1, 1000, 200), batch_took_ms=took_ms, batch_events=np.linspace(0, 1e6, 200))
    assert service.fitted([told]) is None
    assert service.fitted([replace(told, batch_took_ms=took_ms + np.linspace(0, 5000, 200))]) is not None


def test_what_was_done_in_a_window_is_of_the_time_between_two_words():
    """10,000 ms apart as they are asked, 15,000 and 5,000 as they were told."""
    pieces = [Piece(100_000.0, Why.WARM_UP, 0)] * 2 + [Piece(150_000.0, Why.LOOK, 1)]
    told = [(7000, 5000, 500_000), (17_000, 15_000, 1_500_000), (27_000, 25_500, 2_550_000)]
    standings = [Standing(at, done, done, 6000.0, told_at_ms=told_at) for at, told_at, done in told]

    assert following(pieces, standings).rate_per_s == 10_000.0


def test_what_was_done_is_not_taken_between_what_readers_saw_and_what_was_told():
    """Seen by readers at 17,000 ms, told 400 ms later: a jump of what was known, not of what was done."""
    pieces = [Piece(1000.0, Why.WARM_UP, 0)] * 3 + [Piece(1500.0, Why.LOOK, 1)]
    told = [(7000, 6500, 6000), (17_000, None, 12_000), (27_000, 17_400, 19_000), (37_000, 27_400, 29_000)]
    standings = [Standing(at, done, done, 6000.0, told_at_ms=told_at) for at, told_at, done in told]

    assert following(pieces, standings).rate_per_s == 100.0


def beyond(first_behind_ms: float, too_much_per_s: float = 300_000.0) -> list[float]:
    """What an engine without batches is offered after two candidates, 256,000/s and 140,000/s. How far behind it
    was after the first is told; it keeps up with all that is not too much."""
    steps = [(10_000.0, 3, Why.WARM_UP), (384_000.0, 1, Why.LOOK), (34_000.0, 1, Why.REST)]
    steps += [(rate, 1, Why.LEVEL) for rate in (34_200.0, 68_300.0, 120_000.0, 171_000.0, 222_000.0)]
    steps += [(256_000.0, 7, Why.LEVEL), (34_000.0, 1, Why.REST), (140_000.0, 7, Why.LEVEL)]
    pieces = [Piece(rate, why, n) for n, (rate, count, why) in enumerate(steps) for _ in range(count)]
    behind_ms = {256_000.0: first_behind_ms}
    found: list[float] = []
    while True:
        behind = [9000.0 if p.rate_per_s >= too_much_per_s else behind_ms.get(p.rate_per_s, 0) for p in pieces]
        standings = [Standing(at, at * 100, at * 99, waits_ms) for at, waits_ms in enumerate(behind, 1)]
        piece = following(pieces, standings)
        if piece.why is not Why.LEVEL:
            return found
        found += [piece.rate_per_s] if piece.rate_per_s not in found else []
        pieces.append(piece)


def test_between_a_candidate_that_was_too_much_and_one_that_was_not_others_are_offered():
    assert beyond(18_000.0) == [168_000, 202_000, 242_000, 307_000]


def test_what_is_too_much_between_two_candidates_ends_that_and_one_beyond_both_follows():
    assert beyond(18_000.0, too_much_per_s=190_000.0) == [168_000, 202_000, 307_000]


def test_beyond_two_candidates_that_it_keeps_up_with_it_goes_on_from_the_higher_one():
    assert beyond(0.0) == [307_000]


def test_a_line_crosses_between_what_was_in_time_and_what_was_not():
    """As two rates far above what Kafka Streams can do were both 20 s late, they led a line to 151,000/s."""
    rates = np.array([28_900, 57_700, 101_000, 144_000, 188_000, 216_000, 249_000, 299_000.0])
    p99_ms = np.array([[313, 316, 326, 346, 360, 612, 20_269, 20_679], [313, 316, 326, 346, 360, 612, 700, 720.0]])
    weights = np.array([10, 10, 10, 10, 10, 60, 60, 10.0])
    late, never_late = crossing._crossings(rates, p99_ms, weights, OBJECTIVE_MS)

    assert 216_000 <= late <= 249_000
    assert not never_late < 299_000


def bursts_of(course):
    return [(piece.rate_per_s, piece.plateau) for piece in course.pieces if piece.why is Why.PULSE]


def test_a_burst_comes_last_and_is_twice_a_rate_that_was_kept():
    draw = np.random.default_rng(4)
    kind = KIND["smooth"]
    for course in proof.courses(kind, kind.engines(draw, 5), draw, [BURSTS] * 5):
        (high, burst), *_, (low, after) = bursts_of(course)
        assert high == pytest.approx(2 * low, rel=0.01)
        assert after == burst + 1
        assert course.pieces[-1].why is Why.PULSE
        assert low in {piece.rate_per_s for piece in course.pieces if piece.why is Why.LEVEL}


def test_what_comes_before_a_burst_is_as_without_one():
    kind, courses = KIND["neighbours"], []
    for settings in (steer.QUICK, BURSTS):
        draw = np.random.default_rng(5)
        courses += proof.courses(kind, kind.engines(draw, 1), draw, [settings])
    without, with_one = (course.pieces for course in courses)

    assert with_one[: len(without)] == without
    assert {piece.why for piece in with_one[len(without) :]} == {Why.PULSE}


def test_a_burst_tells_about_what_an_engine_can_do():
    draw = np.random.default_rng(6)
    kind = KIND["smooth"]
    engines = kind.engines(draw, 20)
    for course, each_s in zip(proof.courses(kind, engines, draw, [BURSTS] * 20), engines.each_s, strict=True):
        (seen,) = pulse.pulses(proof.measured(kind, course, BURSTS))
        assert seen.done_per_s is not None, seen.why_not
        assert 0.6 / each_s <= seen.done_per_s <= 1.1 / each_s


def burst(waiting, after, rates=(200.0, 100.0), batches=(3, 3), unsound=""):
    """Of the backlog by the second, with what is usual at the rate: 50."""
    level = replace(visit(1, rates[1], 500), backlog=np.full(60, 50.0))
    parts = [level]
    for number, (backlog, rate, count) in enumerate(zip((waiting, after), rates, batches, strict=True), 2):
        plateau = Plateau(number, rate, Why.PULSE, number * 100_000, number * 100_000 + 1000 * len(backlog))
        parts.append(
            replace(
                visit(number, rate, 500, length_s=20),
                plateau=plateau,
                backlog=np.array(backlog, dtype=float),
                batch_took_ms=np.ones(count),
                batch_events=np.ones(count),
                unsound=unsound,
            )
        )
    (found,) = pulse.pulses(parts)
    return found


def test_a_burst_is_worked_off_when_no_more_waits_than_is_usual():
    found = burst([0, 50, 100, 150], [150, 100, 50, 20])
    assert (found.drained_s, found.why_not) == (6.0, "")
    # From the third second to the seventh: 2 x 200 and 2 x 100 were offered, and 50 fewer wait.
    assert found.done_per_s == pytest.approx((2 * 200 + 2 * 100 + 50) / 4)


@pytest.mark.parametrize(
    ("found", "why_not"),
    [
        (burst([0, 100, 200], [300, 300, 300]), "it was not worked off within 6 s"),
        (burst([0, 100], [50, 0], rates=(110.0, 100.0)), "the generator could send no burst"),
        (burst([0, 100], [50, 0], batches=(2, 3)), "fewer than 3 batches ended while it lasted"),
        (burst([np.nan, np.nan], [np.nan, np.nan]), "the backlog is not known"),
        (burst([0, 100], [50, 0], unsound="late"), "it was not sent as planned: late"),
    ],
)
def test_a_burst_that_says_nothing_says_why(found, why_not):
    assert (found.drained_s, found.done_per_s, found.why_not) == (None, None, why_not)


def test_a_burst_that_leaves_nothing_is_said_to_be_one():
    found = burst([0, 10], [20, 0])
    assert (found.drained_s, found.done_per_s, found.why_not) == (0.0, None, "")


def test_a_burst_has_no_say_in_the_answer():
    draw = np.random.default_rng(7)
    kind = KIND["noisy"]
    course = proof.courses(kind, kind.engines(draw, 1), draw, [BURSTS])[0]
    all_of_it = proof.measured(kind, course, BURSTS)
    without = [each for each in all_of_it if each.plateau.why is not Why.PULSE]
    answers = [crossing.answer(measured, OBJECTIVE_MS) for measured in (all_of_it, without)]

    assert (answers[0].low_per_s, answers[0].high_per_s) == (answers[1].low_per_s, answers[1].high_per_s)
    assert answers[0].second_way_per_s != answers[1].second_way_per_s


def test_each_life_repeats_a_rate_of_the_first():
    draw = np.random.default_rng(8)
    kind = KIND["noisy"]
    engines = kind.engines(draw, 5)
    first = proof.courses(kind, engines, draw, [steer.QUICK] * 5)
    links = [lives.link_per_s(course.pieces) for course in first]
    asked = [replace(steer.QUICK, link_per_s=link) for link in links]
    for link, course in zip(links, proof.courses(kind, engines, draw, asked), strict=True):
        own = [piece for piece in course.pieces if piece.rate_per_s == link]
        assert {piece.why for piece in own} == {Why.LEVEL, Why.AGAIN}
        assert lives.link_per_s(course.pieces) == link


def test_an_engine_that_is_another_one_by_far_has_a_link_of_its_own():
    draw = np.random.default_rng(8)
    kind = KIND["noisy"]
    engines = kind.engines(draw, 1)
    asked = replace(steer.QUICK, link_per_s=float(2 / engines.each_s[0]))
    (course,) = proof.courses(kind, engines, draw, [asked])

    assert asked.link_per_s not in {piece.rate_per_s for piece in course.pieces}
