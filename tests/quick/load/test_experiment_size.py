"""An experiment of a question with many windows for each event sends fewer events."""

from __future__ import annotations

import pytest

from harness.config import plan
from harness.engines import fake
from harness.load import experiment_size


def spec(**keys):
    return plan.resolve(
        "test", {"rate": 2000, "duration": "2s", "engine": "fake", **keys}, {}, lambda *_: fake.MANIFEST
    )[0]


@pytest.mark.parametrize(
    ("workload", "cells"),
    [("readers_distinct", 60), ("page_visits", 1), ("readers_join", 1), ("page_visits_sliding", 6)],
)
def test_cells_of_an_event_are_counted(workload, cells):
    assert experiment_size.cells_of_an_event(spec(workload=workload)) == pytest.approx(cells, rel=0.2)


def test_only_views_of_ads_have_a_cell():
    assert 0.2 < experiment_size.cells_of_an_event(spec()) < 0.5


def test_a_load_is_smaller_if_an_event_has_more_cells_than_usual():
    assert experiment_size.share(spec()) == 1
    assert experiment_size.share(spec(workload="readers_distinct")) == pytest.approx(1 / 20)
