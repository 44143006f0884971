"""A search as stored in its directory: its arguments, the files of each engine run, and the answer from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.experiments.curve import kept, labels
from harness.experiments.curve import lives as lives_of
from harness.experiments.curve.labels import Label
from harness.experiments.curve.plateau import Measured, Why
from harness.experiments.folder import Folder
from harness.experiments.searching import search
from harness.experiments.searching.search import Found, Lived, Settings, Unit
from harness.model import RunSpec, UsageError
from harness.rundir.store import Store
from harness.terminal.command_end import short_path

KIND = "search"
OF_BEFORE = "trials"  # key of a search of an earlier version, which had many runs


@dataclass(frozen=True)
class Searched:
    """One search, finished or not."""

    path: Path
    spec: RunSpec
    engine: str  # name on the command line
    settings: Settings
    environment: Mapping[str, Any]
    units: tuple[Unit, ...]  # figures of the reference engine beside this search
    lives: tuple[Lived, ...]
    lived: tuple[tuple[Measured, ...], ...]  # measurements of each run with right counts

    @cached_property
    def found(self) -> Found:
        return search.found(self.settings, self.lives, self.timed)

    @cached_property
    def timed(self) -> tuple[tuple[Measured, ...], ...]:
        """The measurements of each run that have latencies. Without one a rate is neither sustained nor exceeded."""
        return tuple(tuple(each for each in own if each.events.samples) for own in self.lived)

    @cached_property
    def measured(self) -> tuple[Measured, ...]:
        """The measurements of all engine runs that have latencies."""
        return tuple(each for own in self.timed for each in own)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        return self.found.answer.labels if self.found.answer else ()

    @cached_property
    def visits(self) -> Mapping[float, Sequence[Measured]]:
        """The visits that count, by rate."""
        return labels.visits(self.measured)

    @property
    def finished(self) -> bool:
        return search.finished(self.settings, self.lives)

    @property
    def shares(self) -> tuple[float, float] | None:
        return search.shares(self.found, self.units)

    def label_of(self, rate_per_s: float) -> Label:
        return next(label for label in self.labels if label.rate_per_s == rate_per_s)

    def load_s(self) -> dict[str, float]:
        """Return the length of the load by purpose."""
        found = dict.fromkeys((why.value for why in Why), 0.0)
        for each in (each for own in self.lived for each in own):
            found[each.plateau.why.value] += each.plateau.length_s
        return {name: seconds for name, seconds in found.items() if seconds}


def engine_of(folder: Folder) -> str:
    """Return the engine's name for commands. An earlier version stored the id alone, which names a shipped engine."""
    return folder.part("engine", str) if folder.holds("engine") else folder.part("spec", RunSpec).engine


def refuse_an_older(folder: Folder) -> None:
    if folder.holds(OF_BEFORE):
        raise UsageError(
            f"{short_path(folder.path)} was started by an earlier version with another search method, and can't be "
            f"read any more. Start a new search: streamgauge search."
        )


def read(folder: Folder) -> Searched:
    """Read a search. Raises UsageError if it is missing, torn or no search."""
    refuse_an_older(Folder.open(folder.path, KIND))
    lives = folder.part("lives", tuple[Lived, ...])
    stores = [Store(folder.path / life.run) for life in lives]
    kept_in = [kept.load(store) if store.has(kept.FILE) else [] for store in stores]
    return Searched(
        path=folder.path,
        spec=folder.part("spec", RunSpec),
        engine=engine_of(folder),
        settings=folder.part("settings", Settings),
        environment=folder.part("environment", dict[str, Any]),
        units=folder.part("units", tuple[Unit, ...]),
        lives=lives,
        lived=tuple(tuple(lives_of.apart(number, own)) for number, own in enumerate(kept_in)),
    )
