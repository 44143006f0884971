"""Tables: as wide as the terminal at most, every word of them to be read; in a pipe a line for each row."""

from __future__ import annotations

import os
import shutil
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Outcome
from harness.terminal import console

WORDS = st.lists(st.text("abcdefghij-/.", min_size=1, max_size=30), max_size=12).map(" ".join)
ROWS = st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=1, max_size=5)
HEADER = ("fault", "needs", "a correct pipeline")


@pytest.fixture
def terminal(monkeypatch):
    def of(columns):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: columns is not None)
        monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((columns or 80, 24)))

    return of


@given(rows=ROWS, columns=st.sampled_from([60, 80, 200]))
def test_no_line_is_too_long_and_no_letter_is_lost(rows, columns):
    told = console.fitted_table(rows, HEADER, columns)

    assert max(map(len, told.splitlines())) <= columns
    assert _letters(told) == _letters("".join("".join(row) for row in [HEADER, *rows]))


def _letters(text: str) -> list[str]:
    return sorted("".join(text.split()))


def test_a_terminal_that_is_wide_enough_wraps_nothing(terminal):
    rows = [["x" * 30, "y" * 30, "z" * 30]]
    terminal(120)
    assert len(console.table(rows, HEADER).splitlines()) == 2
    terminal(80)
    assert len(console.table(rows, HEADER).splitlines()) > 2


def test_in_a_pipe_a_board_says_all_lines_now_and_then(monkeypatch, capsys):
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with console.board() as board:
        for now_s in (100.0, 110.0, 115.0, 116.0, 131.0):
            board.show([f"one at {now_s:.0f}", "two"])

    assert capsys.readouterr().err.split("\n") == ["one at 115", "two", "one at 131", "two", ""]


def test_on_a_terminal_a_board_stays_in_place_and_what_does_not_fit_is_cut(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    with console.board() as board:
        board.show(["x" * 100, "two"])
        console.say("said meanwhile")
        board.show(["x" * 100, "three"])

    said = capsys.readouterr().err
    assert "x" * 41 not in said
    assert "x" * 39 in said
    assert "\x1b[2K" in said, "the lines before are drawn over"
    assert said.index("two") < said.index("said meanwhile") < said.index("three")


def test_in_a_pipe_each_row_is_one_line(terminal):
    terminal(None)
    told = console.table([["x " * 90, "y", "z"]], HEADER)

    assert len(told.splitlines()) == 2
    assert ("x " * 90).strip() in told


@pytest.mark.parametrize("name", [None, "", "dumb", "xterm"])
def test_only_a_terminal_that_is_known_gets_colours_and_lines_that_move(name, monkeypatch, capsys):
    """`env -i` leaves no TERM."""
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", name) if name is not None else monkeypatch.delenv("TERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    is_known = name == "xterm"

    console.show_result(["PASS"], Outcome.PASS)
    with console.progress() as screen:
        assert isinstance(screen, console.LiveProgress) is is_known

    said = capsys.readouterr()
    assert ("\x1b[" in said.out, "\x1b[" in said.err) == (is_known, is_known)


def test_a_line_that_a_narrow_terminal_has_no_room_for_is_wrapped_below_its_beginning():
    line = "  late     " + "0 events dropped as late, at most 0 allowed " + "a/path/" * 12

    assert console.narrowed(line, None) == console.narrowed(line, 200) == [line]
    first, *others = console.narrowed(line, 40)
    assert len(first) <= 40
    assert first.startswith("  late     0 events")
    assert all(each.startswith("  ") for each in others)
    assert others[-1].strip() == "a/path/" * 12
