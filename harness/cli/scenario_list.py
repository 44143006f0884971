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
ON_NAMES = "What each of them is: streamgauge run --list | cat"


def shown(groups: Groups) -> str:
    """Lay out the list for stdout: at most one screen of a terminal, or a line for each scenario in a pipe."""
    if not sys.stdout.isatty():
        return console.fitted_table(rows(groups), HEADER, None)
    columns, height = shutil.get_terminal_size()
    return "\n".join(fitted(groups, columns - 1, height - 1))


def fitted(groups: Groups, width: int, height: int) -> list[str]:
    """Lay out the list for a terminal: a line for each scenario with its variants, and only names of the largest
    groups if there is no room for more.
    """
    merged = {group: merge_variants(found) for group, found in groups.items()}
    largest_first = sorted(merged, key=lambda group: -len(merged[group]))
    for short in range(len(groups)):
        lines = _lines(merged, frozenset(largest_first[:short]), width)
        if len(lines) <= height:
            return lines
    return by_group(groups, width)


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


def by_group(groups: Groups, width: int, column: int | None = None) -> list[str]:
    """Lay out only the names, with the groups in a column of their own."""
    column = column or len(_longest(groups))
    lines: list[str] = []
    for group, found in groups.items():
        first, others = f"{group:<{column}}  ", " " * (column + 2)
        lines += textwrap.wrap(
            ", ".join(found), width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
        )
    return lines


def _lines(merged: Groups, named_only: frozenset[str], width: int) -> list[str]:
    explained = {group: found for group, found in merged.items() if group not in named_only}
    table = console.fitted_table(_first_named(rows(explained)), HEADER, width).splitlines()
    names = by_group({group: merged[group] for group in merged if group in named_only}, width, len(_longest(merged)))
    notes = [ON_VARIANTS, *([ON_NAMES] if named_only else [])]
    return [*table, *names, *(line for note in notes for line in textwrap.wrap(note, width))]


def _longest(groups: Groups) -> str:
    return max(groups, key=len)


def _first_named(listed: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Name each group once, in its first row."""
    named: set[str] = set()
    shown = []
    for group, name, what in listed:
        shown.append(("" if group in named else group, name, what))
        named.add(group)
    return shown
