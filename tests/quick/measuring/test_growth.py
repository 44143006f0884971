"""A state that only grows: how large it became, what a commit took at which size, and what a return took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.config import plan
from harness.engines import manifest
from harness.measuring.growth import cells_at, grown, keeps_all
from harness.measuring.measurement import Quantity, Recovery
from harness.model import Progress
from reports.sections import growth as words
from reports.sections.growth import panels_of

EPOCH_MS = 1_000_000


def batch(number: int, cells: int, **changes) -> Progress:
    """As Spark tells it: it keeps 50 bytes of each cell, and a commit takes a tenth of a millisecond for each."""
    told = Progress(EPOCH_MS + number * 1000, number, 1, {0: number}, state_cells=cells, state_bytes=50 * cells)
    return replace(told, **{"memory_bytes": 16_000_000, "commit_ms": cells // 10, "commit_bytes": 7000, **changes})


def back(struck_s: float, seconds: float | None) -> Recovery:
    return Recovery(f"kill@t>={struck_s:g}s", struck_s, struck_s, 99.0, {"first_output_s": Quantity(seconds)})


def test_it_is_followed_up_to_its_largest_size_and_not_through_the_eviction_in_the_end():
    found = grown([batch(n, cells) for n, cells in enumerate((100, 600, 1000, 1000, 4))], EPOCH_MS)

    assert found is not None
    assert [each.cells for each in found.commits] == [100, 600, 1000]
    assert [each.at_s for each in found.commits] == [0.0, 1.0, 2.0]


def test_what_a_crash_has_left_out_of_order_and_what_says_nothing_of_a_state_does_no_harm():
    silent = Progress(EPOCH_MS, 7, 1, {0: 7})
    found = grown([batch(2, 900), silent, batch(1, 300)], EPOCH_MS)

    assert found is not None
    assert [each.cells for each in found.commits] == [300, 900]
    assert grown([silent], EPOCH_MS) is None
    assert grown([], EPOCH_MS) is None


def test_commits_are_told_by_equal_parts_of_the_way_up_and_an_empty_part_is_none():
    found = grown([batch(n, cells) for n, cells in enumerate((100, 200, 900, 1000))], EPOCH_MS)

    assert found is not None
    assert [(step.cells, step.commits, step.took_ms) for step in found.steps] == [(200, 2, 15), (1000, 2, 95)]
    assert [step.state_bytes for step in found.steps] == [10_000, 50_000]


def test_the_sentence_says_what_a_commit_took_at_the_bottom_and_at_the_top_and_what_a_return_took():
    found = grown([batch(n, n * 20_000) for n in range(1, 51)], EPOCH_MS)
    assert found is not None

    assert words.in_words(found, [back(10.5, 12.34), back(30.0, None)]) == (
        "1,000,000 cells, 50 MB with 16 MB of memory; a commit took 11,000 ms and wrote 0.0 MB at up to 200,000; "
        "a commit took 91,000 ms and wrote 0.0 MB in the end; output again after 12.3 s at 200,000, - at 600,000"
    )
    assert cells_at(found, 0.5) == 0


def test_what_an_engine_does_not_tell_is_not_drawn_and_not_claimed():
    quiet = {"state_bytes": 0, "memory_bytes": 0, "commit_ms": 0, "commit_bytes": 0}
    found = grown([batch(n, n * 1000, **quiet) for n in range(1, 9)], EPOCH_MS)
    assert found is not None

    assert words.in_words(found, []) == "8,000 cells"
    assert list(panels_of(found, [])) == []
    assert next(words.rows(found))[1:] == ("-", "-", "1", "-", "-")


def test_each_quantity_that_is_known_has_a_panel_and_so_do_the_returns():
    found = grown([batch(n, n * 1000) for n in range(1, 9)], EPOCH_MS)
    assert found is not None
    panels = list(panels_of(found, [back(2.5, 4.0), back(5.0, None)]))

    assert [panel.title for panel in panels] == [
        "size, bytes",
        "a commit took",
        "a commit wrote, bytes",
        "first output after a fault",
    ]
    [returns] = panels[-1].dots
    assert (returns.cells, returns.values) == ([2000], [4000.0])


@pytest.mark.parametrize(("watermark", "all_of_it"), [("15s", False), ("20s", True), ("10m", True)])
def test_a_state_only_grows_where_no_window_can_be_closed_before_the_load_has_ended(watermark, all_of_it):
    keys = {"watermark": watermark, "duration": "15s", "warm_up": "5s"}
    spec, _ = plan.resolve("test", keys, {}, manifest.load)

    assert keeps_all(spec) is all_of_it


def test_the_shipped_scenario_has_at_most_three_million_cells_and_nothing_leaves_its_state():
    name, keys = plan.read_scenario("big-state")
    spec, _ = plan.resolve(name, keys, {}, manifest.load)
    windows = (spec.tape.load_ms + spec.tape.reach_ms) // spec.window_ms

    assert keeps_all(spec)
    assert len(spec.fault.leaves) == 3
    assert spec.tape.probes * windows + spec.tape.profile[0].start_per_s * spec.tape.load_ms / 3000 < 3_000_000
