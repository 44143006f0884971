"""Report which one a command uses if a local folder has the name of a shipped engine or workload."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.engines import shipped
from harness.util.suggest import is_file
from workloads.shipped import WORKLOADS

ENGINES = ("engine", "engines", "base", "head", "old", "new")  # parameters of commands that name engines


def sentences(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence per such name in the parameters of a command."""
    named = [name for key in ENGINES for name in _names(given.get(key))]
    yield from _of("engine", named, shipped.SHIPPED, shipped.FILE)
    yield from _of("workload", _names(given.get("workload")), WORKLOADS, "workload.toml")


def _names(value: Any) -> list[str]:
    return [name for name in ([value] if isinstance(value, str) else value or ()) if isinstance(name, str)]


def _of(what: str, names: Collection[str], shipped: Collection[str], file: str) -> Iterator[str]:
    for name in dict.fromkeys(names):
        if name in shipped and is_file(Path(name, file)):
            is_shipped = f"{name} is the shipped {what}."
            yield f"{is_shipped} Write ./{name} for the one in your folder {name}."
