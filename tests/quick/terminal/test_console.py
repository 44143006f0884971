"""Tables: as wide as the terminal at most, every word of them to be read; in a pipe a line for each row."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Outcome
from harness.terminal import console
from harness.terminal.screens import LiveScreen, NullScreen, PlainScreen

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


@pytest.fixture
def on_a_terminal(monkeypatch):
    """Make stderr a terminal of 40 columns that can redraw lines, once the test runs: pytest replaces stderr before."""

    def make():
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.setenv("LINES", "24")

    return make


@pytest.fixture
def quiet():
    console.quieten(True)
    yield
    console.quieten(False)


def test_in_a_pipe_parallel_runs_say_all_their_lines_now_and_then():
    now_s, said = 100.0, list[str]()
    screen = PlainScreen(said.append, clock=lambda: now_s)
    for now_s in (100.0, 110.0, 115.0, 116.0, 131.0):
        screen.show([f"one at {now_s:.0f}", "two"])

    assert said == ["one at 115", "two", "one at 131", "two"]


def test_in_a_pipe_a_phase_is_a_line_and_goes_on_as_one_now_and_then():
    now_s, said = 0.0, list[str]()
    screen = PlainScreen(said.append, every_s=10, clock=lambda: now_s)
    screen.phase("engine", "4 opening events")
    for now_s in (1.0, 9.0, 10.0, 11.0, 20.0):
        screen.update({"now_ms": now_s * 1000, "sent": 0, "planned": 5, "done": 0, "fault": ""})

    assert [" ".join(line.split()) for line in said] == [
        "0.0 s engine waits for 4 opening events",
        "10 s engine waits for 4 opening events",
        "20 s engine waits for 4 opening events",
    ]


def test_on_a_terminal_lines_stay_in_place_and_what_does_not_fit_is_cut(on_a_terminal, capsys):
    on_a_terminal()
    with console.progress() as screen:
        screen.show(["x" * 100, "two"])
        console.say("said meanwhile")
        screen.show(["x" * 100, "three"])

    said = capsys.readouterr().err
    assert "x" * 41 not in said
    assert "x" * 37 in said
    assert "\x1b[2K" in said, "the lines before are drawn over"
    assert said.index("said meanwhile") < said.index("three")
    assert "\x1b[?25l" not in said, "a hidden cursor would stay so if the harness were killed"


def test_what_is_printed_to_stdout_meanwhile_stays_there(on_a_terminal, capsys):
    on_a_terminal()
    with console.progress():
        print('{"exit": 0}')

    assert capsys.readouterr().out == '{"exit": 0}\n'


def test_an_error_closes_the_screen_and_what_is_said_afterwards_is_plain(on_a_terminal, capsys):
    on_a_terminal()
    before = sys.stderr
    with suppress(KeyboardInterrupt), console.progress() as screen:
        screen.phase("load", "nothing")
        assert not sys.stderr.isatty(), "an installer prints lines then, and no bar"
        raise KeyboardInterrupt

    assert sys.stderr is before
    assert sys.stderr.isatty()
    capsys.readouterr()
    console.note("plain")
    assert capsys.readouterr().err == "plain\n"


def test_the_runs_of_an_experiment_share_its_screen_with_its_notes(on_a_terminal):
    on_a_terminal()
    with console.progress() as outer:
        assert isinstance(outer, LiveScreen)
        for number in (1, 2):
            console.note(f"run {number} of 2")
            with console.progress() as screen:
                assert screen is outer
                screen.phase("load", f"load {number}")
                shown = [line.text for line in outer.lines(40, 23)]
                assert shown[-1].endswith(f"waits for load {number}")
                assert shown[:-1] == [f"run {each} of 2" for each in range(1, number + 1)]
        assert [line.text for line in outer.lines(40, 23)] == ["run 1 of 2", "run 2 of 2"]


def test_however_much_happens_a_screen_fits_its_terminal(on_a_terminal):
    on_a_terminal()
    with console.progress() as screen:
        assert isinstance(screen, LiveScreen)
        for number in range(100):
            console.note(f"note {number} {'word ' * 20}")
            screen.phase("load", f"step {number}")
        lines = screen.lines(40, 23)

    assert len(lines) == 23
    assert max(len(line.text) for line in lines) <= 40
    assert lines[-1].text.endswith("step 99")


def test_notes_outside_of_a_screen_are_lines(capsys):
    console.note("one")

    assert capsys.readouterr() == ("", "one\n")


def test_quiet_shows_no_progress_and_keeps_sentences_that_have_to_be_read(quiet, on_a_terminal, capsys):
    on_a_terminal()
    with console.progress() as screen:
        assert isinstance(screen, NullScreen)
        screen.phase("load", "nothing")
        screen.show(["row"])
    console.note("a note")
    console.say("a sentence")

    assert capsys.readouterr() == ("", "a sentence\n")


def test_quiet_prints_of_a_result_the_verdict_and_the_path(quiet, capsys):
    lines = ["FAIL  lost: 5 events", "      in 2 cells", "", "  load  1", "a table\nof two", "", "  runs/x"]
    console.show_result(lines, Outcome.FAIL)

    assert capsys.readouterr().out == "FAIL  lost: 5 events\n      in 2 cells\n  runs/x\n"


@pytest.mark.parametrize("lines", [["PASS"], ["PASS", "more"]])
def test_a_verdict_without_more_is_all_there_is(lines):
    assert console.verdict_only(lines) == lines


def test_a_table_in_a_result_keeps_its_lines_on_a_terminal(terminal, capsys):
    terminal(80)
    console.show_result(["PASS  right", "", console.table([["x" * 30, "y"]] * 5, ("a", "b"))], Outcome.PASS)

    said = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert said.splitlines()[3:] == [f"{'x' * 30}  y"] * 5


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
        assert isinstance(screen, LiveScreen) is is_known
        screen.show(["one"])

    said = capsys.readouterr()
    assert ("\x1b[" in said.out, "\x1b[" in said.err) == (is_known, is_known)


def test_a_line_that_a_narrow_terminal_has_no_room_for_is_wrapped_below_its_beginning(monkeypatch):
    line = "  late     " + "0 events dropped as late, at most 0 allowed " + "a/path/" * 12
    pipe, terminal = io.StringIO(), io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "41")

    assert console.fit_to_terminal(line, pipe) == line
    first, *others = console.fit_to_terminal(f"{line}\nshort", terminal).split("\n")
    assert len(first) <= 40
    assert first.startswith("  late     0 events")
    assert all(each.startswith("  ") for each in others[:-1])
    assert [each.strip() for each in others[-2:]] == ["a/path/" * 12, "short"]


def test_a_header_is_wrapped_before_any_cell():
    rows = [["Kafka traffic", "+10.4%", "-18.2% to +25.0%", "-1.1%", "INCONCLUSIVE"]] * 10
    header = ("metric", "head by base", "it lies within", "base by itself", "answer")
    lines = console.fitted_table(rows, header, 68).splitlines()
    assert len(lines) == 2 + len(rows)
    assert lines[0].split()[:3] == ["metric", "head", "by"]
