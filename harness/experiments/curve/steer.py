"""The choice of the next rate while the engine runs: a pure function of the offered load and the engine's states.

The order is a warm-up, a look for the rate at which the engine falls behind, a rest, then levels from low to high;
those near the answer are visited twice. The engine's reports and the visible results steer the search: they decide
which rates to visit, never the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile

import numpy as np

from harness.experiments.curve import service
from harness.experiments.curve.plateau import Piece, Standing, Why

LEFT_BEHIND = 0.3  # of the objective: a rest follows
LINK = 2  # index of the rung that is repeated at the end, and equal in all runs
UNSENT_MS = 1000.0  # a generator further behind can't keep up
SLOWER = 0.8


@dataclass(frozen=True)
class Settings:
    """Settings of a search within one engine run. Lengths are in windows of load."""

    window_ms: int = 10_000
    objective_p99_ms: float = 10_000.0
    start_per_s: float = 50_000.0
    most_per_s: float = 1e9  # the highest rate that the generator is known to send; by default no limit
    warm_up_least: int = 3
    warm_up_most: int = 8
    warm_within: float = 0.05  # largest difference of service times per event between steady windows
    look_factor: float = 1.5
    look_most: int = 10
    rest_share: float = 0.1
    rest_most: int = 6
    rung: int = 1
    short: int = 2  # length of steps beyond the candidates, and of the link
    ladder: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.65)
    candidate: float = 0.75  # the first; the second is where the first predicts the objective
    stride: float = 1.25  # largest factor between them
    long: int = 7  # the first block is for settling
    beyond: float = 1.2  # and so on, until the engine is behind by this share of the objective
    beyond_until: float = 0.4
    beyond_most: int = 4
    link_per_s: float | None = None  # the rate that another run had early and late
    pulse_times: float | None = None  # of the lower candidate, at the end; None: no burst
    pulse_steps: int = 3  # least number of the engine's reports
    pulse_most: int = 3
    most: int = 54  # most windows of all but the burst

    @property
    def patience_ms(self) -> float:
        """The delay of the oldest event after which a load step can't meet the objective any more."""
        return 1.5 * self.objective_p99_ms

    def events_of(self, pieces: Sequence[Piece]) -> float:
        return sum(piece.rate_per_s for piece in pieces) * self.window_ms / 1000


QUICK = Settings()


def budget_s(settings: Settings) -> dict[str, tuple[int, int]]:
    """Return the least and the most length of each part. The total has its own limit."""
    own = settings
    parts = {
        "warm-up": (own.warm_up_least, own.warm_up_most),
        "look": (1, own.look_most),
        "rest": (1, 6 * own.rest_most),  # after the look, and after steps that left too much backlog
        "ladder": (len(own.ladder) * own.rung,) * 2,
        "candidates, twice": (4, 4 * own.long),
        "beyond": (1, own.beyond_most * own.short),
        "link": (own.short,) * 2,
    }
    if own.pulse_times:
        parts["pulse"] = (0, own.pulse_most + own.rest_most)
    parts["all"] = (sum(least for least, _ in parts.values()), own.most + parts.get("pulse", (0, 0))[1])
    window_s = own.window_ms // 1000
    return {name: (least * window_s, most * window_s) for name, (least, most) in parts.items()}


def next_piece(settings: Settings, pieces: Sequence[Piece], standings: Sequence[Standing]) -> Piece | None:
    """Return the next piece. Call it shortly before the end of the load so far. None: the load is complete."""
    if not pieces:
        return Piece(_round(settings.start_per_s), Why.WARM_UP, 0)
    return _Course(settings, pieces, standings).following()


class _Course:
    def __init__(self, settings: Settings, pieces: Sequence[Piece], standings: Sequence[Standing]) -> None:
        self._settings, self._pieces, self._standings = settings, pieces, standings
        self._last, self._now = pieces[-1], standings[-1]

    def following(self) -> Piece | None:
        last = self._last
        if last.why is Why.PULSE:
            return self._after_pulse()
        if len(self._pieces) >= self._settings.most:
            return self._pulse() if self._drained else None
        if last.why is Why.WARM_UP:
            return self._after_warm_up()
        if last.why is Why.LOOK:
            return self._after_look()
        if last.why is Why.REST:
            return self._after_rest()
        return self._after_level()

    def _after_level(self) -> Piece | None:
        last = self._last
        if self._now.behind_ms > self._settings.patience_ms:
            return self._piece(self._low_per_s, Why.REST)
        if self._lasted() < self._planned(last.why, last.rate_per_s):
            return last
        following = self._level() or self._pulse()
        if following is None or self._drained:
            return following
        if following.why is not Why.PULSE and following.rate_per_s > last.rate_per_s:
            return following
        return self._piece(self._low_per_s, Why.REST)

    def _after_warm_up(self) -> Piece:
        settings, last = self._settings, self._last
        count = sum(piece.why is Why.WARM_UP for piece in self._pieces)
        long = count >= settings.warm_up_most
        if self._now.behind_ms > settings.objective_p99_ms:
            # If the rate is still too high after repeated halving, no rate meets the objective; the ladder shows that.
            return self._piece(self._low_per_s, Why.REST) if long else self._piece(last.rate_per_s / 2, Why.WARM_UP)
        if long or (count >= settings.warm_up_least and self._alike()):
            return self._piece(last.rate_per_s * settings.look_factor, Why.LOOK)
        return last

    def _alike(self) -> bool:
        """Compares the service time per event of the last two windows."""
        if len(self._standings) < 3 or not self._now.batches:
            return False
        each = [_busy_per_event_ms(a, b) for a, b in zip(self._standings[-3:], self._standings[-2:], strict=False)]
        return (
            all(math.isfinite(ms) and ms > 0 for ms in each)
            and abs(math.log(each[1] / each[0])) < self._settings.warm_within
        )

    def _after_look(self) -> Piece:
        settings, last = self._settings, self._last
        looks = sum(piece.why is Why.LOOK for piece in self._pieces)
        behind = self._now.behind_ms > 0.45 * settings.objective_p99_ms
        higher = min(last.rate_per_s * settings.look_factor, self._most_per_s)
        if behind or looks >= settings.look_most or higher <= last.rate_per_s:
            return self._piece(self._low_per_s, Why.REST)
        return self._piece(higher, Why.LOOK)

    def _after_rest(self) -> Piece | None:
        lasted = self._lasted()
        if self._drained:
            return self._level() or self._pulse()
        if lasted < self._settings.rest_most:
            return self._last
        return None if self._stood_still(lasted) else self._level()

    def _stood_still(self, windows: int) -> bool:
        """No event was done in all of them: a hanging engine needs no further rate."""
        return len(self._standings) > windows and self._standings[-1 - windows].done == self._now.done

    @property
    def _drained(self) -> bool:
        """The backlog at the begin of a load step affects its result."""
        return not self._left_behind(self._now.behind_ms)

    def _left_behind(self, behind_ms: float) -> bool:
        return behind_ms >= LEFT_BEHIND * self._settings.objective_p99_ms

    def _lasted(self) -> int:
        """Number of windows of the current load step."""
        return sum(piece.plateau == self._last.plateau for piece in self._pieces)

    def _planned(self, why: Why, rate_per_s: float) -> int:
        """Only the plan shows if a rate is a candidate, which is visited for long."""
        return next((n for w, rate, n in reversed(self._made()) if (w, rate) == (why, rate_per_s)), 0)

    def _made(self) -> list[tuple[Why, float, int]]:
        """The begun steps of the plan with their planned lengths."""
        return [(p.why, p.rate_per_s, n) for p, n in zip(self._levels, self._lengths(), strict=False)]

    @property
    def _levels(self) -> list[Piece]:
        """The first piece of each level."""
        begun = [next(group) for _, group in groupby(self._pieces, key=lambda piece: piece.plateau)]
        return [piece for piece in begun if piece.why in (Why.LEVEL, Why.AGAIN)]

    def _lengths(self) -> Iterator[int]:
        settings = self._settings
        yield from [settings.rung] * len(settings.ladder)
        yield from (settings.long, settings.long)
        yield from [settings.short] * len(self._beyond)
        yield from (settings.long, settings.long, settings.short)

    @property
    def _beyond(self) -> list[Piece]:
        """Rates above a candidate that kept up, because an estimate may be far too low."""
        after = self._levels[len(self._settings.ladder) + 2 :]
        return list(takewhile(lambda piece: piece.why is Why.LEVEL, after))

    @property
    def _next_beyond_per_s(self) -> float | None:
        """A fifth more than both candidates until the engine falls behind, but first rates between the two."""
        settings, beyond = self._settings, self._beyond
        lower, higher = sorted(self._levels[len(settings.ladder) :][:2], key=lambda each: each.rate_per_s)
        last = beyond[-1] if beyond else higher
        if len(beyond) >= settings.beyond_most or last.rate_per_s >= self._most_per_s:
            return None
        if between_per_s := self._between_per_s(lower, higher):
            return between_per_s
        beyond_both = last.rate_per_s > higher.rate_per_s
        if beyond_both and self._left_ms(last) > settings.beyond_until * settings.objective_p99_ms:
            return None
        return max(last.rate_per_s, higher.rate_per_s) * settings.beyond

    def _between_per_s(self, lower: Piece, higher: Piece) -> float | None:
        """If the growth of batches is unknown, and only the higher candidate was too much: a fifth more than the lower
        one, until that is too much.
        """
        if _service(self._warm()) is not None or not self._fell_behind(higher) or self._fell_behind(lower):
            return None
        last = self._beyond[-1] if self._beyond else lower
        more_per_s = last.rate_per_s * self._settings.beyond
        return None if self._fell_behind(last) or more_per_s >= higher.rate_per_s else more_per_s

    def _fell_behind(self, level: Piece) -> bool:
        return self._left_behind(self._left_ms(level))

    def _left_ms(self, level: Piece) -> float:
        """The delay at the end of a load step."""
        both = zip(self._pieces, self._standings, strict=False)
        return next((s.behind_ms for p, s in reversed(list(both)) if p.plateau == level.plateau), 0.0)

    def _level(self) -> Piece | None:
        """The next step of the plan: the ladder, both candidates, and rates beyond them until the engine falls behind;
        then the candidates again in the same order, so that a minute is between two visits; then the link of the end
        with the beginning.
        """
        settings, made = self._settings, self._made()
        step = len(made) - len(settings.ladder)
        if step < 0:
            return self._piece(self._rung_per_s(len(made)), Why.LEVEL)
        if step == 0:
            return self._piece(self.estimate_per_s * settings.candidate, Why.LEVEL)
        candidates = [rate for why, rate, n in made if why is Why.LEVEL and n == settings.long]
        if step == 1:
            return self._piece(self._second(candidates[0]), Why.LEVEL)
        begun = sum(why is Why.AGAIN for why, _, _ in made)
        if not begun and (higher_per_s := self._next_beyond_per_s):
            return self._piece(higher_per_s, Why.LEVEL)
        again = (*candidates, made[LINK][1])[begun:]
        return self._piece(again[0], Why.AGAIN) if again else None

    def _rung_per_s(self, rung: int) -> float:
        """The link has the same rate in each run, unless this engine run has a very different capacity."""
        shares, link_per_s = self._settings.ladder, self._settings.link_per_s
        own_per_s = self.estimate_per_s * shares[rung]
        if rung != LINK or link_per_s is None:
            return own_per_s
        between = shares[rung - 1] < link_per_s / self.estimate_per_s < shares[rung + 1]
        return link_per_s if between else own_per_s

    def _pulse(self) -> Piece | None:
        """The burst, which comes last."""
        times, candidates = self._settings.pulse_times, self._levels[len(self._settings.ladder) + 1 :]
        return self._piece(times * self._pulse_base_per_s, Why.PULSE) if times and candidates else None

    def _after_pulse(self) -> Piece | None:
        burst = next(piece for piece in self._pieces if piece.why is Why.PULSE)
        lasted = self._lasted()
        if self._last.plateau == burst.plateau:
            return self._last if lasted < self._pulse_windows else self._piece(self._pulse_base_per_s, Why.PULSE)
        stays_level = lasted > 1 and not any(self._left_behind(each.behind_ms) for each in self._standings[-2:])
        return None if stays_level or lasted >= self._settings.rest_most else self._last

    @property
    def _pulse_base_per_s(self) -> float:
        """A rate without a backlog, so that the burst's backlog is worked off soon."""
        *rungs, candidate = self._levels[: len(self._settings.ladder) + 1]
        second = self._levels[len(self._settings.ladder) + 1]
        lower = min(candidate, second, key=lambda level: level.rate_per_s)
        return rungs[-1].rate_per_s if self._fell_behind(lower) else lower.rate_per_s

    @property
    def _pulse_windows(self) -> int:
        """Long enough for some reports of the engine. Without reports one window is enough, because readers see results
        at once.
        """
        begun = next(i for i, piece in enumerate(self._pieces) if piece.why is Why.PULSE)
        first, last = self._standings[0], self._standings[begun - 1]
        steps = last.batches - first.batches
        step_ms = (last.busy_ms - first.busy_ms) / steps if steps else 0.0
        settings = self._settings
        return int(np.clip(math.ceil(settings.pulse_steps * step_ms / settings.window_ms), 1, settings.pulse_most))

    def _second(self, first_per_s: float) -> float:
        """Delay grows as 1 / (1 - utilisation). One candidate is a little below the rate where that meets the
        objective, the other one at it.
        """
        settings = self._settings
        line = _service(self._warm())
        unknown_per_s = settings.stride * first_per_s
        most = max(1000 / line[1] if line and line[1] > 0 else unknown_per_s, 1.05 * first_per_s)
        own = [i for i, piece in enumerate(self._pieces) if piece.rate_per_s == first_per_s and piece.why is Why.LEVEL]
        waited_ms = max(self._standings[i].behind_ms for i in own if i < len(self._standings))
        left = (1 - first_per_s / most) * waited_ms / settings.objective_p99_ms
        found = float(np.clip(most * (1 - left), first_per_s / settings.stride, first_per_s * settings.stride))
        if line is None:
            found = min(found, self._kept_up_per_s(own))
        return 0.93 * found if found > 1.12 * first_per_s else 0.87 * found

    @property
    def _low_per_s(self) -> float:
        return self.estimate_per_s * self._settings.rest_share

    @property
    def estimate_per_s(self) -> float:
        """The rate at which batches take half of the objective, by the batches so far: an event that comes just after
        one has begun waits for it and for the next one. Without batches it is the processed rate while the engine fell
        behind.
        """
        settings = self._settings
        line = _service(self._warm())
        if line is None:
            return self._done_per_s()
        base_ms, each_ms = line
        share = 1 - base_ms / (settings.objective_p99_ms / 2)
        highest = max(piece.rate_per_s for piece in self._pieces)
        return float(np.clip(share / each_ms * 1000, highest / 20, self._most_per_s)) if each_ms > 0 else highest

    @property
    def _most_per_s(self) -> float:
        """A rate clearly below the lowest one that the generator could not send. A lower rate right after such a one is
        not counted, because the generator is still sending the rest of the higher one.
        """
        before = [0.0, *(piece.rate_per_s for piece in self._pieces)]
        offered = zip(before, self._pieces, self._standings, strict=False)
        late = [
            SLOWER * piece.rate_per_s
            for before_per_s, piece, standing in offered
            if standing.unsent_ms > UNSENT_MS and piece.rate_per_s >= before_per_s
        ]
        return min([self._settings.most_per_s, *late])

    def _warm(self) -> Sequence[Standing]:
        first = next((i for i, piece in enumerate(self._pieces) if piece.why is not Why.WARM_UP), len(self._pieces))
        return self._standings[max(0, first - 2) :]

    def _kept_up_per_s(self, own: Sequence[int]) -> float:
        """The processed rate of a load step that left a large backlog; else infinite, because it is unknown."""
        before, after = self._standings[own[0] - 1], self._standings[own[-1]]
        if not self._left_behind(after.behind_ms) or not _told_alike(before, after):
            return math.inf
        return (after.done - before.done) / max(1, after.done_at_ms - before.done_at_ms) * 1000

    def _done_per_s(self) -> float:
        """The highest processed rate of a window, which shows the capacity while there was enough to do."""
        alike = ((a, b) for a, b in pairwise(self._standings) if _told_alike(a, b))
        rates = [(b.done - a.done) / (b.done_at_ms - a.done_at_ms) * 1000 for a, b in alike if b.done > a.done]
        return max(rates, default=self._settings.start_per_s)

    def _piece(self, rate_per_s: float, why: Why) -> Piece:
        return Piece(_round(min(rate_per_s, self._most_per_s)), why, self._last.plateau + 1)


def _told_alike(before: Standing, after: Standing) -> bool:
    """The engine's reports and the visible results have different clocks, and are not compared."""
    return (before.told_at_ms is None) == (after.told_at_ms is None)


def _busy_per_event_ms(before: Standing, after: Standing) -> float:
    events = after.done - before.done
    return (after.busy_ms - before.busy_ms) / events if events else math.nan


def _service(standings: Sequence[Standing]) -> tuple[float, float] | None:
    """A batch's time without events and per event (ms), by a line through windows; None if that does not
    measure work.
    """
    told = np.array([(s.batches, s.done, s.busy_ms) for s in standings], dtype=np.float64)
    if len(told) < 3 or not told[-1, 0]:
        return None
    batches, events, busy = np.diff(told, axis=0).T
    whole = batches > 0
    if whole.sum() < 2:
        return None
    # Each window is the mean of its batches, so that no window outweighs another.
    size, took = events[whole] / batches[whole], busy[whole] / batches[whole]
    weight = np.sqrt(batches[whole]) / took
    design = np.column_stack((np.ones(len(size)), size)) * weight[:, None]
    (base, each), *_ = np.linalg.lstsq(design, took * weight, rcond=None)
    base_ms, each_ms = max(0.0, float(base)), float(each)
    return (base_ms, each_ms) if service.is_work(base_ms, each_ms, float(size.max())) else None


def _round(rate_per_s: float) -> float:
    """Three digits are enough. Then each window of whole seconds has a whole number of events."""
    rate_per_s = max(1.0, rate_per_s)
    return float(round(rate_per_s, min(0, 2 - math.floor(math.log10(rate_per_s)))))
