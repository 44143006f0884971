"""How a run stands, folded from lines: the live page, metrics and lists all read this."""

from __future__ import annotations

from typing import Any

import pytest

from reports.live.state import RunState, percentile, unranged

EPOCH_MS = 1_000_000
SPEC: dict[str, Any] = {
    "kind": "spec.json",
    "content": {
        "scenario": "ad-impressions",
        "engine": "fake",
        "sink": "absolute",
        "patience": 2.0,
        "window_ms": 10_000,
        "tape": {"seed": 7, "workload": "ad_impressions"},
        "fault": {"text": "kill@t>=5s", "action": "kill", "steps": []},
    },
}
PLAN: dict[str, Any] = {
    "kind": "plan.json",
    "content": {"tape": {"duration_ms": 60_000}, "warm_up": None, "manifest": {"ready_s": 30.0, "drain_s": 20.0}},
}
LOAD_PLAN: dict[str, Any] = {"kind": "load plan", "at_ms": EPOCH_MS - 1000, "epoch_ms": EPOCH_MS, "lacks": ""}


def second(at_s: int, offered: int, processed: int | None, visible: int | None, *probes_ms: float) -> dict[str, Any]:
    told = {"offered": offered, "planned": 9000, "processed": processed, "visible": visible, "probes_ms": probes_ms}
    return {"kind": "second", "at_ms": EPOCH_MS + 1000 * at_s, **told}


def phase(name: str, at_s: int) -> dict[str, Any]:
    return {"kind": "phase", "at_ms": EPOCH_MS + 1000 * at_s, "name": name, "waits_for": "something"}


def stored(*entries: dict[str, Any]) -> RunState:
    state = RunState()
    for entry in entries:
        state.take(entry)
    return state


def test_a_phase_has_its_end_by_the_plan_or_at_the_latest():
    state = stored(SPEC, PLAN, phase("engine", -9))
    assert state.phase
    assert (state.phase.ends_ms, state.phase.at_most) == (EPOCH_MS - 9000 + 60_000, True), "ready_s times patience"

    for entry in (LOAD_PLAN, phase("load", 0)):
        state.take(entry)
    assert [each.ended_ms for each in state.phases] == [EPOCH_MS, None]
    assert (state.phase.ends_ms, state.phase.at_most) == (EPOCH_MS + 60_000, False)


def test_a_load_that_is_decided_while_it_runs_has_no_known_end():
    state = stored(SPEC, PLAN, {**LOAD_PLAN, "grows": True}, phase("load", 0))

    assert state.phase
    assert state.phase.ends_ms is None


def test_rates_are_means_of_the_last_seconds_and_the_backlog_is_the_rest():
    state = stored(SPEC, PLAN, LOAD_PLAN, *(second(at, 100 * at, 90 * at, 30 * at) for at in range(1, 8)))

    assert (state.rates.offered, state.rates.processed, state.rates.visible) == (100, 90, 30)
    assert state.counts.backlog == 70
    assert len(state.rows) == 7


def test_an_engine_without_progress_has_no_backlog():
    state = stored(second(1, 100, None, None), second(2, 200, None, None))

    assert state.counts.backlog is None
    assert state.rates.processed is None
    assert state.rows[-1][2:5] == (None, None, None)


def test_percentiles_are_those_of_the_probes_of_the_last_half_minute():
    state = stored(second(1, 0, 0, 0, 500.0), second(2, 0, 0, 0, 10.0, 20.0))
    assert (state.p50_ms, state.p99_ms, state.probes_seen) == (20.0, 500.0, 3)

    state.take(second(32, 0, 0, 0, 30.0))
    assert (state.p50_ms, state.p99_ms, state.probes_seen) == (20.0, 30.0, 4)
    state.take(second(90, 0, 0, 0))
    assert state.p50_ms is None


def test_cells_stand_so_far_until_the_verdict_names_the_wrong_ones():
    cells = {"kind": "cells", "at_ms": EPOCH_MS, "groups": [[0, 0, "0-3"], [10_000, 1, "2"], [10_000, 2, "3"]]}
    state = stored(cells, {"kind": "cells", "at_ms": EPOCH_MS, "groups": [[0, 1, "1-2"]]})
    assert state.cells == {(0, 0): 0, (1, 0): 1, (2, 0): 1, (3, 0): 0, (2, 10_000): 1, (3, 10_000): 2}

    state.take({"kind": "judged cells", "groups": [[0, 3, "3"], [20_000, 3, "9"]]})
    assert state.numbers == {"open": 0, "right": 5, "too many": 0, "wrong": 2}
    assert state.cells[9, 20_000] == 3, "a cell that nobody planned"


def test_a_fault_goes_from_planned_to_undone_and_shows_no_proof_before():
    state = stored(SPEC)
    assert [(each["text"], each["state"]) for each in state.faults] == [("kill@t>=5s", "planned")]

    report = {"text": "kill@t>=5s", "landed": False, "healed": True, "replayed": None, "proof": "did not land: ..."}
    state.take({"kind": "faults", "at_ms": 1, "reports": [report]})
    assert (state.faults[0]["state"], state.faults[0]["proof"]) == ("planned", "")
    report |= {"landed": True, "healed": False, "landed_ms": 5, "proof": "killed"}
    state.take({"kind": "faults", "at_ms": 1, "reports": [report]})
    assert (state.faults[0]["state"], state.faults[0]["proof"]) == ("took effect", "killed")
    report |= {"healed": True, "healed_ms": 9, "replayed": True}
    state.take({"kind": "faults", "at_ms": 1, "reports": [report]})
    assert (state.faults[0]["state"], state.faults[0]["replayed"]) == ("undone", True)


def test_a_fault_that_never_came_did_not_take_effect():
    state = stored(SPEC, {"kind": "verdict.json", "content": {"outcome": "UNKNOWN", "sentence": "no", "checks": []}})

    assert state.faults[0]["state"] == "did not take effect"
    assert state.over


def test_a_part_has_the_cores_that_it_used_since_the_line_before():
    def parts(at_s: int, cpu_s: float) -> dict[str, Any]:
        return {
            "kind": "parts",
            "at_ms": 1000 * at_s,
            "parts": {"engine": [cpu_s, 9]},
            "processes": [[4, "java", 1, 9]],
        }

    state = stored(parts(1, 3.0), parts(3, 4.0))

    assert [(part.name, part.cores) for part in state.parts] == [("engine", 0.5)]
    assert state.processes == [{"pid": 4, "name": "java", "cpu_s": 1, "rss_bytes": 9}]


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"kind": "second"},
        {"kind": "second", "at_ms": "x", "offered": None},
        {"kind": "cells", "groups": [[1, 2]]},
        {"kind": "cells", "groups": [[1, 2, "a-b"]]},
        {"kind": "verdict.json", "content": None},
        {"kind": "spec.json", "content": {}},
        {"kind": "of a newer version", "at_ms": 1},
    ],
)
def test_an_entry_that_lacks_what_its_kind_has_changes_nothing(entry):
    state = stored(entry)

    assert state.frame() is None
    assert not state.over


def test_frames_add_up_to_the_whole():
    state = RunState()
    frames: list[dict[str, Any]] = []
    entries = (SPEC, PLAN, LOAD_PLAN, phase("load", 0), second(1, 5, 5, 5, 7.0), second(2, 9, 9, 9))
    for entry in entries:
        state.take(entry)
        frame = state.frame()
        assert frame
        frames.append(frame)

    assert state.frame() is None
    together: dict[str, Any] = {}
    for frame in frames:
        together |= frame["set"]
    whole = state.whole()
    assert {key: whole["set"][key] for key in together} == together
    assert [row for frame in frames for row in frame.get("rows", ())] == whole["rows"]


def test_a_name_is_what_it_was_and_nobody_reads_it_as_anything_else():
    script = "<script>alert(1)</script>"
    state = stored({"kind": "log", "name": script, "lines": [script], "exception": []})

    assert state.whole()["set"]["logs"] == [{"name": script, "lines": [script], "exception": []}]


def test_ranges_and_ranks():
    assert [*unranged("0-2,7")] == [0, 1, 2, 7]
    assert [*unranged("")] == []
    assert percentile([], 0.5) is None
    assert percentile([1.0, 2.0, 3.0], 0.5) == 2.0
