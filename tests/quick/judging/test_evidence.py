"""What is measured of a stored run: which cells are right, whose turn it was, and the seconds of its latency."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harness.evidence.ledger import Ledger
from harness.evidence.long_rows import Rows
from harness.evidence.observed import NO_BATCH
from harness.judging import contradictions, progress_curve
from harness.measuring.latency import evidence
from harness.measuring.latency.evidence import WRONG
from harness.rundir.store import Store
from harness.selftest.by_hand import HONEST, ORACLE, SPEC

EVENTS = HONEST.events


def found(folder: Path, *, batch: int = NO_BATCH, late: int = 0, exact: bool = False, one: bool = False) -> Any:
    """`late`: so many of the first cell may have been dropped. `one`: there is one partition."""
    kind = [*evidence._BY_LOG, *([evidence._OFFSET] if one else [])]
    own = np.zeros(len(EVENTS), dtype=kind)
    own["code"], own["turn"] = EVENTS.cell, batch
    own["permitted"][np.flatnonzero(EVENTS.cell == EVENTS.cell[0])[:late]] = True
    if one:
        own["offset"] = EVENTS.offset
    rows = Rows(kind, folder)
    rows.add(own)
    return evidence._Found(rows, np.unique(EVENTS.cell), set(), Ledger(), exact, batch != NO_BATCH)


def by_cell(folder: Path, some: Any, held: Ledger = HONEST.log_ledger, late: str = "drop") -> Any:
    run: Any = SimpleNamespace(
        observed=SimpleNamespace(counts=held), claim=SimpleNamespace(late=late), store=SimpleNamespace(path=folder)
    )
    return evidence._by_cell(run, ORACLE, some)


@pytest.mark.parametrize(
    ("exact", "late", "too_few", "right"),
    [
        (False, "drop", 2, True),
        (False, "drop", 3, False),
        (False, "keep", 1, False),
        (True, "drop", 1, False),
        (True, "keep", 1, False),
        (True, "keep", 0, True),
        (False, "drop", -1, False),
    ],
)
def test_a_cell_may_lack_what_may_have_been_dropped_and_nobody_named(tmp_path, exact, late, too_few, right):
    code = int(EVENTS.cell[0])
    held = HONEST.log_ledger - Ledger({code: too_few})

    cells, _ = by_cell(tmp_path, found(tmp_path, late=2, exact=exact), held, late)

    final = cells.final[cells.code.tolist().index(code)]
    assert final == (held.count(code) if right else WRONG)
    assert (cells.final[cells.code != code] != WRONG).all()


def test_a_cell_with_one_sentinel_record_is_marked(tmp_path):
    code = int(EVENTS.cell[0])
    some = found(tmp_path)
    kind = some.rows.kind
    own = np.zeros(1, dtype=kind)
    own["code"], own["mark"] = code, True
    some.rows.add(own)

    cells, _ = by_cell(tmp_path, some)

    assert cells.code[cells.marked].tolist() == [code]


def test_events_come_in_the_turn_of_their_batches_or_of_their_only_partition(tmp_path):
    def turns(**how: Any) -> Any:
        ((_, events),) = by_cell(tmp_path, found(tmp_path, **how))[1].parts()
        return events.turn

    assert set(turns(batch=3).tolist()) == set(turns(batch=3, one=True).tolist()) == {3}
    assert turns() is None
    assert sorted(turns(one=True).tolist()) == sorted(EVENTS.offset.tolist())


@pytest.mark.parametrize("missing", ["observer", "epoch", "engine"])
def test_how_long_the_results_were_polled_contradicts_nothing_if_a_time_is_unknown(tmp_path, missing):
    store = Store.create(tmp_path, "run")
    for kind, value in (("observer", {"wall_s": 1.0}), ("epoch", {"at_ms": 1000}), ("engine", {"at_ms": 61_000})):
        if kind != missing:
            store.tell(kind, **value)

    assert [*contradictions._of_closed_eyes(store)] == []


def test_a_tape_of_no_servers_is_refused_before_it_is_drawn():
    plan = SimpleNamespace(spec=None, manifest=SimpleNamespace(id=SPEC.engine), tape=None, warm_up=None)
    store = SimpleNamespace(schema=lambda: None, read_json=lambda _: {})
    run: Any = SimpleNamespace(spec=replace(SPEC, tape=replace(SPEC.tape, servers=0)), plan=plan, store=store)

    assert [*contradictions._other_plan(run)] == ["0 servers are impossible in a tape"]


@pytest.mark.parametrize(("shipped", "lines", "said"), [(True, 0, 1), (True, 1, 0), (False, 0, 0)])
def test_a_shipped_job_with_a_checkpoint_writes_progress_too(monkeypatch, shipped, lines, said):
    monkeypatch.setattr(progress_curve, "read_progress", lambda _: [object()] * lines)
    run: Any = SimpleNamespace(store=None, manifest=SimpleNamespace(progress=True, evidence="x", shipped=shipped))

    assert len([*contradictions._of_progress(run)]) == said


@pytest.mark.parametrize(
    ("partition", "offset", "named"),
    [
        ([0, 0, 1, 1], [0, 1, 0, 1], []),
        ([0, 0, 1, 1], [0, 1, 5, 4], ["4", "1"]),
        ([0, 0, 0, 1], [0, 7, 7, 0], ["7", "0"]),
        ([0, 1, 1, 0], [0, 1, 2, 3], ["3", "0"]),
    ],
)
def test_a_record_that_lies_before_an_earlier_one_is_named_by_its_place(partition, offset, named):
    log = pa.table({"partition": partition, "offset": offset})
    run: Any = SimpleNamespace(unread=(), store=SimpleNamespace(history=lambda _: iter(())), log=log)

    assert [re.findall(r"(?:offset|partition) (\d+)", said) for said in contradictions._of_places(run)] == (
        [named] if named else []
    )


@pytest.mark.parametrize(
    ("text", "is_moment"),
    [
        ("1763700000000", True),
        ("0", True),
        ("", False),
        ("12a", False),
        ("-1", False),
        ("١٢", False),
        ("9" * 40, False),
    ],
)
def test_a_moment_is_a_whole_number_of_usual_length(text, is_moment):
    assert evidence._is_moment(text) is is_moment
