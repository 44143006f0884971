"""Few combinations of many choices in which any two or any three choices meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Choice = Mapping[str, Any]
Meeting = tuple[tuple[str, Any], ...]
STRENGTH = 3


def covering(values: Mapping[str, Sequence[Any]], strength: int = STRENGTH) -> list[Choice]:
    """Greedy: the next combination is the one with most meetings that no earlier one has."""
    every: list[Choice] = [dict(zip(values, each, strict=True)) for each in product(*values.values())]
    missing = {meeting for choice in every for meeting in meetings(choice, strength)}
    chosen: list[Choice] = []
    while missing:
        best = max(every, key=lambda choice: sum(meeting in missing for meeting in meetings(choice, strength)))
        chosen.append(best)
        missing -= set(meetings(best, strength))
    return chosen


def meetings(choice: Choice, strength: int = STRENGTH) -> Iterator[Meeting]:
    return combinations(choice.items(), strength)
