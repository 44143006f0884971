"""What a run used and did, and what is left of its cost if its executors are no processes of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harness.measuring import measure
from harness.measuring.cost import costs, cpu_share, elsewhere, engine_s_per_million, resources_of
from harness.measuring.timeline import Lines
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.selftest.by_hand import ORACLE, cell
from tests.quick.cases import SPEC

USED = {
    "part": ["engine", "python workers", "kafka"] * 2,
    "at_ms": [0, 0, 0, 1000, 1000, 1000],
    "cpu_user_s": [0.0, 0.0, 0.0, 2.0, 1.0, 5.0],
    "cpu_system_s": [0.0] * 6,
    "rss_bytes": [1 << 20] * 6,
}


@pytest.mark.parametrize(
    ("master", "parts"),
    [
        ("local[*]", ["engine", "python workers", "kafka"]),
        ("local-cluster[2,1,1024]", ["engine", "python workers", "kafka"]),
        ("spark://127.0.0.1:7077", ["kafka"]),
        ("yarn", ["kafka"]),
        ("k8s://https://api:6443", ["kafka"]),
    ],
)
def test_a_driver_alone_is_no_cost_of_the_engine(tmp_path, master, parts):
    store = Store.create(tmp_path, "run")
    store.write_table("resources.parquet", USED)
    run: Any = SimpleNamespace(store=store, spec=replace(SPEC, master=master))

    found = costs(resources_of(run), 1_000_000)

    assert [each.part for each in found] == ["engine", "python workers", "kafka"][-len(parts) :]
    assert engine_s_per_million(found) == (3.0 if len(parts) == 3 else None)
    assert bool(elsewhere(run.spec)) is (len(parts) == 1)
    assert not elsewhere(run.spec) or master in elsewhere(run.spec)


def test_a_backlog_is_work_of_all_but_the_generator():
    table = pa.table({**USED, "part": ["engine", "python workers", "generator"] * 2})

    alone, with_backlog = costs(table, 1_000_000), costs(table, 1_000_000, waited=3_000_000)

    of = [{each.part: each.cpu_s_per_million for each in found} for found in (alone, with_backlog)]
    assert of[1] == {part: value if part == "generator" else value / 4 for part, value in of[0].items()}
    assert of[0]["generator"] > 0


@pytest.mark.parametrize(("samples", "share"), [(2, 2.0), (1, None), (0, None)])
def test_one_sample_shows_no_share_of_a_core(samples, share):
    assert cpu_share(pa.table(USED).slice(0, 3 * samples), "engine") == share


def test_the_cost_of_a_load_begins_with_the_last_sample_before_it():
    table = pa.table({"at_ms": [0, 1000, 2000, 3000]})

    def since(epoch_ms: int) -> list[int]:
        run: Any = SimpleNamespace(epoch_ms=epoch_ms)
        kept = measure._since_epoch(run, table)
        assert measure._since_epoch(run, None) is None
        assert kept is not None
        return [*kept.column("at_ms").to_pylist()]

    assert since(1500) == [1000, 2000, 3000]
    assert since(1000) == [1000, 2000, 3000]
    assert since(-1) == [0, 1000, 2000, 3000]


def test_the_rate_is_that_of_what_was_processed_in_the_load_and_sent_by_then():
    done = SimpleNamespace(known=lambda at_s: np.interp(at_s, [0.0, 5.0, 20.0], [100.0, 600.0, 900.0]))
    sent = SimpleNamespace(known=lambda at_s: np.interp(at_s, [0.0, 10.0], [50.0, 650.0]))
    lines: Any = SimpleNamespace(processed=done, sent=sent)

    assert measure._processed_per_s(lines, 10.0) == 60.0
    assert measure._processed_per_s(lines, 0.0) is None


def test_the_last_change_of_a_load_is_that_of_its_counts_and_not_of_a_closing_event(monkeypatch):
    monkeypatch.setattr(measure, "totals_of", lambda *_: SimpleNamespace(cell=np.array([cell(1, 10_000)])))
    looks = {"campaign": [0, 1], "window_ms": [10_000, 10_000], "at_us": [5_000_000, 9_000_000]}

    def changed_ms(rows: int, *still: int) -> int:
        store = SimpleNamespace(history=lambda _: iter([{"since_ms": each} for each in still]))
        run: Any = SimpleNamespace(samples=pa.table(looks).slice(0, rows), store=store, oracle=ORACLE, codec=0, marks=0)
        return measure._last_change_ms(run, 20_000)

    assert changed_ms(2, 7000) == 5000
    assert (changed_ms(0, 7000), changed_ms(0)) == (7000, 20_000)


def test_a_load_of_which_nothing_was_sent_has_no_curve():
    curve: Any = Lines.sent

    class Lost:
        @property
        def sends(self) -> Any:
            raise MissingEvidence("no sends")

    for run in (SimpleNamespace(sends=pa.table({"sent": pa.array([], pa.int64())})), Lost()):
        assert curve.func(SimpleNamespace(_run=run)) is None
