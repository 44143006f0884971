"""A full window in the state: its size next to a kill, and what checkpoints cost before and after it."""

from __future__ import annotations

import numpy as np

from harness.measuring.measurement import Commit
from harness.measuring.window_state import of_checkpoint, parted
from harness.model import Checkpoint
from reports.sections import window_state as words

KILL = ("kill@t>=30s", 30.0)


def commit(at_s: float, cells: int = 100, **changes: int | None) -> Commit:
    known = {"state_bytes": 10_000 * cells, "memory_bytes": None, "took_ms": cells, "written_bytes": 1_000 * cells}
    return Commit(at_s, cells, **{**known, **changes})


def test_sizes_are_those_next_to_the_kill_and_costs_are_medians():
    told = [
        commit(at_s, cells) for at_s, cells in ((5, 100), (20, 900), (29, 1000), (38, 1100), (50, 1300), (60, 1200))
    ]
    found = parted(told, [KILL], 60.0)

    assert found is not None
    before, after = found.parts
    assert (before.name, before.commits, before.cells, before.state_bytes) == (
        "before kill@t>=30s",
        3,
        1000,
        10_000_000,
    )
    assert (after.name, after.commits, after.cells, after.state_bytes) == ("after kill@t>=30s", 3, 1100, 11_000_000)
    assert [(each.took_ms, each.written_bytes) for each in found.parts] == [(900, 900_000), (1200, 1_200_000)]


def test_what_came_before_or_after_the_load_is_left_out():
    found = parted([commit(-3, 7), commit(10), commit(61, 7)], [], 60.0)

    assert found is not None
    assert [each.at_s for each in found.commits] == [10]
    assert [(each.name, each.commits) for each in found.parts] == [("in the load", 1)]
    assert parted([commit(-3), commit(61)], [KILL], 60.0) is None


def test_each_kill_begins_a_part_and_one_without_a_checkpoint_says_so():
    found = parted([commit(10), commit(29)], [KILL, ("kill@t>=40s", 40.0)], 60.0)

    assert found is not None
    assert [each.commits for each in found.parts] == [2, 0, 0]
    assert words.in_words(found) == (
        "1.0 MB in 100 rows before kill@t>=30s, where a checkpoint took 100 ms and wrote 0.1 MB; "
        "no checkpoint after kill@t>=30s; no checkpoint after kill@t>=40s"
    )


def test_an_engine_that_reports_checkpoints_has_its_state_in_them():
    told = [of_checkpoint(each, 1000) for each in (Checkpoint(2000, 500, 3_000_000, written_bytes=1_000_000),)]
    found = parted([*told, *(of_checkpoint(Checkpoint(32_000, 700, 4_000_000), 1000),)], [KILL], 60.0)

    assert found is not None
    assert [each.at_s for each in found.commits] == [1.5, 31.7]
    assert words.in_words(found) == (
        "3.0 MB before kill@t>=30s, where a checkpoint took 500 ms and wrote 1.0 MB; "
        "4.0 MB after kill@t>=30s, where a checkpoint took 700 ms"
    )


def test_a_panel_has_the_newest_value_at_the_end_of_each_second():
    found = parted([commit(1.5), commit(3.2, 200, took_ms=None)], [], 60.0)
    assert found is not None
    panels = list(words.panels_of(found, np.array([1.0, 2.0, 3.0, 4.0])))

    assert [panel.title for panel in panels] == [title for title, _, _ in words.PANELS]
    rows = panels[1].lines[0].values
    assert np.isnan(rows[0])
    assert rows[1:].tolist() == [100, 100, 200]
    assert panels[2].lines[0].values[1:].tolist() == [100, 100, 100]
