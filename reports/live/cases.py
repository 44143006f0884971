"""The cases of an experiment as a grid that fills, from its file and from its runs on disk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.rundir import markers
from harness.services.owners import is_alive
from reports.live.follow import HISTORY, Tail, is_own, read_json

FILE = markers.EXPERIMENT
RUNS = ("runs/*/owner.json", "*/runs/*/owner.json")  # the second one: of searches inside of a comparison
WAITING, RUNNING, BROKEN_OFF, NOT_POSSIBLE = "waiting", "running", "broken off", "not possible"
NAMES = ("fault", "leg", "name")  # keys of a case that tell it from others of the same engine
# A run belongs to the first case with these values, tried in this order: a case may name an engine by its path, and a
# fault without its moment.
ALIKE = (("engine", "sink", "fault", "seed"), ("sink", "fault", "seed"), ("sink", "seed"), ())
CASES_MOST = 2000


@dataclass(frozen=True)
class RunSeen:
    """A run of the experiment, as its folder shows it."""

    path: str  # relative to the experiment
    state: str  # RUNNING, BROKEN_OFF, or the outcome
    sentence: str = ""
    title: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)  # of the keys of a case

    def is_like(self, case: Mapping[str, Any], keys: Sequence[str]) -> bool:
        return all(self.values.get(key) == case[key] for key in keys if key in case)


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
        """Return all runs, oldest first. A link is none of them: it may lead out of the experiment."""
        owners = [path for pattern in RUNS for path in self._experiment.glob(pattern)]
        runs = [path.parent for path in owners if is_own(self._experiment, path)]
        return [self._one(run) for run in sorted(runs, key=lambda run: run.name)]

    def _one(self, run: Path) -> RunSeen:
        name = run.relative_to(self._experiment).as_posix()
        if name not in self._judged:
            spec, verdict = read_json(run / "spec.json"), read_json(run / "verdict.json")
            spec = spec if isinstance(spec, dict) else {}
            title, values = _title(spec) if spec else "", _values(spec)
            if not isinstance(verdict, dict):
                return RunSeen(name, RUNNING if _goes_on(run) else BROKEN_OFF, title=title, values=values)
            self._judged[name] = RunSeen(
                name, str(verdict.get("outcome")), str(verdict.get("sentence")), title or run.name, values
            )
        return self._judged[name]


def _goes_on(run: Path) -> bool:
    """Return whether the process that makes this run is alive."""
    owner = read_json(run / markers.RUN)
    return isinstance(owner, dict) and is_alive(str(owner.get("mark", "")))


def grid_of(content: Mapping[str, Any], runs: Sequence[RunSeen]) -> list[Case]:
    """Return the cases in the order of the plan: the planned ones, or else the runs. Pure."""
    wanted, done = content.get("wanted"), content.get("done") or ()
    if isinstance(wanted, list):
        cases = [each for each in wanted[:CASES_MOST] if isinstance(each, dict)]
        return list(_planned(cases, [each for each in done if isinstance(each, dict)], runs))
    found = [Case(run.title or run.path, run.state, sentence=run.sentence, run=run.path) for run in runs]
    missing = wanted - len(found) if isinstance(wanted, int) else 0
    return [*found, *(Case(f"run {len(found) + number + 1}", WAITING) for number in range(missing))]


def _planned(
    wanted: Sequence[Mapping[str, Any]], done: Sequence[Mapping[str, Any]], runs: Sequence[RunSeen]
) -> Iterator[Case]:
    outcomes = {run.path: run for run in runs}
    made = {_key(each.get("case")): each for each in done}  # of a case that was made again, the last result
    kept = {each.get("run", "") for each in done}
    begun = _begun(wanted, made, [run for run in runs if run.path not in kept])
    for number, case in enumerate(wanted):
        label, ran, run = label_of(case), made.get(_key(case)), begun.get(number)
        if run and (ran is None or run.state == RUNNING):
            yield Case(label, run.state, sentence=run.sentence, run=run.path)
        elif ran is None:
            yield Case(label, WAITING)
        else:
            run = outcomes.get(ran.get("run", ""))
            state = run.state if run else str(ran.get("outcome") or NOT_POSSIBLE)
            yield Case(label, state, str(ran.get("seen", "")), str(ran.get("sentence", "")), str(ran.get("run", "")))


def _begun(wanted: Sequence[Mapping[str, Any]], made: Mapping[str, Any], runs: Sequence[RunSeen]) -> dict[int, RunSeen]:
    """Return the runs whose result is not stored yet, by the number of their case.

    Cases don't begin in their order if several go on at a time. A run that was broken off belongs to none: its case
    is made again when the experiment is resumed.
    """
    left = sorted(range(len(wanted)), key=lambda number: _key(wanted[number]) in made)  # the new ones come first
    found: dict[int, RunSeen] = {}
    for run in runs:
        alike = (n for keys in ALIKE for n in left if n not in found and run.is_like(wanted[n], keys))
        if run.state != BROKEN_OFF and (number := next(alike, None)) is not None:
            found[number] = run
    return found


def _key(case: Any) -> str:
    return json.dumps(case, sort_keys=True)


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
        self._path, self._runs, self._history = experiment, Runs(experiment), Tail(experiment, HISTORY)
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
            elif entry.get("kind") == "begun":  # also when it is resumed
                self._finished = None
        runs = self._runs.seen()
        cases = grid_of(content, runs)
        return as_object(str(content.get("kind", "experiment")), cases, finished=self._finished), newest(runs)


def as_object(kind: str, cases: Sequence[Case], *, finished: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the grid as the page reads it."""
    found = Counter(case.state for case in cases)
    numbers = {state: found[state] for state in sorted(found, key=lambda each: (_rank(each), each))}
    return {"kind": kind, "cases": [asdict(case) for case in cases], "numbers": numbers, "finished": finished}


def _rank(state: str) -> int:
    """Return where a state stands in a sentence: first what is known, then what goes on, then what is left."""
    return (RUNNING, WAITING).index(state) + 1 if state in (RUNNING, WAITING) else 0


def _values(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a case of `chaos` or `compare` also has."""
    fault, tape = spec.get("fault"), spec.get("tape")
    return {
        "engine": spec.get("engine"),
        "sink": spec.get("sink"),
        "fault": fault.get("text") if isinstance(fault, dict) else None,
        "seed": tape.get("seed") if isinstance(tape, dict) else None,
    }


def _title(spec: Mapping[str, Any]) -> str:
    fault = spec.get("fault") or {}
    planned = "" if fault.get("action") in (None, "none") else f", {fault.get('text')}"
    return f"{spec.get('scenario')} on {spec.get('engine')}/{spec.get('sink')}{planned}"
