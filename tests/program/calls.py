"""Commands called in this process, and what they leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.drivers import one_run
from harness.terminal.command_end import ended


def invoked(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app.app, [*map(str, arguments)], catch_exceptions=False)


def exit_code(*arguments: str) -> int:
    """Call it as a shell does: errors become sentences and exit codes."""
    return ended(arguments, lambda: app.called(arguments))


def breaks_off(monkeypatch: pytest.MonkeyPatch, at: int) -> list[object]:
    """The run with that number ends by Ctrl-C. Return the list of all runs that were begun."""
    whole, runs = one_run.drive, list[object]()

    def drive(*arguments: Any, **others: Any) -> Any:
        runs.append(arguments)
        if len(runs) == at:
            raise KeyboardInterrupt
        return whole(*arguments, **others)

    monkeypatch.setattr(one_run, "drive", drive)
    return runs


def only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def kept(experiment: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((experiment / "experiment.json").read_text())
    return content
