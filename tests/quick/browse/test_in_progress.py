"""The phase of a run in progress, by the lines of its history."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harness.model import RunSpec
from harness.rundir.store import Store
from reports.browse import in_progress
from reports.browse.in_progress import CUT_OFF, TAIL, Progress, ago, progress_of, tail
from tests.quick.browse.folders import RIGHT

MADE = {"kind": "made", "at_ms": 1_000}


@pytest.fixture(scope="module")
def spec(stored: Path) -> RunSpec:
    found: RunSpec = Store(stored / RIGHT).read_as("spec.json", RunSpec)
    return found


def progress(lines: list[dict[str, Any]], spec: RunSpec | None, now_ms: int) -> Progress:
    """Of a run on our clock."""
    last_ms = lines[-1]["at_ms"] if lines else 0
    return progress_of(lines, spec, now_ms, last_ms, last_ms)


def line(kind: str, at_ms: int, **facts: object) -> dict[str, Any]:
    return {"kind": kind, "at_ms": at_ms, **facts}


def test_each_phase_has_its_words_and_its_age() -> None:
    found = progress([MADE, line("begin", 2_000), line("started", 3_000)], None, 63_000)
    assert found.sentence == "the engine starts; begun 1 min 2 s ago; last written 1 min 0 s ago"


def test_the_load_is_shown_in_seconds(spec: RunSpec) -> None:
    lines = [MADE, line("epoch", 5_000, epoch_ms=10_000)]
    load_s = spec.tape.load_ms // 1000
    assert progress(lines, spec, 7_000).phase == "the load starts in 3 s"
    assert progress(lines, spec, 12_000).phase == f"load, 2 s of {load_s} s"
    assert progress(lines, spec, 11_000 + 1000 * load_s).phase == f"the end of a load of {load_s} s"
    assert progress(lines, None, 12_000).phase == "load, for 2 s"


def test_an_engine_that_starts_again_is_still_in_the_load(spec: RunSpec) -> None:
    lines = [MADE, line("epoch", 5_000, epoch_ms=10_000), line("started", 12_000, times=2)]
    assert progress(lines, spec, 13_000).phase.startswith("load, 3 s of")
    assert progress([*lines, line("loaded", 20_000)], spec, 21_000).phase == in_progress.PHASES["loaded"]


def test_a_run_whose_load_goes_on_still_writes(tmp_path: Path) -> None:
    """Its history has no line for minutes, and its live lines have one each second."""
    store = Store(tmp_path)
    store.tell("epoch", epoch_ms=1)
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "lines.jsonl").write_text("{}")
    now_ms = 1_790_000_000_000
    os.utime(tmp_path / "history.jsonl", (1_789_999_900, 1_789_999_900))
    os.utime(tmp_path / "live" / "lines.jsonl", (1_789_999_998, 1_789_999_998))
    assert in_progress.read(store, None, now_ms).quiet_s == 2.0
    (tmp_path / "live" / "lines.jsonl").unlink()
    assert in_progress.read(store, None, now_ms).quiet_s == 100.0


@pytest.mark.parametrize("epoch", [None, "noon", 1.5])
def test_a_foreign_line_breaks_nothing(epoch: object) -> None:
    found = progress_of([{"kind": "made"}, {"kind": "epoch", "at_ms": "x", "epoch_ms": epoch}], None, 1_000, 500, 0)
    assert (found.phase, found.begun_s, found.quiet_s) == ("load", None, 0.5)


def test_a_simulated_clock_is_not_taken_for_ours(spec: RunSpec) -> None:
    """Its history was written now, and its lines are of long ago."""
    now_ms = 1_790_000_000_000
    lines = [line("made", now_ms - 5_000), line("epoch", 1_000, epoch_ms=2_000)]
    found = progress_of(lines, spec, now_ms, now_ms - 1_000, 1_000)
    assert found.sentence == "load; begun 5 s ago; last written 1 s ago"


def test_without_a_line_nothing_is_claimed() -> None:
    assert progress([], None, 1).sentence == "its history has no line yet"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.9, "0 s ago"), (59, "59 s ago"), (125, "2 min 5 s ago"), (11_400, "3 h 10 min ago"), (900_000, "10 days ago")],
)
def test_an_age_has_at_most_two_units(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_the_end_of_a_history_is_read_and_half_a_line_shown(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert tail(path) == []
    many = b"".join(b'{"at_ms":%d,"kind":"cpu","facts":{"x":1}}\n' % number for number in range(5000))
    path.write_bytes(many + b'{"at_ms":7,"kind":"ep')
    assert len(many) > TAIL
    lines = tail(path)
    assert (lines[-1].kind, lines[-1].facts) == (CUT_OFF, '{"at_ms":7,"kind":"ep')
    assert (lines[-2].at_ms, lines[-2].kind, lines[-2].facts) == (4999, "cpu", 'facts {"x":1}')
    assert {each.kind for each in lines} == {"cpu", CUT_OFF}
    assert len(lines) < 5000
