"""The possible texts of the keys of cells. Each combination gets a number and a name in the results before anything
starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from harness.util.suggest import nearest
from harness.util.toml_reader import MistakeError
from workloads.declared import draws
from workloads.declared.fields import Field, Fields, Named, leaves
from workloads.declared.oracle import Question
from workloads.declared.tables import Table

MOST_CELLS_BESIDE = 1 << 20  # keys times values


def sources(fields: Fields, tables: tuple[Table, ...]) -> dict[str, tuple[str, Named]]:
    """Return the columns with known texts by their names in SQL: the path for drawing, and the field."""
    found: dict[str, tuple[str, Field]] = {path.rpartition(".")[2]: (path, field) for path, field in leaves(fields)}
    for table in tables:
        found |= {name: (f"tables.{table.name}.{name}", field) for name, field in table.columns.items()}
    return {name: (path, field) for name, (path, field) in found.items() if isinstance(field, Named)}


def check(question: Question, stated: Mapping[str, tuple[str, ...]], fields: Fields, tables: tuple[Table, ...]) -> None:
    """Refuse keys whose texts are unknown or too many."""
    known = sources(fields, tables)
    for name in stated:
        if name not in question.groups:
            raise MistakeError(
                f"[oracle.domains] names {name!r}, which is none of the keys that are texts "
                f"({', '.join(question.groups)}){nearest(name, question.groups)}."
            )
    for name in question.groups:
        if name not in known and name not in stated:
            raise MistakeError(
                f"[oracle.keys] names {name!r}, and nothing says which texts that can be: it is no uuid, choice, zipf "
                f"or text of the event or of a table ({', '.join(known) or 'there is none'}){nearest(name, known)}. "
                f'List them: [oracle.domains] {name} = ["...", "..."].'
            )
    sizes = [len(stated[name]) if name in stated else _size(known[name][1]) for name in question.groups]
    if prod(sizes) * len(question.values) > MOST_CELLS_BESIDE:
        raise MistakeError(
            f"[oracle.keys] has {prod(sizes):,} combinations of {' and '.join(question.groups)}, with "
            f"{len(question.values)} values each; {MOST_CELLS_BESIDE:,} in all is the most that can be judged."
        )


def combinations(
    question: Question,
    stated: Mapping[str, tuple[str, ...]],
    fields: Fields,
    tables: tuple[Table, ...],
    seed: int,
) -> list[tuple[str, ...]]:
    """Return all combinations of the keys that are texts, in a fixed order."""
    known = sources(fields, tables)
    texts = (
        stated[name] if name in stated else draws.names(known[name][1], seed, known[name][0])
        for name in question.groups
    )
    return list(product(*texts))


def _size(field: Named) -> int:
    return len(field.values) if hasattr(field, "values") else field.of
