"""The cases of an experiment as a grid that fills, from its file and from its runs on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.rundir import markers
from reports.live.follow import HISTORY, Tail, read_json

FILE = markers.EXPERIMENT
RUNS = ("runs/*/owner.json", "*/runs/*/owner.json")  # the second one: of searches inside of a comparison
WAITING, RUNNING, ENDED, NOT_POSSIBLE = "waiting", "running", "ended", "not possible"
NAMES = ("fault", "leg", "name")  # keys of a case that tell it from others of the same engine
CASES_MOST = 2000


@dataclass(frozen=True)
class RunSeen:
    """A run of the experiment, as its folder shows it."""

    path: str  # relative to the experiment
    state: str  # RUNNING, or the outcome
    sentence: str = ""
    title: str = ""


@dataclass(frozen=True)
class Case:
    """A cell of the grid."""

    label: str
    state: str
    word: str = ""  # the answer of this case, if it is not the outcome
    sentence: str = ""
    run: str = ""


class Runs:
    """The runs of an experiment. One that has a verdict is read once."""

    def __init__(self, experiment: Path) -> None:
        self._experiment = experiment
        self._judged: dict[str, RunSeen] = {}

    def seen(self) -> list[RunSeen]:
        """Return all runs, oldest first."""
        owners = [path for pattern in RUNS for path in self._experiment.glob(pattern)]
        return [self._one(path.parent) for path in sorted(owners, key=lambda path: path.parent.name)]

    def _one(self, run: Path) -> RunSeen:
        name = run.relative_to(self._experiment).as_posix()
        if name not in self._judged:
            spec, verdict = read_json(run / "spec.json"), read_json(run / "verdict.json")
            title = _title(spec) if isinstance(spec, dict) else ""
            if not isinstance(verdict, dict):
                return RunSeen(name, RUNNING, title=title)
            self._judged[name] = RunSeen(
                name, str(verdict.get("outcome")), str(verdict.get("sentence")), title or run.name
            )
        return self._judged[name]


def grid_of(content: Mapping[str, Any], runs: Sequence[RunSeen]) -> list[Case]:
    """Return the cases in the order in which they are made: the planned ones, or else the runs. Pure."""
    wanted, done = content.get("wanted"), content.get("done") or ()
    if isinstance(wanted, list):
        return list(_planned(wanted[:CASES_MOST], [each for each in done if isinstance(each, dict)], runs))
    found = [Case(run.title or run.path, run.state, sentence=run.sentence, run=run.path) for run in runs]
    missing = wanted - len(found) if isinstance(wanted, int) else 0
    return [*found, *(Case(f"run {len(found) + number + 1}", WAITING) for number in range(missing))]


def _planned(
    wanted: Sequence[Mapping[str, Any]], done: Sequence[Mapping[str, Any]], runs: Sequence[RunSeen]
) -> Iterator[Case]:
    """Yield planned cases. Cases begin in their order, so the runs that go on are those of the first cases left."""
    outcomes = {run.path: run for run in runs}
    kept = {each.get("run", "") for each in done}
    going_on = [run for run in runs if run.path not in kept]
    for case in wanted:
        ran = next((each for each in done if each.get("case") == case), None)
        label = label_of(case)
        if ran is None:
            run = going_on.pop(0) if going_on else None
            state = WAITING if run is None else run.state if run.state != RUNNING else RUNNING
            yield Case(label, state, sentence=run.sentence if run else "", run=run.path if run else "")
            continue
        run = outcomes.get(ran.get("run", ""))
        state = run.state if run else str(ran.get("outcome") or NOT_POSSIBLE)
        yield Case(label, state, str(ran.get("seen", "")), str(ran.get("sentence", "")), str(ran.get("run", "")))


def label_of(case: Mapping[str, Any]) -> str:
    """Name a case by what tells it apart."""
    named = [str(case[name]) for name in NAMES if case.get(name)]
    place = "/".join(str(case[name]) for name in ("engine", "sink") if case.get(name))
    seed = f"seed {case['seed']}" if "seed" in case else ""
    return ", ".join(filter(None, [" ".join(named), place, seed])) or "case"


def newest(runs: Sequence[RunSeen]) -> str:
    """Return the run to show: the newest one that goes on, else the newest one; "" if there is none."""
    going_on = [run for run in runs if run.state == RUNNING] or list(runs)
    return going_on[-1].path if going_on else ""


class Grid:
    """The grid of an experiment, read again with each call of `read`."""

    def __init__(self, experiment: Path) -> None:
        self._path, self._runs, self._history = experiment, Runs(experiment), Tail(experiment / HISTORY)
        self._finished: dict[str, Any] | None = None

    def read(self) -> tuple[dict[str, Any], str]:
        """Return the grid as the page reads it, and the run to show; an empty one if the file can't be read."""
        content = read_json(self._path / FILE)
        if not isinstance(content, dict):
            return {}, ""
        for entry in self._history.lines():
            if entry.get("kind") == "finished":
                self._finished = {"outcome": entry.get("outcome"), "sentence": entry.get("sentence")}
            elif entry.get("kind") == "ended early":
                self._finished = {"outcome": "", "sentence": (str(entry.get("why")).splitlines() or [""])[0]}
        runs = self._runs.seen()
        cases = grid_of(content, runs)
        return as_object(str(content.get("kind", "experiment")), cases, finished=self._finished), newest(runs)


def as_object(kind: str, cases: Sequence[Case], *, finished: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the grid as the page reads it."""
    numbers: dict[str, int] = {}
    for case in cases:
        numbers[case.state] = numbers.get(case.state, 0) + 1
    return {"kind": kind, "cases": [asdict(case) for case in cases], "numbers": numbers, "finished": finished}


def _title(spec: Mapping[str, Any]) -> str:
    fault = spec.get("fault") or {}
    planned = "" if fault.get("action") in (None, "none") else f", {fault.get('text')}"
    return f"{spec.get('scenario')} on {spec.get('engine')}/{spec.get('sink')}{planned}"
