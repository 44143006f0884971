"""The three outcomes, and the exit codes of the program."""

from __future__ import annotations

from enum import StrEnum


class Exit:
    """The exit codes of all commands, as listed in docs/reference/exit-codes.md."""

    PASS, FAIL, USAGE, UNKNOWN, BROKEN = 0, 1, 2, 3, 4


class Outcome(StrEnum):
    """The outcome of a check or a run, by severity: FAIL > UNKNOWN > PASS."""

    PASS = "PASS"
    UNKNOWN = "UNKNOWN"
    FAIL = "FAIL"

    @property
    def exit_code(self) -> int:
        return {Outcome.PASS: Exit.PASS, Outcome.UNKNOWN: Exit.UNKNOWN, Outcome.FAIL: Exit.FAIL}[self]

    @staticmethod
    def worst(outcomes: list[Outcome]) -> Outcome:
        """Return the most severe outcome. Without any, return UNKNOWN, never PASS."""
        order = [Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL]
        return max(outcomes, key=order.index, default=Outcome.UNKNOWN)
