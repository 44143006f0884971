"""The layout of `--help`: commands grouped by purpose, in order of use, with whole sentences and no Python types."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup

RUNS, EXPERIMENTS, SETTING_UP, ITSELF = (
    "A run and its results",
    "Experiments of many runs",
    "Engines and this machine",
    "streamgauge itself",
)
PANELS = (RUNS, EXPERIMENTS, SETTING_UP, ITSELF)


class Commands(TyperGroup):
    """A group whose help lists each command below the heading in its `rich_help_panel`."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.commands[name]
            panels.setdefault(command.rich_help_panel or "Commands", []).append((name, _first_paragraph(command.help)))
        for panel in sorted(panels, key=lambda panel: PANELS.index(panel) if panel in PANELS else 0):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


class Argument(TyperArgument):
    """An argument whose Python type the help does not show."""

    def display_type_rich(self, ctx: Any) -> str | None:  # noqa: ARG002 - Typer's own signature
        return None

    def _rich_display_name(self) -> str:
        return self.display_name_raw + "..." * (self.nargs != 1)

    def _usage_display_name(self) -> str:
        name = self._rich_display_name()
        return name if self.required else f"[{name}]"


def in_plain_words(command: Any) -> None:
    """Change the class of all arguments to ours, because Typer has no option for it."""
    for each in command.params:
        if isinstance(each, TyperArgument):
            each.__class__ = Argument
    for below in getattr(command, "commands", {}).values():
        in_plain_words(below)


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())
