"""A text that is shown again whenever it changes: in place on a terminal, one after the other elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from itertools import groupby

from harness.terminal.screens import is_able

EVERY_S = 1.0
MOST_OF_A_CORE = 0.1  # a list of thousands of runs takes long to make, and a run beside it is being measured
FROM_THE_TOP = "\x1b[H\x1b[J"  # the cursor goes to the upper left corner, and all below it is erased


def show_changes(make: Callable[[], str]) -> None:
    """Show a text, and each new version of it, until a signal ends the program."""
    for text, _ in groupby(_versions(make, time.monotonic, time.sleep)):
        print(frame(text) if is_able(sys.stdout) else text, flush=True)


def _versions(make: Callable[[], str], now_s: Callable[[], float], sleep_s: Callable[[float], None]) -> Iterator[str]:
    while True:
        begin_s = now_s()
        yield make()
        sleep_s(max(EVERY_S, (now_s() - begin_s) / MOST_OF_A_CORE))


def frame(text: str) -> str:
    """Return what draws a text over the one before. If it is too long its end is shown, where the newest lines are."""
    rows = max(1, shutil.get_terminal_size().lines - 1)
    return FROM_THE_TOP + "\n".join(text.splitlines()[-rows:])
