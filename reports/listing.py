"""The output of `ls`: each run and experiment of a folder with its state, and why it ended early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.experiments.folder import BEGUN, FILE, FINISHED, Folder
from harness.judging.stored_run import StoredRun
from harness.metering.process_sampling import folder_bytes
from harness.model import UsageError
from harness.rundir import markers, store
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.services.owners import is_alive
from harness.terminal.command_end import BROKE, ENDED_EARLY
from harness.util import local_time

RUNNING, KILLED, TORN = "running", "broken off", "torn"
RECHECK = "`streamgauge recheck` judges the recorded part"
AGAIN = "too little was recorded to be judged; `streamgauge replay RUN` runs the same plan again"
RESUMED_BY = {"chaos": "chaos", "search": "search", "compare": "compare", "pairs": "compare", "scale": "scale"}
# `recheck` needs these files. A run that ended before they were written can't be judged.
JUDGED_BY = ("plan.json", "sends.parquet", "log.parquet", "observed.parquet")


@dataclass(frozen=True)
class Listed:
    """A line of the list."""

    path: Path
    kind: str  # run, or the command that makes such an experiment
    state: str
    sentence: str
    size: int = 0  # bytes
    began_ms: int | None = None  # None: unknown

    @property
    def began(self) -> str:
        return "" if self.began_ms is None else local_time.minute(self.began_ms)

    def as_object(self) -> dict[str, str | int | None]:
        key = "run" if self.kind == "run" else "experiment"
        told = {key: self.path.name, "kind": self.kind, "state": self.state, "sentence": self.sentence}
        return {**told, "bytes": self.size, "began_ms": self.began_ms}


def runs(base: Path) -> list[Listed]:
    """List the runs directly below a folder, oldest first. For an experiment list its runs, for a run only itself."""
    if markers.is_one(base, store.OWNER):
        return [_sized(run_of(Store(base)))]
    inside = base / "runs" if markers.is_one(base, FILE) else base
    return [_sized(run_of(place)) for place in store.runs(inside)]


def experiments(*bases: Path) -> list[Listed]:
    """List the experiments directly below these folders, oldest first."""
    found = [path.parent for base in bases for path in base.glob(f"*/{FILE}") if markers.is_one(path.parent, FILE)]
    return [_sized(experiment_of(path)) for path in store.oldest_first(found)]


def is_going_on(experiment: Path) -> bool:
    return experiment_of(experiment).state == RUNNING


def _sized(listed: Listed) -> Listed:
    return replace(listed, size=folder_bytes(listed.path) or 0, began_ms=store.made_ms(listed.path))


def run_of(place: Store) -> Listed:
    """Describe a run. An unreadable directory is listed as torn."""
    try:
        if place.has("verdict.json"):
            verdict = StoredRun(place).verdict
            return Listed(place.path, "run", verdict.outcome.value, verdict.sentence)
        if place.alive():
            return Listed(place.path, "run", RUNNING, "")
    except MissingEvidence as error:
        return Listed(place.path, "run", TORN, str(error))
    next_step = RECHECK if can_be_judged(place) else AGAIN
    state, sentence = _ended(_last(place, ENDED_EARLY), f"its process was killed; {next_step}", next_step)
    return Listed(place.path, "run", state, sentence)


def can_be_judged(place: Store) -> bool:
    return all(map(place.has, JUDGED_BY))


def experiment_of(path: Path) -> Listed:
    """The state comes from the experiment's history, which older versions did not write."""
    try:
        kind = Folder.open(path).kind
    except UsageError as error:
        return Listed(path, "experiment", TORN, str(error))
    told = _last(Store(path), BEGUN, FINISHED, ENDED_EARLY)
    command = RESUMED_BY.get(kind)
    goes_on = f"`streamgauge {command} --resume` resumes it" if command else "`streamgauge ls` lists its runs"
    if told is None:
        return Listed(path, kind, "unknown", f"it was written by an older version; {goes_on}")
    if told["kind"] == FINISHED:
        return Listed(path, kind, told["outcome"], told["sentence"])
    if told["kind"] == BEGUN and is_alive(told["owner"]):
        return Listed(path, kind, RUNNING, "")
    ended = told if told["kind"] == ENDED_EARLY else None
    return Listed(path, kind, *_ended(ended, f"its process was killed; {goes_on}", goes_on))


def _ended(told: Mapping[str, Any] | None, killed: str, next_step: str) -> tuple[str, str]:
    """State and sentence. Only the first line of the reason is used: it names the cause and where to read on."""
    if told is None:
        return KILLED, killed
    why = (str(told["why"]).splitlines() or [""])[0]
    return told["how"], why if told["how"] == BROKE else f"{why}; {next_step}"


def _last(place: Store, *kinds: str) -> dict[str, Any] | None:
    return next(reversed([*place.history(*kinds)]), None)
