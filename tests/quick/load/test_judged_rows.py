"""A question with many windows for each event: experiments send fewer, and what the judge can not hold is refused."""

from __future__ import annotations

import pytest

from harness.config import plan
from harness.engines import fake
from harness.load import judged_rows
from harness.model import HarnessError


def spec(**keys):
    return plan.resolve(
        "test", {"rate": 2000, "duration": "2s", "engine": "fake", **keys}, {}, lambda *_: fake.MANIFEST
    )[0]


@pytest.mark.parametrize(
    ("workload", "cells"),
    [("readers_distinct", 60), ("page_visits", 1), ("readers_join", 1), ("page_visits_sliding", 6)],
)
def test_cells_of_an_event_are_counted(workload, cells):
    assert judged_rows.cells_of_an_event(spec(workload=workload)) == pytest.approx(cells, rel=0.2)


def test_only_views_of_ads_have_a_cell():
    assert 0.2 < judged_rows.cells_of_an_event(spec()) < 0.5


def test_a_load_is_smaller_if_an_event_has_more_cells_than_usual():
    assert judged_rows.share(spec()) == 1
    assert judged_rows.share(spec(workload="readers_distinct")) == pytest.approx(1 / 20)


def test_a_run_is_refused_if_its_rows_do_not_fit_and_the_largest_that_does_is_named():
    asked = spec(workload="readers_distinct", duration="100s")  # 200,000 reads with 60 windows and two values each

    judged_rows.refuse_too_many(asked, 4_000_000_000)
    with pytest.raises(HarnessError, match="would need about 4 GB of memory, and 2 GB are granted") as refused:
        judged_rows.refuse_too_many(asked, 2_000_000_000)
    assert "each belongs to 60 cells, with 2 values each. Send at most 111,1" in str(refused.value)


def test_the_ads_are_not_refused():
    judged_rows.refuse_too_many(spec(duration="10h"), 1)
