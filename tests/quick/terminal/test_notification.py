"""`--notify`: where the text goes, what it says, and that no foreign text controls the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext

import pytest
import typer

from harness.cli.common_flags import conclude, for_long
from harness.model import HarnessError, Outcome, Stopped, UsageError
from harness.terminal import notification
from harness.terminal.notification import notifier_words, sequence

SENT = tuple[str, str]


def found(name):
    return f"/usr/bin/{name}"


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"TERM": "xterm"}, ""),
        ({"TERM": "foot"}, "\x1b]777;notify;t, u;FAIL\x1b\\"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "\x1b]777;notify;t, u;FAIL\x1b\\"),
        ({"TERM": "xterm-kitty"}, "\x1b]9;t; u: FAIL\x1b\\"),
        ({"TERM": "xterm", "TERM_PROGRAM": "WezTerm"}, "\x1b]9;t; u: FAIL\x1b\\"),
        ({"TERM": "foot", "TMUX": "/tmp/tmux"}, ""),
    ],
)
def test_a_terminal_gets_only_a_sequence_that_it_knows(env, told):
    assert sequence(env, "t; u", "FAIL") == told


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has a notifier of its own")
@pytest.mark.parametrize(
    ("env", "is_asked"), [({"DISPLAY": ":0"}, True), ({"WAYLAND_DISPLAY": "w"}, True), ({}, False)]
)
def test_a_notifier_is_asked_where_there_is_a_desktop(env, is_asked):
    words = notifier_words(env, found, "streamgauge run", "FAIL 3 < 4")

    assert (words[:1] == ["/usr/bin/notify-send"]) is is_asked
    assert not is_asked or words[-3:] == ["--", "streamgauge run", "FAIL 3 &lt; 4"]
    assert notifier_words(env, lambda _: None, "a", "b") == []


@pytest.fixture
def sent(monkeypatch):
    told: list[SENT] = []
    monkeypatch.setattr(notification, "send", lambda *what: told.append(what))
    return told


def ending(error=None, line=""):
    @for_long("run")
    def command() -> None:
        if line:
            notification.verdict(line)
        if error:
            raise error

    return command


@pytest.mark.parametrize(
    ("error", "line", "text"),
    [
        (typer.Exit(1), "FAIL  lost: 3 events", "FAIL lost: 3 events"),
        (None, "", "has ended"),
        (typer.Exit(3), "", "ended with exit code 3"),
        (HarnessError("no room"), "", "broke: no room"),
        (KeyError("x"), "", "broke: KeyError: 'x'"),
    ],
)
def test_the_text_is_the_verdict_or_how_else_it_ended(sent, error, line, text):
    with pytest.raises(type(error)) if error else nullcontext():
        ending(error, line)(notify=True)

    assert sent == [("streamgauge run", text)]


@pytest.mark.parametrize("error", [Stopped(2), UsageError("--rate x")])
def test_who_stops_it_or_mistypes_is_not_notified(sent, error):
    with pytest.raises(type(error)):
        ending(error)(notify=True)

    assert sent == []


def test_without_the_flag_nothing_is_sent(sent):
    ending()()

    assert sent == []


def test_the_verdict_of_one_command_is_not_told_of_the_next(sent):
    ending(line="PASS  fine")(notify=True)
    ending()(notify=True)

    assert [text for _, text in sent] == ["PASS fine", "has ended"]


def test_json_is_notified_with_the_same_sentence(sent, capsys):
    @for_long("search")
    def command() -> None:
        conclude(True, {}, ["PASS  sustains 5/s", ""], Outcome.PASS)

    with pytest.raises(typer.Exit):
        command(notify=True)

    assert sent == [("streamgauge search", "PASS sustains 5/s")]
    assert capsys.readouterr().out == "{}\n"


def test_a_verdict_with_control_characters_reaches_no_terminal_raw(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for name in (*notification.IN_BETWEEN, *notification.DESKTOPS, "TERM_PROGRAM", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "foot")

    notification.send("streamgauge run", "FAIL \x1b]0;owned\a" + "x" * 500)

    said = capsys.readouterr().err
    assert said.startswith("\x1b]777;notify;streamgauge run;FAIL \\x1b]0;owned\\x07xxx")
    assert said.endswith("\x1b\\\a")
    assert len(said) < 300


@pytest.mark.parametrize("error", [OSError("gone"), subprocess.TimeoutExpired("notify-send", 5)])
def test_a_notifier_that_fails_changes_nothing(monkeypatch, capsys, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(notification, "notifier_words", lambda *_: ["notify-send"])
    monkeypatch.setattr(subprocess, "run", fails)

    notification.send("streamgauge run", "PASS")

    assert capsys.readouterr() == ("", ""), "and in a pipe no bell rings"


def test_a_notifier_runs_and_gets_the_text(monkeypatch, tmp_path):
    """A real process in place of the desktop's."""
    notifier = tmp_path / "notify-send"
    notifier.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\n')
    notifier.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")

    notification.send("streamgauge run", "FAIL lost: 3 events")

    assert (tmp_path / "told").read_text().splitlines()[-2:] == ["streamgauge run", "FAIL lost: 3 events"]
