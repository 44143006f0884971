"""A run that was stored is judged as before, to the byte, and measured as before, whichever version had made it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from harness.model import READABLE_SCHEMAS, Outcome, Verdict
from tests.quick import rechecked
from workloads.shipped import WORKLOADS

NAMES = sorted(path.stem for path in rechecked.KEPT.glob("*.json"))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return {store.path.name: store for store in rechecked.unpacked(tmp_path_factory.mktemp("stored"))}


def alike(figures: dict[str, Any]) -> dict[str, Any]:
    """Another machine may round the last digits of a float otherwise."""
    return {
        place: pytest.approx(value, rel=1e-6, nan_ok=True) if isinstance(value, float) else value
        for place, value in figures.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_is_judged_and_measured_as_before(stores, name):
    assert rechecked.rechecked(stores[name]).decode() == rechecked.verdict_of(name).read_text()
    assert rechecked.figures(stores[name]) == alike(json.loads(rechecked.figures_of(name).read_text()))


def test_they_are_of_each_schema_each_workload_and_each_outcome(stores):
    kept = [msgspec.json.decode(rechecked.verdict_of(name).read_bytes(), type=Verdict) for name in NAMES]

    assert [*stores] == NAMES
    assert {store.schema() for store in stores.values()} == {*READABLE_SCHEMAS}
    assert {store.read_json("spec.json")["tape"].get("workload", "ad_impressions") for store in stores.values()} == {
        *WORKLOADS
    }
    assert {verdict.outcome for verdict in kept} == {*Outcome}
    assert len(kept) >= 12
