"""Exceptions that end a command without a verdict: a usage error, a harness error, or a signal."""

from __future__ import annotations

import signal


class UsageError(Exception):
    """The user asked for something impossible: exit code 2. The text is one whole sentence or more."""


class HarnessError(Exception):
    """The harness or the machine failed, not the engine: exit code 4. The text is one whole sentence or more."""


class Stopped(SystemExit):
    """A signal ended the program. Its exit code is the usual one for that signal."""

    def __init__(self, number: int, *, again: bool = False) -> None:
        super().__init__(128 + number)
        self.exit_code = 128 + number
        self.again = again  # it arrived while the program was ending after an earlier signal
        self.name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        self.name += ", a second signal" if again else ""
