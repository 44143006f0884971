"""The commands, as functions. Every keyword that is not named here is a flag of the command: `rate=500`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .program import Flag, asked, words_of
from .result import Experiment, Result, read


def run(
    scenario: str | Path | None = None,
    *,
    engine: str | Path | None = None,
    fault: str | Sequence[str] | None = None,
    **flags: Flag,
) -> Result:
    """Run a scenario once, and return what was found. Several faults are one plan."""
    plan = fault if fault is None or isinstance(fault, str) else "; ".join(fault)
    words = ["run", *([str(scenario)] if scenario else []), *words_of({"engine": engine, "fault": plan, **flags})]
    return read(Path(asked(words)["run"]))


def gate(base: str | Path, head: str | Path, **flags: Flag) -> Experiment:
    """Test if a change counts wrong or costs more than its baseline."""
    return _experiment(asked(["gate", *words_of({"base": base, "head": head, **flags})]), "gate")


def compare(*engines: str | Path, **flags: Flag) -> Experiment:
    """Compare engines by results, speed and cost."""
    return _experiment(asked(["compare", *map(str, engines), *words_of(flags)]), "experiment")


def search(*, engine: str | Path | None = None, **flags: Flag) -> Experiment:
    """Find the rate that an engine sustains."""
    return _experiment(asked(["search", *words_of({"engine": engine, **flags})]), "experiment")


def load(folder: str | Path) -> Result:
    """Return what a stored run found. Raise FileNotFoundError if the folder holds no judged run."""
    return read(Path(folder))


def _experiment(answer: dict[str, Any], folder: str) -> Experiment:
    return Experiment(Path(answer[folder]), answer["verdict"], answer["sentence"], answer)
