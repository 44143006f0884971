"""How an engine came back from each fault of a stored run: how long what took, and what a reader saw meanwhile. Pure.

All times are seconds since the fault struck. A quantity that was not reached has no value, and its note says within
what time it was not; one that does not apply to this fault or engine is not there. Quantities that tell how fast the
engine is are withheld where its counts are wrong, as everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.exposure import Exposure, exposure
from harness.measurement import Quantity, Recovery
from harness.model import FaultReport, RunSpec
from harness.processed import progress_lines
from harness.stats import Floats
from harness.store import Store
from harness.timeline import Lines, unless_missing

TWIN = "twin.json"
# So many times its usual pause without a word, and an engine is silent; pauses shorter than this are usual for anybody.
SILENT_FACTOR = 3.0
SHORTEST_SILENCE_S = 1.0
FEWEST_PAUSES = 5  # to say what is usual
UNUSUAL = f"fewer than {FEWEST_PAUSES} pauses were seen, so that nobody knows which are usual"
CALM_S = 5  # a backlog has to be small again for so many seconds, and known for so many before the fault
BASELINE_SHARE = 0.95
GRID_S = 0.1

# Name: what it is called, and in what it is told.
WORDS: dict[str, tuple[str, str]] = {
    "detect_s": ("detected", "s"),
    "restart_s": ("up again", "s"),
    "first_output_s": ("first output", "s"),
    "first_fresh_s": ("first fresh window", "s"),
    "catch_up_s": ("caught up", "s"),
    "peak_backlog": ("peak backlog", "events"),
    "backlog_area": ("backlog area", "event-s"),
    "longest_silence_s": ("longest silence", "s"),
    "loud_stop_s": ("stopped loudly", "s"),
    "wrong_value_s": ("wrong value", "s"),
    "disagreed_s": ("detectors disagreed", "s"),
}
OF_SPEED = ("restart_s", "first_output_s", "first_fresh_s", "catch_up_s", "peak_backlog", "backlog_area")


@dataclass(frozen=True)
class Watched:
    """What is known of a run over time, in seconds since its epoch."""

    faults: tuple[FaultReport, ...]  # those that landed, in the order in which they struck
    epoch_ms: int
    load_s: float
    end_s: float  # all was done, or the engine given up
    drained: bool
    progress_s: Floats  # each word of the engine about its progress
    changes_s: Floats  # each look at the results that saw counts grow
    windows: Mapping[float, float]  # the start of each window -> when anything of it was seen first
    backlog: Floats | None  # due and not done, at the end of each second
    wrong: Exposure | None
    starts_s: tuple[float, ...] = ()
    stops_s: tuple[float, ...] = ()  # the engine ended by itself
    errors: tuple[tuple[float, str], ...] = ()


def recover(run: Watched, twin: Watched | None = None, withheld: str = "") -> tuple[Recovery, ...]:
    """A recovery for each fault that landed, from its strike until the next one's."""
    return tuple(_recovery(run, number, twin, withheld) for number in range(len(run.faults)))


def of_store(store: Store, withheld: str) -> tuple[Recovery, ...]:
    """Of a stored run; empty where no fault landed."""
    if not any(entry["report"]["landed"] for entry in store.history("fault")):
        return ()
    return recover(watched(store), twin_of(store), withheld)


def link_twin(store: Store, twin: Path) -> None:
    """Name the run of the same seed without a fault, to which this one is held."""
    store.write_json(TWIN, {"run": os.path.relpath(twin, store.path)})


def twin_of(store: Store) -> Watched | None:
    """None where there is none, or nothing is left of it."""
    if not store.has(TWIN):
        return None
    twin = Store(store.path / store.read_json(TWIN)["run"])
    return unless_missing(lambda: watched(twin)) if list(twin.history("epoch")) else None


def watched(store: Store) -> Watched:
    """Read a run. What is missing of it costs its own quantities only."""
    spec: RunSpec = store.read_as("spec.json", RunSpec)
    lines = Lines(store)
    epoch_ms = int(next(store.history("epoch"))["epoch_ms"])
    told = {kind: list(store.history(kind)) for kind in ("started", "restart", "gone", "error", "engine", "fault")}

    def since_s(kind: str) -> tuple[float, ...]:
        return tuple((entry["at_ms"] - epoch_ms) / 1000 for entry in told[kind])

    faults = [msgspec.convert(entry["report"], FaultReport) for entry in told["fault"]]
    crashed = [s for s, entry in zip(since_s("gone"), told["gone"], strict=True) if entry["state"] == "crashed"]
    load_s = sum(segment.duration_ms for segment in spec.tape.profile) / 1000
    changes_s, windows = _seen(store, epoch_ms, load_s)
    return Watched(
        faults=tuple(sorted((each for each in faults if each.landed), key=lambda each: each.at_ms)),
        epoch_ms=epoch_ms,
        load_s=load_s,
        end_s=max(since_s("engine"), default=float(lines.seconds)),
        drained=any(entry["report"]["state"] == "drained" for entry in told["engine"]),
        progress_s=np.sort(np.array([(line.at_ms - epoch_ms) / 1000 for line in progress_lines(store)])),
        changes_s=changes_s,
        windows=windows,
        backlog=_backlog(lines),
        wrong=unless_missing(lambda: exposure(store)),
        starts_s=since_s("started"),
        stops_s=tuple(sorted([*since_s("restart"), *crashed])),
        errors=tuple(zip(since_s("error"), (entry["line"] for entry in told["error"]), strict=True)),
    )


def _seen(store: Store, epoch_ms: int, load_s: float) -> tuple[Floats, dict[float, float]]:
    """When counts were there that had not been, and when each window was seen first; closing events are no load."""
    samples = unless_missing(lambda: store.read_table("samples.parquet"))
    if samples is None or not samples.num_rows:
        return np.empty(0), {}
    at_s = np.asarray(samples.column("at_us").to_numpy(), dtype=np.float64) / 1e6 - epoch_ms / 1000
    window_s = (np.asarray(samples.column("window_ms").to_numpy(), dtype=np.float64) - epoch_ms) / 1000
    there = (np.asarray(samples.column("count").to_numpy()) > 0) & (window_s < load_s)
    at_s, window_s = at_s[there], window_s[there]
    order = np.argsort(at_s, kind="stable")
    starts, first = np.unique(window_s[order], return_index=True)
    return np.unique(at_s), dict(zip(starts.tolist(), at_s[order][first].tolist(), strict=True))


def _backlog(lines: Lines) -> Floats | None:
    """Against what was due, not what was sent: a fault that stops the generator too makes no backlog smaller."""
    if lines.processed is None:
        return None
    ends_s = np.arange(1, lines.seconds + 1, dtype=np.float64)
    return np.asarray(np.maximum(0.0, np.cumsum(lines.offered()) - lines.processed.known(ends_s)))


@dataclass(frozen=True)
class _Stretch:
    """What one fault is answerable for."""

    struck_s: float
    landed_s: float
    until_s: float
    calm_until_s: float  # nothing had struck before

    @property
    def lasted_s(self) -> float:
        return self.until_s - self.struck_s

    def unreached(self, what: str = "") -> Quantity:
        return Quantity(None, f"not within {self.lasted_s:.1f} s{what}")

    def inside(self, moments_s: Floats) -> Floats:
        return moments_s[(moments_s >= self.struck_s) & (moments_s <= self.until_s)]


def _recovery(run: Watched, number: int, twin: Watched | None, withheld: str) -> Recovery:
    report = run.faults[number]
    later = run.faults[number + 1 :]
    until_ms = later[0].at_ms if later else run.epoch_ms + run.end_s * 1000
    stretch = _Stretch(
        *((ms - run.epoch_ms) / 1000 for ms in (report.at_ms, report.landed_ms, until_ms, run.faults[0].at_ms))
    )
    found = dict(_quantities(run, stretch, twin))
    found["detect_s"] = _in_time(found["detect_s"], found.get("catch_up_s"))
    if twin:
        found |= dict(_over_twin(found, dict(_quantities(twin, stretch, None))))
    if withheld:
        found |= {name: Quantity(None, f"withheld: {withheld}") for name in OF_SPEED if name in found}
    return Recovery(report.spec.text, stretch.struck_s, stretch.landed_s, stretch.until_s, found)


def _quantities(run: Watched, stretch: _Stretch, twin: Watched | None) -> Iterator[tuple[str, Quantity]]:
    """In the order in which they are told."""
    yield "detect_s", _detected(run, stretch)
    back_s = [s for s in run.starts_s if stretch.landed_s <= s <= stretch.until_s]
    if back_s:
        yield "restart_s", Quantity(back_s[0] - stretch.struck_s, _times(len(back_s), "start"))
    yield "first_output_s", _first_output(run, stretch, max([stretch.landed_s, *back_s[:1]]))
    yield "first_fresh_s", _first_fresh(run, stretch)
    if run.backlog is not None:
        yield "catch_up_s", _caught_up(run.backlog, run.load_s, stretch, twin)
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
    """Only what a run without a fault has too."""
    for name in ("peak_backlog", "backlog_area", "longest_silence_s"):
        mine, other = (each[name].value if name in each else None for each in (found, twin))
        if mine is not None and other is not None:
            yield name, replace(found[name], over_twin=mine - other)


def _detected(run: Watched, stretch: _Stretch) -> Quantity:
    """By whatever said so first."""
    signs = [(s, "it ended by itself") for s in run.stops_s]
    signs += [(s, f"it said: {line}") for s, line in run.errors]
    usual_s = _silent_after_s(run.progress_s, stretch, run.load_s)
    if usual_s is not None:
        words = f"no progress for more than {usual_s:.1f} s"
        signs += [(s, words) for s in _silences_s(run.progress_s, usual_s, stretch)]
    first = min((sign for sign in signs if stretch.struck_s <= sign[0] <= stretch.until_s), default=None)
    if first is None:
        return Quantity(None, UNUSUAL) if usual_s is None else stretch.unreached()
    return Quantity(first[0] - stretch.struck_s, first[1])


def _in_time(detected: Quantity, caught_up: Quantity | None) -> Quantity:
    """A sign that came when all was well again is one of something else."""
    if detected.value is None or caught_up is None or caught_up.value is None or detected.value <= caught_up.value:
        return detected
    return Quantity(None, f"nothing was noticed before it had caught up, after {caught_up.value:.1f} s")


def _first_output(run: Watched, stretch: _Stretch, after_s: float) -> Quantity:
    later = stretch.inside(run.changes_s[run.changes_s > after_s])
    return Quantity(float(later[0]) - stretch.struck_s) if len(later) else stretch.unreached()


def _first_fresh(run: Watched, stretch: _Stretch) -> Quantity:
    """The first window that had not begun when the fault landed."""
    seen_s = [seen for start, seen in run.windows.items() if start >= stretch.landed_s and seen <= stretch.until_s]
    return Quantity(min(seen_s) - stretch.struck_s) if seen_s else stretch.unreached()


def _caught_up(backlog: Floats, load_s: float, stretch: _Stretch, twin: Watched | None) -> Quantity:
    """While events come: that a backlog goes away when nothing comes any more is no catching up."""
    baseline, whose = _of_seconds(backlog, 0.0, stretch.calm_until_s)[:-1], "before the fault"
    if len(baseline) < CALM_S and twin is not None and twin.backlog is not None:
        baseline, whose = _of_seconds(twin.backlog, 0.0, load_s), "of its twin"
    if len(baseline) < CALM_S:
        return Quantity(
            None, f"nothing to compare with: the first fault struck {stretch.calm_until_s:.1f} s into the load"
        )
    calm = float(np.quantile(baseline, BASELINE_SHARE))
    until_s = min(stretch.until_s, load_s)
    after = _of_seconds(backlog, stretch.struck_s, until_s)
    words = f"a backlog of at most {calm:,.0f} for {CALM_S} s, the p95 {whose}"
    if not len(after):
        return Quantity(None, "it struck when no events came any more")
    if after.max() <= calm:
        return Quantity(0.0, f"never fell behind: {words}")
    peak = int(after.argmax())
    place = np.flatnonzero(_runs_of(after[peak:] <= calm, CALM_S))
    if not len(place):
        return Quantity(None, f"not within the {until_s - stretch.struck_s:.1f} s in which events still came: {words}")
    return Quantity(float(np.floor(stretch.struck_s) + 1 + peak + place[0] - stretch.struck_s), words)


def _longest_silence(run: Watched, stretch: _Stretch) -> Quantity:
    """From one visible change to the next. The first pause began with the last change before the first fault; before
    a later one it belongs to the fault before."""
    first = stretch.struck_s == stretch.calm_until_s
    before = run.changes_s[run.changes_s <= stretch.struck_s][-1:] if first else np.array([stretch.struck_s])
    seen = np.append(before, stretch.inside(run.changes_s))
    open_end = not run.drained or stretch.until_s < run.end_s
    seen = np.append(seen, stretch.until_s) if open_end and len(seen) else seen
    if len(seen) < 2:
        return Quantity(None, "no change of the results was seen")
    pauses_s = np.diff(seen)
    if not run.drained and stretch.until_s >= run.end_s and pauses_s.argmax() == len(pauses_s) - 1:
        return stretch.unreached(f": nothing changed any more in the last {pauses_s[-1]:.1f} s")
    return Quantity(float(pauses_s.max()))


def _loud_stop(run: Watched, stretch: _Stretch, stops_s: list[float]) -> Quantity:
    """The outage: from the first time it ended by itself until something came out after the last."""
    after = stretch.inside(run.changes_s[run.changes_s > stops_s[-1]])
    often = _times(len(stops_s), "stop")
    if not len(after):
        return Quantity(None, f"{often}, and no output after the last, {stretch.until_s - stops_s[0]:.1f} s long")
    return Quantity(float(after[0]) - stops_s[0], often)


def _wrong_value(run: Watched, stretch: _Stretch) -> Quantity:
    if run.wrong is None:
        return Quantity(None, "not known: the results were not looked at")
    found = run.wrong.within(stretch.struck_s, stretch.until_s)
    if not len(found.cell):
        return Quantity(0.0, "no cell was seen wrong")
    of_cells_s = found.of_cells_s(stretch.until_s)
    if found.never_corrected:
        held = f"held for at least {of_cells_s.max():.1f} s"
        return Quantity(None, f"{found.never_corrected:,} of {len(of_cells_s):,} cells never corrected, {held}")
    return Quantity(float(of_cells_s.max()), f"the longest of {len(of_cells_s):,} cells, all corrected")


def _disagreed(run: Watched, stretch: _Stretch) -> Quantity:
    """Two detectors, the engine's own word and what a reader sees: for how long only one of them was alarmed."""
    told, seen = (_alarmed(moments_s, run, stretch) for moments_s in (run.progress_s, run.changes_s))
    if told is None or seen is None:
        return Quantity(None, UNUSUAL)
    only_seen, only_told = float((seen & ~told).sum() * GRID_S), float((told & ~seen).sum() * GRID_S)
    note = f"{only_seen:.1f} s of progress without fresh results, {only_told:.1f} s of fresh results without progress"
    return Quantity(only_seen + only_told, note)


def silent_s(run: Watched, moments_s: Floats) -> Floats:
    """At each second of the run, for how long it had been silent."""
    seconds = np.arange(1, int(np.ceil(run.end_s)) + 1, dtype=np.float64)
    return seconds - _before(moments_s, seconds, 0.0)


def _alarmed(moments_s: Floats, run: Watched, stretch: _Stretch) -> NDArray[np.bool_] | None:
    """On a grid, up to when all was done."""
    after_s = _silent_after_s(moments_s, stretch, run.load_s)
    if after_s is None:
        return None
    last_s = max(run.load_s, float(run.progress_s.max()), float(run.changes_s.max())) if run.drained else run.end_s
    grid_s = np.arange(stretch.struck_s, min(stretch.until_s, last_s), GRID_S)
    return np.asarray(grid_s - _before(moments_s, grid_s, 0.0) > after_s)


def _silent_after_s(moments_s: Floats, stretch: _Stretch, load_s: float) -> float | None:
    """From what was usual before the fault, or, where that was too little, in the whole load or the whole run: a middle
    is not moved by one long pause."""
    for from_s, to_s in ((0.0, stretch.calm_until_s), (0.0, load_s), (-np.inf, np.inf)):
        pauses_s = np.diff(moments_s[(moments_s >= from_s) & (moments_s <= to_s)])
        if len(pauses_s) >= FEWEST_PAUSES:
            return max(SHORTEST_SILENCE_S, SILENT_FACTOR * float(np.median(pauses_s)))
    return None


def _silences_s(moments_s: Floats, usual_s: float, stretch: _Stretch) -> list[float]:
    """When each silence of the stretch became one."""
    words_s = np.append(moments_s, np.inf)
    late = np.flatnonzero(np.diff(words_s) > usual_s)
    return [float(words_s[place]) + usual_s for place in late if words_s[place] + usual_s >= stretch.struck_s]


def _before(moments_s: Floats, at_s: Floats, never: float) -> Floats:
    """The newest moment before each of `at_s`."""
    place = np.searchsorted(moments_s, at_s, side="right") - 1
    return np.where(place >= 0, np.append(moments_s, never)[place], never)


def _of_seconds(values: Floats, from_s: float, to_s: float) -> Floats:
    """Those seconds that lie wholly or partly between."""
    return values[max(0, int(from_s)) : max(0, int(np.ceil(to_s)))]


def _runs_of(true: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Where so many in a row begin."""
    if len(true) < length:
        return np.zeros(0, dtype=np.bool_)
    return np.asarray(np.convolve(true, np.ones(length), mode="valid") >= length)


def _times(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
