"""Commands called in this process, and what they leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from harness.cli import app
from harness.terminal.command_end import ended


def invoked(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app.app, [*map(str, arguments)], catch_exceptions=False)


def exit_code(*arguments: str) -> int:
    """Call it as a shell does: errors become sentences and exit codes."""
    return ended(arguments, lambda: app.called(arguments))


def only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def kept(experiment: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((experiment / "experiment.json").read_text())
    return content
