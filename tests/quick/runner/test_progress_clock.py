"""Progress in another unit is named before the load starts."""

from __future__ import annotations

import pytest

from harness.runner.progress_time_unit import another_clock, progress_lines

BEGIN_MS, END_MS = 1_793_541_958_000, 1_793_541_960_000


@pytest.mark.parametrize(
    ("at", "parts"),
    [
        ("1793541959", ["at = 1793541959:", "looks like seconds"]),
        ("1793541959.25", ["looks like seconds"]),
        ("1793541959000000", ["looks like microseconds"]),
        ("1793541959000000000", ["looks like nanoseconds"]),
        ("0", ["at = 0:", "not within the time of the run"]),
        ("-5", ["not within the time of the run"]),
        ("1", ["not within the time of the run"]),
        ("1e30", ["not within the time of the run"]),
        ("Infinity", ["not within the time of the run"]),
        ("NaN", ["not within the time of the run"]),
        ("9" * 400, ["at = 9999", "...", "not within the time of the run"]),
        ('"1793541959"', ['at = "1793541959":', "looks like seconds"]),
        ('"soon"', ['at = "soon":', "not a number"]),
        ("true", ["not a number"]),
        ("null", ["not a number"]),
    ],
)
def test_a_time_outside_of_the_run_is_named_with_its_line_and_what_it_looks_like(at, parts):
    lines = [b'{"at": 1793541958500}', b'{"at": %s}' % at.encode()]
    sentence = another_clock(lines, BEGIN_MS, END_MS)

    for part in ("Line 2 of progress.jsonl", "milliseconds since 1970 are expected", *parts):
        assert part in sentence


def test_milliseconds_are_fine_and_what_is_no_progress_is_not_asked():
    lines = [b'{"at": 1793541959000}', b'{"at": 1793541959000.5}', b"torn {", b"[1]", b"", b"[" * 200_000, b"\xff"]
    lines.append(b'{"at": %s}' % (b"9" * 5000))  # its own parser can't read it either, and says so
    lines += [b'{"at": "1793541959000"}', b'{"started": true}']  # as the parser reads them: a moment, and no progress

    assert another_clock(lines, BEGIN_MS, END_MS) == ""


def test_a_line_that_is_still_written_is_not_read(tmp_path):
    assert progress_lines(tmp_path) == []
    (tmp_path / "progress.jsonl").write_bytes(b'{"at": 1}\n{"at": 17')

    assert progress_lines(tmp_path) == [b'{"at": 1}']
