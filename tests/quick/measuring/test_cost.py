"""What is left of the cost of a run whose executors are no processes of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.measuring.cost import costs, elsewhere, engine_s_per_million, resources_of
from harness.rundir.store import Store
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
