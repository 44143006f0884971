"""How a shell completes what is not a flag: names of engines, sinks, faults, scenarios, tiers, presets, runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from generators.disorder import PRESETS
from harness import plan
from harness.engines.manifest import FAKE, IDS
from harness.experiments import chaos, one_run
from harness.experiments.folder import FILE
from harness.faults.registry import FAULTS
from harness.model import UsageError
from harness.settings import CLIENTS
from harness.store import oldest_first

Completer = Callable[[typer.Context, str], list[str]]


def _of(find: Callable[[typer.Context], Iterable[str]]) -> Completer:
    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return [word for word in find(context) if word.startswith(incomplete)]

    return complete


def _sinks(context: typer.Context) -> list[str]:
    """Of the engine that stands in the line already, else of the default one."""
    named = context.params.get("engine") or "spark"
    try:
        return [claim.name for claim in one_run.find_manifest(named if isinstance(named, str) else named[0]).sinks]
    except UsageError:
        return []


def _below(pattern: str) -> Callable[[typer.Context], list[str]]:
    return lambda _: [str(path) for path in oldest_first(path.parent for path in Path().glob(pattern))]


engine = _of(lambda _: (*IDS, FAKE))
run = _of(_below("runs/*/owner.json"))
experiment = _of(_below(f"experiments/*/{FILE}"))
run_or_experiment = _of(lambda context: [*_below("runs/*/owner.json")(context), *_below(f"*/*/{FILE}")(context)])
scenario = _of(lambda _: plan.scenarios())
tier = _of(lambda _: chaos.tiers())
OF_KEY: dict[str, Completer] = {
    "engine": engine,
    "sink": _of(_sinks),
    "fault": _of(lambda _: (*FAULTS, "none")),
    "disorder": _of(lambda _: PRESETS),
    "client": _of(lambda _: CLIENTS),
}
