"""When a load begins, and the parts of windows in which its counts are sealed before that is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import plan
from harness.engines import fake
from harness.load import start_time
from workloads.ad_impressions.oracle import part_ms

SPEC, _ = plan.resolve("test", {"rate": 100, "duration": "4s", "engine": "fake"}, {}, lambda *_: fake.MANIFEST)


@pytest.mark.parametrize(("window_ms", "part"), [(10_000, 500), (1_000, 500), (700, 100), (250, 250), (1, 1)])
def test_no_part_reaches_over_the_edge_of_a_window(window_ms, part):
    assert part_ms(replace(SPEC, window_ms=window_ms)) == part


def test_in_a_run_of_very_many_cells_a_window_is_one_part():
    many = replace(SPEC, tape=replace(SPEC.tape, campaigns=1_000_000))

    assert part_ms(many) == many.window_ms


@given(st.integers(0, 2**42), st.integers(1, 20_000))
def test_the_load_begins_at_the_next_part_that_the_fleet_can_be_told_of(now_ms, part):
    begins_ms = start_time.next_ms(now_ms, part)

    assert begins_ms % part == 0
    assert start_time.LEAD_MS <= begins_ms - now_ms < start_time.LEAD_MS + part
