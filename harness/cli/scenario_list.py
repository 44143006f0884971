"""The output of `run --list`: the shipped scenarios in groups, in at most one screen of a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence

from harness.terminal import console

Groups = Mapping[str, Mapping[str, str]]  # group -> name -> what the scenario is

HEADER = ("group", "scenario", "what")
VARIANTS = ("calm", "late", "sliding")  # `enrichment-calm` and `enrichment-late` are variants of `enrichment`
ON_VARIANTS = "NAME-calm has no fault, -late has late events, -sliding windows that overlap."


def shown(groups: Groups) -> str:
    """Lay out the list for stdout: at most one screen of a terminal, or a line for each scenario in a pipe."""
    if not sys.stdout.isatty():
        return console.fitted_table(rows(groups), HEADER, None)
    columns, height = shutil.get_terminal_size()
    return "\n".join(fitted(groups, columns - 1, height - 1))


def fitted(groups: Groups, width: int, height: int) -> list[str]:
    """Lay out the list for a terminal: a line for each scenario with its variants, else only names."""
    merged = {group: merge_variants(found) for group, found in groups.items()}
    table = console.fitted_table(_first_named(rows(merged)), HEADER, width).splitlines()
    lines = [*table, *textwrap.wrap(ON_VARIANTS, width)]
    return lines if len(lines) <= height else by_group(groups, width)


def rows(groups: Groups) -> list[tuple[str, str, str]]:
    return [(group, name, what) for group, found in groups.items() for name, what in found.items()]


def merge_variants(found: Mapping[str, str]) -> dict[str, str]:
    """Name the variants of a scenario behind it, as in `enrichment, -calm, -late`."""
    variants = {f"{name}-{variant}": name for name in found for variant in VARIANTS if f"{name}-{variant}" in found}
    merged = {}
    for name, what in found.items():
        if name not in variants:
            own = [variant.removeprefix(name) for variant, base in variants.items() if base == name]
            merged[", ".join([name, *own])] = what
    return merged


def by_group(groups: Groups, width: int) -> list[str]:
    """Lay out only the names, with the groups in a column of their own."""
    column = max(map(len, groups))
    lines: list[str] = []
    for group, found in groups.items():
        first, others = f"{group:<{column}}  ", " " * (column + 2)
        lines += textwrap.wrap(
            ", ".join(found), width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
        )
    return lines


def _first_named(listed: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Name each group once, in its first row."""
    named: set[str] = set()
    shown = []
    for group, name, what in listed:
        shown.append(("" if group in named else group, name, what))
        named.add(group)
    return shown
