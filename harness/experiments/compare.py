"""Compare engines: the same tapes, the same questions, in rounds with a random order of engines. Pure.

In each round every engine has three runs. *Steady*: a fixed rate and no fault, for latency, cost, memory and start-up.
*Catch-up*: the engine is frozen during the load and then thawed, which shows its speed with enough work. *Kill*: it is
killed during the load, and its recovery is compared with its steady run of the same seed. Every run is judged, and one
that is not right has no figures. The single-process reference is included, if it supports the workload.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from harness.config.scenario_keys import KEYS
from harness.experiments.cases import RanCase
from harness.measuring.measurement import Recovery
from harness.measuring.stats import Interval, median_intervals
from harness.model import Outcome
from harness.util.texts import many

REFERENCE = "reference"
SCENARIO = "ad-impressions"


class Leg(StrEnum):
    """The question of one run."""

    STEADY = "steady"
    CATCH_UP = "catch-up"
    KILL = "kill"


@dataclass(frozen=True)
class Settings:
    """The settings that are equal for all engines, beside the scenario."""

    rounds: int = 5
    # Equal for steady and killed runs, so that they can be compared: long enough for the slowest engine to return after
    # a kill, and to catch up, before the load ends.
    load_s: int = 60
    kill: str = "kill@offset=25%"
    # More than enough events to keep the fastest engine busy for some seconds.
    catch_up_per_s: float = 50_000.0
    warm_s: int = 15
    frozen_s: int = 30
    catching_up_watermark: str = "60s"


QUICK = Settings(rounds=1)


@dataclass(frozen=True)
class LegRun:
    """One run to make."""

    engine: str
    leg: Leg
    seed: int

    @property
    def twin(self) -> LegRun:
        """The baseline run for its recovery."""
        return LegRun(self.engine, Leg.STEADY, self.seed)


@dataclass(frozen=True)
class Ran(RanCase):
    """The result of a run. If figures are withheld they are empty, and `withheld` is the reason."""

    case: LegRun
    withheld: str = ""
    slow: bool = False  # it counted right, and missed only the objective
    unmeasured: bool = False  # it counted right, but its speed is unknown

    @property
    def right(self) -> bool:
        return self.outcome is Outcome.PASS or self.slow or self.unmeasured


@dataclass(frozen=True)
class Sustained:
    """The result of a search for one engine."""

    sentence: str
    low_per_s: float | None
    high_per_s: float | None


@dataclass(frozen=True)
class Row:
    """One engine: the worst of its verdicts, and its figures over the rounds."""

    engine: str
    outcome: Outcome
    sentence: str
    right: bool  # it counted right in every run that was made, fast enough or not
    figures: Mapping[str, Interval]
    cost_cores: float | None  # the cores it would need to be as fast as the reference, if it scaled perfectly
    witness: str = ""  # the directory of the first run with the worst verdict
    missing: int = 0  # runs that were not made
    sustained: Sustained | None = None  # None: no search was made


@dataclass(frozen=True)
class Table:
    """The result of a comparison."""

    rows: tuple[Row, ...]

    @property
    def outcome(self) -> Outcome:
        return Outcome.worst([row.outcome for row in self.rows])

    @property
    def sentence(self) -> str:
        right = sum(row.right for row in self.rows)
        count = f"all {right}" if right == len(self.rows) else f"{right} of {len(self.rows)}"
        missing = sum(row.missing for row in self.rows)
        runs = "run that was made" if missing else "run"
        others = [f"{row.engine} {_beside(row)}" for row in self.rows if _beside(row)]
        not_made = [f"{many(missing, 'run is', 'runs are')} missing"] if missing else []
        told = [f"{count} engines counted right in every {runs}", *not_made, *([", ".join(others)] if others else [])]
        return "; ".join(told)


def _beside(row: Row) -> str:
    """Return how an engine differs from one that is right, fast enough, and measured; "" if it does not."""
    if not row.right:
        return row.outcome.value
    if row.outcome is Outcome.FAIL:
        return "misses the objective"
    return "could not be measured in every run" if row.outcome is Outcome.UNKNOWN and not row.missing else ""


def with_reference(engines: Sequence[str]) -> tuple[str, ...]:
    """Return each engine once, in the given order, with the reference."""
    return tuple(dict.fromkeys((*engines, REFERENCE)))


def runs_of(engines: Sequence[str], settings: Settings, seed: int) -> list[LegRun]:
    """Plan the runs: leg after leg in each round, with a random order of engines in each leg.

    Other load that slows the machine for some minutes then affects one leg of all, and not always the same engine.
    """
    dice = random.Random(f"compare {seed}")
    wanted = []
    for number in range(settings.rounds):
        for leg in Leg:
            order = list(engines)
            dice.shuffle(order)
            wanted += [LegRun(engine, leg, seed + number) for engine in order]
    return wanted


def keys_of(case: LegRun, settings: Settings, watermark: str = "0") -> dict[str, Any]:
    """Return the keys of a scenario for the run of this leg. A requested watermark is never made smaller."""
    own: dict[str, Any] = {"engine": case.engine, "seed": case.seed, "fault": "none"}
    if case.leg is Leg.STEADY:
        return own
    # An engine that catches up reads one partition ahead of another: if the backlog exceeds the allowed lateness,
    # events of the other one are late, and rightly dropped.
    own["watermark"] = max(settings.catching_up_watermark, watermark, key=KEYS["watermark"].read)
    if case.leg is Leg.KILL:
        return own | {"fault": settings.kill}
    load_s = settings.warm_s + settings.frozen_s
    own |= {"rate": settings.catch_up_per_s, "duration": f"{load_s}s"}
    return own | {"fault": f"pause(for={settings.frozen_s}s)@t>={settings.warm_s}s"}


# The figures of each leg: the name here, and the name among a run's figures or a recovery's quantities.
OF_STEADY = {
    "offered_per_s": "offered_per_s",
    "p50_ms": "probes_p50_ms",
    "p99_ms": "probes_p99_ms",
    "cpu_s_per_million": "engine_cpu_s_per_million",
    "peak_rss_mib": "engine_peak_rss_mib",
    "start_s": "ready_s",
}
OF_CATCH_UP = {"catch_up_per_s": "catch_up_per_s"}
OF_RECOVERY = {"first_output_s": "first_output_s", "caught_up_s": "catch_up_s"}
BUSY_CPU = "busy_cpu_s_per_million"


def of_steady(measured: Mapping[str, float]) -> dict[str, float]:
    return _named(OF_STEADY, measured)


def of_catch_up(measured: Mapping[str, float], timeline: pa.Table, thawed_s: float) -> dict[str, float]:
    busy = busy_cpu_s_per_million(timeline, thawed_s)
    return _named(OF_CATCH_UP, measured) | ({BUSY_CPU: busy} if busy is not None else {})


def of_kill(recovery: Sequence[Recovery]) -> dict[str, float]:
    """Select the figures of a killed run. A state that was not reached has no figure."""
    quantities = {name: each.value for one in recovery for name, each in one.quantities.items()}
    return _named(OF_RECOVERY, {name: value for name, value in quantities.items() if value is not None})


def _named(names: Mapping[str, str], values: Mapping[str, float]) -> dict[str, float]:
    return {name: values[there] for name, there in names.items() if there in values}


def busy_cpu_s_per_million(timeline: pa.Table, since_s: float) -> float | None:
    """Compute CPU seconds per million events during catch-up: of a warm, busy engine, without its start."""
    second, done, cores = (
        np.asarray(timeline.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)
        for name in ("second", "processed_per_s", "cpu_engine")
    )
    busy = (second >= since_s) & np.isfinite(done) & np.isfinite(cores)
    events = float(done[busy].sum())
    return float(cores[busy].sum()) / events * 1e6 if events > 0 else None


def table(
    engines: Sequence[str],
    done: Sequence[Ran],
    seed: int,
    sustained: Mapping[str, Sustained] | None = None,
    missing: Sequence[LegRun] = (),
) -> Table:
    intervals = {engine: _intervals([each for each in done if each.case.engine == engine], seed) for engine in engines}
    fastest = intervals.get(REFERENCE, {}).get("catch_up_per_s")
    rows = (
        _row(engine, done, intervals[engine], fastest, [case for case in missing if case.engine == engine])
        for engine in engines
    )
    return Table(tuple(replace(row, sustained=(sustained or {}).get(row.engine)) for row in rows))


def _row(
    engine: str,
    done: Sequence[Ran],
    figures: Mapping[str, Interval],
    fastest: Interval | None,
    missing: Sequence[LegRun],
) -> Row:
    """Build the row of an engine. A missing run counts as UNKNOWN, so that the engine can't PASS."""
    own = [each for each in done if each.case.engine == engine]
    outcome = Outcome.worst([*(each.outcome for each in own), *(Outcome.UNKNOWN for _ in missing)])
    witness = next((each for each in own if each.outcome is outcome), None)
    not_made = f"not run: {', '.join(f'{case.leg}, seed {case.seed}' for case in missing)}"
    sentence = f"{witness.case.leg}, seed {witness.case.seed}: {witness.sentence}" if witness else not_made
    busy = figures.get(BUSY_CPU)
    cores = fastest.median * busy.median / 1e6 if fastest and busy else None
    right = bool(own) and all(each.right for each in own)
    return Row(engine, outcome, sentence, right, figures, cores, witness.run if witness else "", len(missing))


def _intervals(own: Sequence[Ran], seed: int) -> dict[str, Interval]:
    """Compute the figures of an engine; none if it counted wrong in any leg: no speed for wrong answers."""
    if any(each.outcome is Outcome.FAIL and not each.slow for each in own):
        return {}
    return median_intervals([each.figures for each in own], seed)
