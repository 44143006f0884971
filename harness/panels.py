"""How `--help` shows the commands: by what they are for, in order of use, each with its whole sentence."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

RUNS, EXPERIMENTS, SETTING_UP, ITSELF = (
    "A run and its results",
    "Many runs, one question",
    "Engines and this machine",
    "streamgauge itself",
)
PANELS = (RUNS, EXPERIMENTS, SETTING_UP, ITSELF)


class Commands(TyperGroup):
    """A group whose commands stand below the headings that they name as their `rich_help_panel`."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.commands[name]
            panels.setdefault(command.rich_help_panel or "Commands", []).append((name, _first_paragraph(command.help)))
        for panel in sorted(panels, key=lambda panel: PANELS.index(panel) if panel in PANELS else 0):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())
