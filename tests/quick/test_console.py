"""Tables: as wide as the terminal at most, every word of them to be read; in a pipe a line for each row."""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import console

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


def test_in_a_pipe_each_row_is_one_line(terminal):
    terminal(None)
    told = console.table([["x " * 90, "y", "z"]], HEADER)

    assert len(told.splitlines()) == 2
    assert ("x " * 90).strip() in told
