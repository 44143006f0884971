"""A search as its page sees it: what its experiment.json holds, and what follows from that. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from harness.experiments.folder import Folder
from harness.experiments.searching.older_search import Answer, Held, Settings, Stage, Trial, answer, disturbed, verdicts
from harness.model import RunSpec
from reports.figures.throughput import Knee, Range, Rung


@dataclass(frozen=True)
class Searched:
    """One search, finished or not."""

    path: Path
    spec: RunSpec
    settings: Settings
    environment: Mapping[str, Any]
    trials: tuple[Trial, ...]

    @cached_property
    def tried(self) -> tuple[Trial, ...]:
        """A trial that only estimates tells of no one rate, and is no point of a curve."""
        return tuple(trial for trial in self.trials if trial.held is not Held.ESTIMATE)

    @cached_property
    def found(self) -> Answer:
        return answer(self.trials)

    @property
    def knee(self) -> Knee | None:
        """What the drawing may mark: nothing as long as neither an engine nor a generator was seen at its limit."""
        if self.found.held_per_s is None or (self.found.failed_per_s is None and not self.found.limited):
            return None
        return Knee(self.found.held_per_s, self.found.failed_per_s)

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        """Each rate with a figure, and each that failed: where its figures are withheld it still marks the zone."""
        shown = {t.rate_per_s for t in self.tried if _has_figures(t) or t.held is Held.NO}
        return tuple(self._rung(rate) for rate in sorted(shown))

    @property
    def has_figures(self) -> bool:
        return any(_has_figures(trial) for trial in self.tried)

    def _rung(self, rate_per_s: float) -> Rung:
        """One failure outweighs a success, on the ladder too; what is open is settled by the search. Where nothing was
        made but trials that do not count, the answer decides."""
        trials = self.at(rate_per_s)
        said = {trial.held for trial in trials if not self.excuse(trial)}
        known = self._verdicts.get(rate_per_s)
        return Rung(
            rate_per_s,
            achieved_per_s=range_of(trial.processed_per_s for trial in trials),
            p50_ms=range_of(trial.p50_ms for trial in trials),
            p99_ms=range_of(trial.p99_ms for trial in trials),
            held=Held.NO not in said
            and known not in (Held.NO, Held.OPEN)
            and (Held.YES in said or rate_per_s <= (self.found.held_per_s or 0.0)),
        )

    @cached_property
    def _verdicts(self) -> Mapping[float, Held]:
        return verdicts(self.trials)

    @property
    def left_open(self) -> list[Trial]:
        """The trials of rates that count as failed although none of their runs failed."""
        failed = {trial.rate_per_s for trial in self.tried if trial.held is Held.NO and not self.excuse(trial)}
        open_ = {rate for rate, held in self._verdicts.items() if held is Held.NO} - failed
        return [trial for trial in self.tried if trial.rate_per_s in open_]

    def excuse(self, trial: Trial) -> str:
        """Why it is not held against its rate that it failed; "" where it is."""
        if trial in self._spoiled:
            return trial.clock or "the machine was slow"
        return "too short to tell" if self._too_short(trial) else ""

    @cached_property
    def _spoiled(self) -> list[Trial]:
        return disturbed(self.trials)

    def _too_short(self, trial: Trial) -> bool:
        """Whether nothing speaks against its rate but that it could not be shown to be steady: a rung of the ladder may
        be shorter than the proof takes."""
        return (
            trial.stage is Stage.LADDER
            and self.settings.rung_ms < self.settings.duration_ms
            and trial.held in (Held.NO, Held.OPEN)
            and trial.p99_ms is not None
            and trial.p99_ms <= self.settings.objective_p99_ms
        )

    def at(self, rate_per_s: float | None) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.tried if trial.rate_per_s == rate_per_s)


def read(folder: Folder) -> Searched:
    """Refused, by its name, when it is missing, torn or not that of a search."""
    Folder.open(folder.path, "search")
    return Searched(
        path=folder.path,
        spec=folder.part("spec", RunSpec),
        settings=folder.part("settings", Settings),
        environment=folder.part("environment", dict[str, Any]),
        trials=folder.part("trials", tuple[Trial, ...]),
    )


def _has_figures(trial: Trial) -> bool:
    return any(figure is not None for figure in (trial.p50_ms, trial.p99_ms, trial.processed_per_s))


def range_of(figures: Iterable[float | None]) -> Range | None:
    """Of those that are known."""
    known = [figure for figure in figures if figure is not None]
    return Range(min(known), float(median(known)), max(known)) if known else None
