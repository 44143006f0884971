"""The recount of a log: how many of its records are as planned, and how much they add to each cell. Recounts of parts
add up to that of the whole, so that each part can be read at another place, as by a task of Spark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generators.schedule import Schedule
from harness.evidence.ledger import Ledger
from harness.evidence.observed import LogAudit, adds_up
from harness.judging import log_audit
from harness.judging.log_audit import Columns, Findings
from harness.model import Sentinel
from workloads.base import COUNTS, Ints, Oracle


@dataclass(frozen=True)
class Recounted:
    """The recount of a whole log."""

    planned: int
    found: int  # records
    missing: int
    doubled: int
    foreign: int
    altered: int
    cells: str  # the digest of what the records add to each cell; "" if that of parts does not add up

    @classmethod
    def of(cls, audit: LogAudit, cells: str) -> Recounted:
        return cls(
            planned=audit.planned,
            found=audit.found,
            missing=audit.missing.count,
            doubled=audit.doubled.count,
            foreign=audit.foreign.count,
            altered=audit.altered.count,
            cells=cells,
        )


class PartialRecount:
    """The recount of some records of a log."""

    def __init__(self, findings: Findings, cells: Ints | None) -> None:
        self._findings, self._cells = findings, cells

    @classmethod
    def of(
        cls, columns: Columns, schedule: Schedule, epoch_ms: int, marks: Sequence[Sentinel], oracle: Oracle
    ) -> PartialRecount:
        findings = log_audit.partly(schedule, epoch_ms, columns, marks)
        return cls(findings, _added(_cells(columns, oracle)) if adds_up(oracle) else None)

    def merge(self, later: PartialRecount) -> None:
        """Add the recount of a later part of the same log."""
        self._findings.merge(later._findings)
        if self._cells is not None and later._cells is not None:
            self._cells = _added(np.concatenate((self._cells, later._cells), axis=1))

    def whole(self, schedule: Schedule) -> Recounted:
        """Compare with the plan, after all parts were added."""
        balance, findings = self._findings.balance, self._findings
        balance.plan(*map(schedule.places, schedule.copies()))
        missing, doubled = map(len, findings.marks_in_doubt())
        for _, by in balance.unequal():
            missing += int(np.maximum(-by, 0).sum())
            doubled += int(np.maximum(by, 0).sum())
        return Recounted(
            planned=schedule.total + len(findings.often),
            found=findings.found,
            missing=missing,
            doubled=doubled,
            foreign=findings.foreign.named().count,
            altered=findings.altered.named().count,
            cells="" if self._cells is None else _digest(self._cells),
        )


def digest_of(cells: Ledger, oracle: Oracle) -> str:
    """Return the digest of these values."""
    return _digest(_added(_by_name(cells, oracle)))


def _cells(columns: Columns, oracle: Oracle) -> Ints:
    counts = columns["kind"] == COUNTS
    places = oracle.places({name: column[counts] for name, column in columns.items()})
    return _by_name(Ledger.of(oracle.fold(places.cell, places.columns)), oracle)


def _by_name(cells: Ledger, oracle: Oracle) -> Ints:
    """Return rows of keys, fields and values. Codes of cells are those of one oracle."""
    codes = cells.cells
    values = np.fromiter(cells.values(), dtype=np.int64, count=len(cells))
    return np.stack((oracle.codes.keys(codes), oracle.codes.fields(codes), values))


def _added(cells: Ints) -> Ints:
    """Add the values of equal cells, and sort them."""
    cells = cells[:, np.lexsort((cells[1], cells[0]))]
    first = np.flatnonzero(np.append(True, (np.diff(cells[:2]) != 0).any(axis=0))[: cells.shape[1]])
    return np.stack((cells[0, first], cells[1, first], np.add.reduceat(cells[2], first) if len(first) else cells[2]))


def _digest(cells: Ints) -> str:
    return hashlib.sha256(np.ascontiguousarray(cells, dtype="<i8").tobytes()).hexdigest()
