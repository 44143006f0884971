"""Stores how the cells of a run stand by its verdict, so that the map of the live page ends as the verdict has it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.evidence.ledger import Difference
from harness.judging.checks.case import RunFacts
from harness.results.sampler import sampled_keys
from harness.rundir.missing_evidence import MissingEvidence
from harness.runner.cells_so_far import MOST_CELLS, Stands, ranges
from harness.util.replace_file import replace_file
from harness.web.live_folder import FOLDER
from reports.evidence import Evidence
from reports.live.follow import JUDGED_FILE


def write(evidence: Evidence) -> None:
    """Write the file beside the lines of the run. Without lines there is no map, and without evidence no answer."""
    path = evidence.store.path / JUDGED_FILE
    if not (evidence.store.path / FOLDER).is_dir():
        return
    try:
        if evidence.case.not_read:
            return
        groups = groups_of(evidence.case, sampled_keys(evidence.spec.tape))
    except MissingEvidence:
        return
    replace_file(path, json.dumps({"groups": groups}).encode())


def groups_of(case: RunFacts, polled: tuple[int, ...]) -> list[tuple[int, int, str]]:
    """Return the polled cells that are not right, as lines of kind "cells" have them."""
    drained, found = case.engine.state == "drained", frozenset(polled)
    keys: dict[tuple[int, int], list[int]] = {}
    for cell, stands in _standing(case.differences, drained=drained):
        if (key := case.oracle.codes.key(cell)) in found:
            keys.setdefault((case.oracle.codes.field(cell), int(stands)), []).append(key)
    named = [(field, stand, ranges(numbers)) for (field, stand), numbers in sorted(keys.items())]
    return named[:MOST_CELLS]


def _standing(differences: list[Difference], *, drained: bool) -> Iterator[tuple[int, Stands]]:
    """Yield cells outside of their interval. What an engine did not get to before its end is open, and not lost."""
    for each in differences:
        if each.may != 0 and each.surplus > 0:
            yield each.cell, Stands.TOO_MANY
        else:
            yield each.cell, Stands.WRONG if drained or each.may == 0 else Stands.OPEN
