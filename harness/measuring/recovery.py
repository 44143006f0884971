"""Measure how an engine recovered from each fault of a stored run: durations, and what a reader saw meanwhile. Pure.

All times are seconds since the fault struck. A quantity without a value has a lack: it never happened although it could
have, or it is unknown because the load had ended or the next fault struck first. A quantity that does not apply to the
fault or engine is missing. Quantities that depend on the engine's speed are withheld if its counts are wrong.

The quantities agree with each other: started again <= first output <= first fresh window, first output <= caught up. A
sign that came only after the engine had recovered counts as no detection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.judging.stored_run import StoredRun
from harness.measuring.measurement import Lack, Quantity, Recovery
from harness.measuring.settling import BASELINE_SHARE, BEHIND_S, CALM_S, settled
from harness.measuring.stats import Floats
from harness.measuring.watched import Watched, twin_of, watched
from harness.metering import clock_steps
from harness.util.texts import many

# An engine is silent after this multiple of its usual pause; pauses shorter than this are usual for any engine.
SILENT_FACTOR = 3.0
SHORTEST_SILENCE_S = 1.0
FEWEST_PAUSES = 5  # to know the usual pause
UNUSUAL = f"fewer than {FEWEST_PAUSES} pauses were seen, too few to say what is usual"
STEADY_OUTPUT = "the results did not pause for longer than usual"
OVER = "what it did was seen undone; after a kill: the engine was seen to have gone on"
GRID_S = 0.1

# Quantity -> its label and unit.
WORDS: dict[str, tuple[str, str]] = {
    "detect_s": ("detected", "s"),
    "over_s": ("fault over", "s"),
    "restart_s": ("started again", "s"),
    "first_output_s": ("first output", "s"),
    "first_fresh_s": ("first fresh window", "s"),
    "catch_up_s": ("caught up", "s"),
    "peak_backlog": ("peak backlog", "events"),
    "backlog_area": ("backlog area", "event-s"),
    "longest_silence_s": ("longest silence", "s"),
    "loud_stop_s": ("stopped loudly", "s"),
    "wrong_value_s": ("wrong value", "s"),
    "disagreed_s": ("detectors disagreed", "s"),
    "cpu_s": ("engine CPU from then on", "s"),
    "tasks_again": ("tasks run again", "tasks"),
    "records_again": ("records read again", "records"),
    "benefit_s": ("time to benefit", "s"),
}
GROWS = ("add-worker",)  # faults after which an engine can do more
OF_SPEED = (
    *("over_s", "restart_s", "first_output_s", "first_fresh_s", "catch_up_s", "peak_backlog", "backlog_area"),
    *("cpu_s", "benefit_s"),
)


def recover(run: Watched, twin: Watched | None = None, withheld: str = "", clock: str = "") -> tuple[Recovery, ...]:
    """Measure the recovery from each fault that landed, from its strike until the next one's.

    `withheld`: why figures of speed are withheld; `clock`: why all times are withheld.
    """
    return tuple(_recovery(run, number, twin, withheld, clock) for number in range(len(run.faults)))


def of_run(run: StoredRun, withheld: str) -> tuple[Recovery, ...]:
    """Measure a stored run; empty if no fault landed."""
    if not any(entry["report"]["landed"] for entry in run.store.history("fault")):
        return ()
    return recover(watched(run), twin_of(run.store), withheld, clock_steps.in_words(run.store))


@dataclass(frozen=True)
class _Stretch:
    """The time that is attributed to one fault."""

    struck_s: float
    landed_s: float
    over_s: float | None  # None: its end was not observed
    until_s: float
    first_struck_s: float  # the strike of the first fault
    last: bool  # it is the last fault

    @property
    def lasted_s(self) -> float:
        return self.until_s - self.struck_s

    def unreached(self, nothing_was_left: str = "") -> Quantity:
        """Return a quantity for an event that did not happen: never, or unknown if the next fault or another reason
        prevented it.
        """
        if nothing_was_left:
            return Quantity(None, nothing_was_left, lack=Lack.UNKNOWN)
        if not self.last:
            return Quantity(None, f"not within {self.lasted_s:.1f} s, when the next fault struck", lack=Lack.UNKNOWN)
        return Quantity(None, f"not within {self.lasted_s:.1f} s", lack=Lack.NEVER)

    def inside(self, moments_s: Floats) -> Floats:
        return moments_s[(moments_s >= self.struck_s) & (moments_s <= self.until_s)]


@dataclass(frozen=True)
class _Outage:
    """The effect of the fault on the engine's output."""

    interrupted: bool  # it was restarted, or its results paused for longer than usual
    output: Quantity  # the first output after it

    @property
    def back_s(self) -> float:
        """When output had returned, since the strike."""
        if self.output.value is None:
            return np.inf
        return self.output.value if self.interrupted else 0.0


def _recovery(run: Watched, number: int, twin: Watched | None, withheld: str, clock: str) -> Recovery:
    stretch = _stretch(run, number)
    found = dict(_quantities(run, stretch, twin))
    if twin:
        found |= dict(_over_twin(found, dict(_quantities(twin, stretch, None))))
        found |= dict(_cpu(run, twin, stretch))
    if len(run.faults) == 1:  # neither a log nor a batch says which of several faults it was
        found |= dict(_again(run))
    if run.faults[number].spec.action in GROWS and run.backlog is not None:
        found["benefit_s"] = _benefit(run, run.backlog, stretch)
    if why := clock or withheld:
        none = Quantity(None, f"withheld: {why}", lack=Lack.WITHHELD)
        found |= {name: none for name in found if clock or name in OF_SPEED}
    return Recovery(run.faults[number].spec.text, stretch.struck_s, stretch.landed_s, stretch.until_s, found)


def _stretch(run: Watched, number: int) -> _Stretch:
    report, later = run.faults[number], run.faults[number + 1 :]

    def since_s(ms: int) -> float:
        return (ms - run.epoch_ms) / 1000

    return _Stretch(
        struck_s=since_s(report.at_ms),
        landed_s=since_s(report.landed_ms),
        over_s=since_s(report.healed_ms) if report.healed_ms else None,
        until_s=since_s(later[0].at_ms) if later else run.end_s,
        first_struck_s=since_s(run.faults[0].at_ms),
        last=not later,
    )


def _quantities(run: Watched, stretch: _Stretch, twin: Watched | None) -> Iterator[tuple[str, Quantity]]:
    """Yield the quantities in the order in which they are shown."""
    back_s = [s for s in run.starts_s if stretch.landed_s <= s <= stretch.until_s]
    outage = _outage(run, stretch, back_s)
    caught_up = None if run.backlog is None else _caught_up(run, run.backlog, stretch, outage, twin)
    yield "detect_s", _detected(run, stretch, outage, caught_up)
    yield "over_s", _over(stretch)
    if back_s:
        yield "restart_s", Quantity(back_s[0] - stretch.struck_s, many(len(back_s), "start"))
    yield "first_output_s", outage.output
    yield "first_fresh_s", _first_fresh(run, stretch, outage)
    if run.backlog is not None and caught_up is not None:
        yield "catch_up_s", caught_up
        during = _of_seconds(run.backlog, stretch.struck_s, stretch.until_s)
        yield "peak_backlog", Quantity(float(during.max(initial=0.0)))
        yield "backlog_area", Quantity(float(during.sum()))
    yield "longest_silence_s", _longest_silence(run, stretch)
    stops_s = [s for s in run.stops_s if stretch.struck_s <= s <= stretch.until_s]
    if stops_s:
        yield "loud_stop_s", _loud_stop(run, stretch, stops_s)
    yield "wrong_value_s", _wrong_value(run, stretch)
    if len(run.progress_s):
        yield "disagreed_s", _disagreed(run, stretch)


def _over_twin(found: Mapping[str, Quantity], twin: Mapping[str, Quantity]) -> Iterator[tuple[str, Quantity]]:
    """Compare the quantities that the baseline run has too."""
    for name in ("peak_backlog", "backlog_area", "longest_silence_s"):
        mine, other = (each[name].value if name in each else None for each in (found, twin))
        if mine is not None and other is not None:
            yield name, replace(found[name], over_twin=mine - other)


def _cpu(run: Watched, twin: Watched, stretch: _Stretch) -> Iterator[tuple[str, Quantity]]:
    """Compare the CPU time with that of the baseline from the same second on, each until its end or the next fault."""
    if run.cpu is None or twin.cpu is None:
        return
    used_s = run.cpu.between(stretch.struck_s, stretch.until_s)
    usual_s = twin.cpu.between(stretch.struck_s, twin.end_s if stretch.last else stretch.until_s)
    yield "cpu_s", Quantity(used_s, "of all its processes", over_twin=used_s - usual_s)


def _again(run: Watched) -> Iterator[tuple[str, Quantity]]:
    if run.tasks_lost is not None:
        yield "tasks_again", Quantity(float(run.tasks_lost), "tasks that Spark's driver logged as lost")
    if run.records_again:
        yield "records_again", Quantity(float(run.records_again), "in batches that ran again after a restart")


def _benefit(run: Watched, backlog: Floats, stretch: _Stretch) -> Quantity:
    """Return when the backlog is below what it was when the change began, and stays there, during the load only."""
    before = _of_seconds(backlog, max(0.0, stretch.struck_s - CALM_S), stretch.struck_s)
    if len(before) < CALM_S:
        return Quantity(
            None, f"nothing to compare with: it came {stretch.struck_s:.1f} s into the load", lack=Lack.UNKNOWN
        )
    most = float(before.max())
    if most <= BEHIND_S * run.offered_per_s:
        told = f"nothing to gain: at most {most:,.0f} events were due and not done, less than a second's worth"
        return Quantity(None, told, lack=Lack.UNKNOWN)
    after = _of_seconds(backlog, np.ceil(stretch.landed_s), min(stretch.until_s, run.load_s))
    words = f"for {CALM_S} s fewer than the {most:,.0f} events that were due and not done before it"
    calm = settled(after, np.nextafter(most, 0.0))
    if calm is not None:
        return Quantity(float(np.ceil(stretch.landed_s)) + 1 + calm - stretch.struck_s, words)
    if stretch.until_s < run.load_s:
        return stretch.unreached()
    return Quantity(None, f"not before the load ended: {words}", lack=Lack.NEVER)


def _outage(run: Watched, stretch: _Stretch, back_s: Sequence[float]) -> _Outage:
    """Count output from the restart, else from the first unusual pause that began before the fault was over."""
    if back_s:
        return _Outage(True, _first_output(run, stretch, back_s[0], _of_the_new(run, stretch, back_s[0])))
    paused_s = _first_pause_s(run, stretch)
    began_s = stretch.landed_s if paused_s is None else max(stretch.landed_s, paused_s)
    note = STEADY_OUTPUT if paused_s is None else ""
    return _Outage(paused_s is not None, _first_output(run, stretch, began_s, run.changes_s, note))


def _of_the_new(run: Watched, stretch: _Stretch, back_s: float) -> Floats:
    """Return changes that the old process can't have made.

    Either the poll before began after that process was gone, or the window is new and began later. A poll that begins
    before a kill may read after it what the old process wrote.
    """
    gone_s = max([stretch.landed_s, *(s for s in run.stops_s if s <= back_s)])
    fresh = [seen_s for start_s, seen_s in run.windows.items() if start_s >= gone_s]
    return np.union1d(run.changes_s[run.since_s >= gone_s], fresh)


def _first_pause_s(run: Watched, stretch: _Stretch) -> float | None:
    """Return when the first unusual pause of the results began that this fault may have caused."""
    usual_s = _silent_after_s(run.changes_s, stretch, run.load_s)
    if usual_s is None:
        return None
    open_end = np.array([] if run.drained else [np.inf])
    ends_s = np.append(run.changes_s[1:], open_end)
    begins_s = run.changes_s[: len(ends_s)]
    over_s = stretch.until_s if stretch.over_s is None else stretch.over_s
    unusual = (ends_s - begins_s > usual_s) & (ends_s > stretch.landed_s) & (begins_s <= max(stretch.landed_s, over_s))
    return float(begins_s[unusual][0]) if unusual.any() else None


def _detected(run: Watched, stretch: _Stretch, outage: _Outage, caught_up: Quantity | None) -> Quantity:
    """Return the first sign of the fault. A sign that came after the recovery belongs to something else."""
    signs = [(s, "it ended by itself") for s in run.stops_s]
    signs += [(s, f"it logged: {line}") for s, line in run.errors]
    usual_s = _silent_after_s(run.progress_s, stretch, run.load_s)
    if usual_s is not None:
        signs += _silences(run.progress_s, usual_s, stretch)
    first = min((sign for sign in signs if stretch.struck_s <= sign[0] <= stretch.until_s), default=None)
    if first is None:
        return Quantity(None, UNUSUAL, lack=Lack.UNKNOWN) if usual_s is None else stretch.unreached()
    after_s, (well_s, what) = first[0] - stretch.struck_s, _well_again(run, stretch, outage, caught_up)
    if after_s <= well_s:
        return Quantity(after_s, first[1])
    return Quantity(None, f"nothing was noticed before {what}, after {well_s:.1f} s", lack=Lack.NEVER)


def _well_again(run: Watched, stretch: _Stretch, outage: _Outage, caught_up: Quantity | None) -> tuple[float, str]:
    """Return until when a sign can belong to this fault, and the name of that time."""
    moments = [(stretch.lasted_s, "the end of its time")]
    if outage.interrupted:
        moments.append((outage.back_s, "its first output"))
    elif caught_up is not None and caught_up.value:
        moments.append((caught_up.value, "it had caught up"))
    elif stretch.over_s is not None:
        moments.append((stretch.over_s - stretch.struck_s, "the fault was over"))
    if run.drained and len(run.changes_s):
        moments.append((max(0.0, float(run.changes_s[-1]) - stretch.struck_s), "all was done"))
    return min(moments)


def _over(stretch: _Stretch) -> Quantity:
    """Return the time that the page marks as the end of the fault."""
    if stretch.over_s is None:
        return Quantity(None, "what it did was not seen undone", lack=Lack.NEVER)
    return Quantity(stretch.over_s - stretch.struck_s, OVER)


def _first_output(run: Watched, stretch: _Stretch, began_s: float, changes_s: Floats, note: str = "") -> Quantity:
    later = stretch.inside(changes_s[changes_s > began_s])
    if not len(later):
        return stretch.unreached("all had come out already" if run.drained and stretch.last else "")
    return Quantity(float(later[0]) - stretch.struck_s, note)


def _first_fresh(run: Watched, stretch: _Stretch, outage: _Outage) -> Quantity:
    """Return when the first window was seen that had not begun when the fault landed."""
    fresh = {start: seen for start, seen in run.windows.items() if start >= stretch.landed_s}
    output_s = np.inf if outage.output.value is None else stretch.struck_s + outage.output.value
    seen_s = [seen for seen in fresh.values() if output_s <= seen <= stretch.until_s]
    if seen_s:
        return Quantity(min(seen_s) - stretch.struck_s)
    return stretch.unreached("no window began after it had landed" if run.drained and not fresh else "")


def _caught_up(run: Watched, backlog: Floats, stretch: _Stretch, outage: _Outage, twin: Watched | None) -> Quantity:
    """Return when the engine caught up, during the load only: without new events any backlog shrinks."""
    usual, whose = _usual_backlog(run, backlog, stretch, twin)
    if usual is None:
        return Quantity(None, whose, lack=Lack.UNKNOWN)
    words = f"at most {usual:,.0f} events behind, which is the p95 {whose} and one second's worth"
    until_s = min(stretch.until_s, run.load_s)
    after = _of_seconds(backlog, stretch.struck_s, until_s)
    if not len(after):
        return Quantity(None, "it struck when no events came any more", lack=Lack.UNKNOWN)
    first = int(np.argmax(after > usual))
    if after[first] <= usual or first > _felt_s(stretch, outage) + CALM_S:
        return _kept_up(outage, words)
    calm = settled(after, usual, start=first)
    if calm is not None and outage.back_s < np.inf:
        reached_s = float(np.floor(stretch.struck_s) + 1 + calm - stretch.struck_s)
        return Quantity(max(reached_s, outage.back_s), f"for {CALM_S} s {words}")
    if run.drained and until_s == run.load_s:
        told = f"the load ended {until_s - stretch.struck_s:.1f} s after it struck, with {after[-1]:,.0f} events to do"
        return Quantity(None, told, lack=Lack.UNKNOWN)
    return stretch.unreached()


def _usual_backlog(run: Watched, backlog: Floats, stretch: _Stretch, twin: Watched | None) -> tuple[float | None, str]:
    """Return the backlog above which the engine is behind, and its source; without one, None and the reason."""
    before, whose = _of_seconds(backlog, 0.0, stretch.first_struck_s)[:-1], "before the fault"
    if len(before) < CALM_S and twin is not None and twin.backlog is not None:
        before, whose = _of_seconds(twin.backlog, 0.0, run.load_s), "of its baseline run"
    if len(before) < CALM_S:
        return None, f"nothing to compare with: the first fault struck {stretch.first_struck_s:.1f} s into the load"
    return float(np.quantile(before, BASELINE_SHARE)) + BEHIND_S * run.offered_per_s, whose


def _felt_s(stretch: _Stretch, outage: _Outage) -> float:
    """Return how long the fault may make an engine fall behind: until it is over and output has returned."""
    over_s = stretch.until_s if stretch.over_s is None else stretch.over_s
    return max(over_s - stretch.struck_s, min(outage.back_s, stretch.lasted_s))


def _kept_up(outage: _Outage, words: str) -> Quantity:
    """An engine that never fell behind has caught up with its first output."""
    if outage.back_s < np.inf:
        return Quantity(outage.back_s, f"never fell behind: {words}")
    return replace(outage.output, note=f"no output came: {outage.output.note}")


def _longest_silence(run: Watched, stretch: _Stretch) -> Quantity:
    """Return the longest pause between visible changes.

    For the first fault it includes the pause from the last change before the strike; before a later fault that pause
    belongs to the fault before.
    """
    first = stretch.struck_s == stretch.first_struck_s
    before = run.changes_s[run.changes_s <= stretch.struck_s][-1:] if first else np.array([stretch.struck_s])
    seen = np.append(before, stretch.inside(run.changes_s))
    open_end = not run.drained or stretch.until_s < run.end_s
    seen = np.append(seen, stretch.until_s) if open_end and len(seen) else seen
    if len(seen) < 2:
        return Quantity(None, "no change of the results was seen", lack=Lack.UNKNOWN)
    pauses_s = np.diff(seen)
    if not run.drained and stretch.until_s >= run.end_s and pauses_s.argmax() == len(pauses_s) - 1:
        return Quantity(None, f"nothing changed any more in the last {pauses_s[-1]:.1f} s", lack=Lack.NO_END)
    return Quantity(float(pauses_s.max()))


def _loud_stop(run: Watched, stretch: _Stretch, stops_s: list[float]) -> Quantity:
    """Return the outage from the first stop by itself to the first output after the last."""
    after = stretch.inside(run.changes_s[run.since_s >= stops_s[-1]])
    often = many(len(stops_s), "stop")
    if not len(after):
        told = f"{often}, and no output after the last, {stretch.until_s - stops_s[0]:.1f} s long"
        return Quantity(None, told, lack=Lack.NO_END if stretch.last else Lack.UNKNOWN)
    return Quantity(float(after[0]) - stops_s[0], often)


def _wrong_value(run: Watched, stretch: _Stretch) -> Quantity:
    if run.wrong is None:
        return Quantity(None, run.why_unknown, lack=Lack.UNKNOWN)
    found = run.wrong.within(stretch.struck_s, stretch.until_s)
    if not len(found.cell):
        return Quantity(0.0, "no cell was seen wrong")
    of_cells_s = found.of_cells_s(stretch.until_s)
    if found.never_corrected:
        held = f"held for at least {of_cells_s.max():.1f} s"
        told = f"{found.never_corrected:,} of {many(len(of_cells_s), 'cell')} never corrected, {held}"
        return Quantity(None, told, lack=Lack.NO_END)
    return Quantity(float(of_cells_s.max()), f"the longest of {many(len(of_cells_s), 'cell')}, all corrected")


def _disagreed(run: Watched, stretch: _Stretch) -> Quantity:
    """Compare two detectors, the engine's progress and the visible results: how long only one of them was alarmed."""
    told, seen = (_alarmed(moments_s, run, stretch) for moments_s in (run.progress_s, run.changes_s))
    if told is None or seen is None:
        return Quantity(None, UNUSUAL, lack=Lack.UNKNOWN)
    only_seen, only_told = float((seen & ~told).sum() * GRID_S), float((told & ~seen).sum() * GRID_S)
    note = f"{only_seen:.1f} s of progress without fresh results, {only_told:.1f} s of fresh results without progress"
    return Quantity(only_seen + only_told, note)


def silent_s(run: Watched, moments_s: Floats) -> Floats:
    """Return for each second of the run how long there had been no change."""
    seconds = np.arange(1, int(np.ceil(run.end_s)) + 1, dtype=np.float64)
    return seconds - _before(moments_s, seconds, 0.0)


def _alarmed(moments_s: Floats, run: Watched, stretch: _Stretch) -> NDArray[np.bool_] | None:
    """Return alarms on a time grid that ends when all was done."""
    after_s = _silent_after_s(moments_s, stretch, run.load_s)
    if after_s is None:
        return None
    told_s = np.concatenate((run.progress_s, run.changes_s))
    last_s = float(told_s.max(initial=run.load_s)) if run.drained else run.end_s
    grid_s = np.arange(stretch.struck_s, min(stretch.until_s, last_s), GRID_S)
    return np.asarray(grid_s - _before(moments_s, grid_s, 0.0) > after_s)


def _silent_after_s(moments_s: Floats, stretch: _Stretch, load_s: float) -> float | None:
    """Return the pause that counts as silence, from the median pause before the fault.

    If there were too few pauses, take those of the load or the run. A median is not moved by one long pause.
    """
    for from_s, to_s in ((0.0, stretch.first_struck_s), (0.0, load_s), (-np.inf, np.inf)):
        pauses_s = np.diff(moments_s[(moments_s >= from_s) & (moments_s <= to_s)])
        if len(pauses_s) >= FEWEST_PAUSES:
            return max(SHORTEST_SILENCE_S, SILENT_FACTOR * float(np.median(pauses_s)))
    return None


def _silences(moments_s: Floats, usual_s: float, stretch: _Stretch) -> Iterator[tuple[float, str]]:
    """Yield when each pause became a silence, and since when it had lasted."""
    words_s = np.append(moments_s, np.inf)
    for last_s in words_s[:-1][np.diff(words_s) > usual_s].tolist():
        if last_s + usual_s >= stretch.struck_s:
            side = "before" if last_s <= stretch.struck_s else "after"
            since = f"the last came {abs(last_s - stretch.struck_s):.1f} s {side} it struck"
            yield last_s + usual_s, f"no progress for more than {usual_s:.1f} s: {since}"


def _before(moments_s: Floats, at_s: Floats, never: float) -> Floats:
    """Return the newest time before each of `at_s`."""
    place = np.searchsorted(moments_s, at_s, side="right") - 1
    return np.where(place >= 0, np.append(moments_s, never)[place], never)


def _of_seconds(values: Floats, from_s: float, to_s: float) -> Floats:
    """Return the seconds that overlap this time."""
    return values[max(0, int(from_s)) : max(0, int(np.ceil(to_s)))]
