"""Shell completion of values: names of engines, sinks, faults, scenarios, tiers, presets, runs.

Every command imports this module and few complete a name, so the modules that list the names are imported on use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import typer

Completer = Callable[[typer.Context, str], list[str]]


def _of(find: Callable[[typer.Context], Iterable[str]]) -> Completer:
    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return [word for word in find(context) if word.startswith(incomplete)]

    return complete


def _engines(_: typer.Context) -> Iterable[str]:
    from harness.engines.fake import FAKE
    from harness.engines.shipped import IDS

    return (*IDS, FAKE)


def _sinks(context: typer.Context) -> list[str]:
    """List the sinks of the engine on the command line, or of the default one."""
    from harness.engines import manifest as manifests
    from harness.model import UsageError

    named = context.params.get("engine") or "spark"
    try:
        return [claim.name for claim in manifests.load(named if isinstance(named, str) else named[0]).sinks]
    except UsageError:
        return []


def _faults(_: typer.Context) -> Iterable[str]:
    from harness.faults.registry import FAULTS

    return (*FAULTS, "none")


def _presets(_: typer.Context) -> Iterable[str]:
    from generators.disorder import PRESETS

    return PRESETS


def _clients(_: typer.Context) -> Iterable[str]:
    from harness.config.scenario_keys import CLIENTS

    return CLIENTS


def _scenarios(_: typer.Context) -> Iterable[str]:
    from harness.config import plan

    return plan.scenarios()


def _tiers(_: typer.Context) -> Iterable[str]:
    from harness.experiments import chaos

    return chaos.tiers()


def _below(pattern: str) -> list[str]:
    from harness.rundir.store import oldest_first

    return [str(path) for path in oldest_first(path.parent for path in Path().glob(pattern))]


def _runs(_: typer.Context) -> list[str]:
    return _below("runs/*/owner.json")


def _experiments(folders: str) -> list[str]:
    from harness.experiments.folder import FILE

    return _below(f"{folders}/*/{FILE}")


engine = _of(_engines)
run = _of(_runs)
experiment = _of(lambda _: _experiments("experiments"))
run_or_experiment = _of(lambda context: [*_runs(context), *_experiments("*")])
scenario = _of(_scenarios)
tier = _of(_tiers)
OF_KEY: dict[str, Completer] = {
    "engine": engine,
    "sink": _of(_sinks),
    "fault": _of(_faults),
    "disorder": _of(_presets),
    "client": _of(_clients),
}
