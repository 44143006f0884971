"""Text tables for terminal and Markdown: empty columns are left out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
NOTHING = ("", "-")


def without_empty(columns: Sequence[str], rows: Sequence[Sequence[T]]) -> tuple[tuple[str, ...], list[tuple[T, ...]]]:
    """Remove the empty columns. The first column names the rows and always stays."""
    kept = [n for n in range(len(columns)) if n == 0 or any(row[n] not in NOTHING for row in rows)]
    return tuple(columns[n] for n in kept), [tuple(row[n] for n in kept) for row in rows]


def left_out(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the names of the empty columns."""
    kept, _ = without_empty(columns, rows)
    return [column for column in columns if column not in kept]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, body = without_empty(columns, rows)
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(cell(text) for text in row)} |" for row in body)


def cell(text: str) -> str:
    """Escape a text so that it can't end its table cell."""
    return text.replace("|", "\\|").replace("\n", " ")
