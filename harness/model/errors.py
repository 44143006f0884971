"""How a command ends that has no answer: whose mistake it was, or who stopped it."""

from __future__ import annotations

import signal


class UsageError(Exception):
    """The user asked for something that cannot be: exit 2. The text is one whole sentence or more."""


class HarnessError(Exception):
    """The harness or the machine under it broke, not the engine: exit 4. The text is one whole sentence or more."""


class Stopped(SystemExit):
    """Somebody ended the program from outside; its exit code is the usual one for that signal."""

    def __init__(self, number: int, *, again: bool = False) -> None:
        super().__init__(128 + number)
        self.exit_code = 128 + number
        self.again = again  # in the middle of the end that an earlier signal had begun
        self.name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        self.name += ", a second signal" if again else ""
