"""A watched text: shown when it changes, in place on a terminal, and cheap however long it takes to make."""

from __future__ import annotations

import os
import shutil
import sys
import time

import pytest

from harness.model import Stopped
from harness.terminal import watching


@pytest.fixture
def watched(monkeypatch, capsys):
    """What is printed of texts, each of which takes so long to make, and the pauses between."""

    def watch(texts, takes_s=0.0):
        now_s, pauses, left = [0.0], [], [*texts]

        def make():
            if not left:
                raise Stopped(2)
            now_s[0] += takes_s
            return left.pop(0)

        def pause(seconds):
            pauses.append(seconds)

        monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
        monkeypatch.setattr(time, "sleep", pause)
        with pytest.raises(Stopped):
            watching.show_changes(make)
        return capsys.readouterr().out, pauses

    return watch


def test_in_a_pipe_a_text_is_printed_once_for_each_change(watched):
    said, _ = watched(["a", "a", "b", "b", "a"])

    assert said == "a\nb\na\n"


def test_on_a_terminal_each_version_replaces_the_one_before(watched, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")

    said, _ = watched(["a", "b"])

    assert said == f"{watching.FROM_THE_TOP}a\n{watching.FROM_THE_TOP}b\n"


def test_a_long_list_shows_its_newest_lines(monkeypatch):
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((80, 4)))

    assert watching.frame("1\n2\n3\n4\n5") == f"{watching.FROM_THE_TOP}3\n4\n5"


def test_a_list_that_takes_long_is_made_less_often(watched):
    _, pauses = watched(["a", "b"], takes_s=0.5)

    assert pauses == pytest.approx([5.0, 5.0])
    assert watched(["a"])[1] == [watching.EVERY_S]
