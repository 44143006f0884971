"""A declaration as a workload: see `workloads.base.Workload`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from harness.model import RunSpec, TapeSpec
from workloads.base import Tables
from workloads.declared import windows
from workloads.declared.answers import DeclaredOracle
from workloads.declared.codec import DeclaredCodec
from workloads.declared.declaration import Declaration, load, unsealed
from workloads.declared.tables import InRedis, in_kafka, in_redis

VALUE = "value"  # name of the value in a key's parts
RESERVED = {"campaign", VALUE, "window", "end"}  # names with another meaning in a job's own pattern


class DeclaredResults:
    """Results with a hash for each value and combination of texts, such as `orders:de`."""

    def __init__(self, declaration: Declaration, seed: int) -> None:
        self._declaration, self._seed = declaration, seed

    @cached_property
    def keys(self) -> Sequence[str]:
        names = self._declaration.groups(self._seed)
        return [":".join((value, *texts)) for value in self._declaration.question.values for texts in names]

    @cached_property
    def parts(self) -> Sequence[Mapping[str, str]]:
        question, names = self._declaration.question, self._declaration.groups(self._seed)
        if RESERVED & {*question.groups}:
            return ()
        return [
            {**dict(zip(question.groups, texts, strict=True)), VALUE: value}
            for value in question.values
            for texts in names
        ]

    @property
    def number(self) -> str:
        return self._declaration.question.number

    @cached_property
    def tables(self) -> Tables:
        relations = self._declaration.relations(self._seed)
        texts: dict[str, str] = {}
        hashes: dict[str, dict[str, str]] = {}
        topics: dict[str, list[tuple[bytes, bytes]]] = {}
        for table in self._declaration.tables:
            rows = relations[table.name]
            if not isinstance(table.place, InRedis):
                topics.setdefault(table.place.topic, []).extend(in_kafka(rows))
                continue
            for key, field, value in in_redis(table.place, rows):
                if field:
                    hashes.setdefault(key, {})[field] = value
                else:
                    texts[key] = value
        return Tables(texts, hashes=hashes, topics=topics)


class Declared:
    """A declared question."""

    keys: frozenset[str] = frozenset()

    def __init__(self, declared: Declaration) -> None:
        self.id, self.asks, self.declaration = declared.id, declared.asks, declared.sealed
        self._declared = declared

    def codec(self, tape: TapeSpec) -> DeclaredCodec:
        return DeclaredCodec(self._declared, tape.seed)

    def oracle(self, spec: RunSpec) -> DeclaredOracle:
        return DeclaredOracle(self._declared, spec.tape.seed)

    def results(self, tape: TapeSpec) -> DeclaredResults:
        return DeclaredResults(self._declared, tape.seed)

    def length_ms(self, spec: RunSpec) -> int | None:  # noqa: ARG002  (a declaration says it for every run)
        return self._length_ms

    @cached_property
    def _length_ms(self) -> int | None:
        return windows.length_ms(self._declared)


@lru_cache(maxsize=4)
def workload_of(sealed: str) -> Declared:
    """Return the workload of the declaration in a tape."""
    return Declared(unsealed(sealed))


def beside(module: str) -> Declared:
    """Return a shipped workload, which is declared in the folder of its module."""
    return Declared(load(Path(module).parent, shipped=True))
