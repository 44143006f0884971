"""The notification at the end of a long command, for `--notify`.

The terminal rings its bell. The text is shown by the desktop's notifier where one is there, else by the terminal if it
is known to understand such a sequence: a terminal that is not would print it.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from harness.model import HarnessError, Stopped, UsageError
from harness.terminal.command_end import PROGRAM, summary
from harness.terminal.screens import is_able
from harness.util.local_time import local
from harness.util.texts import printable, shown

BELL, ESCAPE = "\a", "\x1b"
NOTIFIER_S = 5.0  # a notifier without an answer by then is left alone
MOST = 200  # characters; a desktop shows two or three lines
IN_BETWEEN = ("TMUX", "STY")  # a multiplexer swallows such sequences, but hands on the bell
DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY")
TITLE_AND_TEXT = ("foot", "rxvt-unicode")  # beginnings of TERM
TEXT_ONLY = ("iTerm.app", "WezTerm", "ghostty")  # TERM_PROGRAM
KITTY = "xterm-kitty"
MACOS = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")

Finds = Callable[[str], str | None]


class _Ended:
    """The verdict with which the current command ends."""

    verdict: str = ""


def verdict(line: str) -> None:
    """Keep the verdict of the current command, with its sentence, for the notification."""
    _Ended.verdict = " ".join(line.split())


@contextmanager
def at_end(command: str) -> Iterator[None]:
    """Notify when the block ends, unless its user stopped it or mistyped a flag."""
    _Ended.verdict = ""
    try:
        yield
    except (Stopped, UsageError):
        raise
    except BaseException as error:
        send(f"{PROGRAM} {command}", _Ended.verdict or _without_verdict(error))
        raise
    send(f"{PROGRAM} {command}", _Ended.verdict or "has ended")


def _without_verdict(error: BaseException) -> str:
    code = getattr(error, "exit_code", None)
    if code is not None:
        return f"ended with exit code {code}"
    return f"broke: {error if isinstance(error, HarnessError) else summary(error)}"


def send(title: str, text: str) -> None:
    """Ring, and show the text. A notifier that fails changes nothing: the verdict is on the screen."""
    text = shown(printable(local(text)), MOST)
    notifier = notifier_words(os.environ, shutil.which, title, text)
    if notifier:
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(notifier, capture_output=True, check=False, timeout=NOTIFIER_S)
    if is_able(sys.stderr):
        print(f"{'' if notifier else sequence(os.environ, title, text)}{BELL}", end="", file=sys.stderr, flush=True)


def notifier_words(env: Mapping[str, str], which: Finds, title: str, text: str) -> list[str]:
    """Return the command of the desktop's notifier; nothing if there is none."""
    if any(map(env.get, DESKTOPS)) and (found := which("notify-send")):
        return [found, f"--app-name={PROGRAM}", "--", title, html.escape(text, quote=False)]
    if sys.platform == "darwin" and (found := which("osascript")):
        return [found, *(word for line in MACOS for word in ("-e", line)), title, text]
    return []


def sequence(env: Mapping[str, str], title: str, text: str) -> str:
    """Return the sequence by which this terminal shows a notification: OSC 777, OSC 9, or nothing."""
    if any(map(env.get, IN_BETWEEN)):
        return ""
    if env.get("TERM", "").startswith(TITLE_AND_TEXT) or env.get("VTE_VERSION"):
        return f"{ESCAPE}]777;notify;{title.replace(';', ',')};{text}{ESCAPE}\\"
    if env.get("TERM") == KITTY or env.get("TERM_PROGRAM") in TEXT_ONLY:
        return f"{ESCAPE}]9;{title}: {text}{ESCAPE}\\"
    return ""
