"""The three answers there are, and the exit codes of the program."""

from __future__ import annotations

from enum import StrEnum


class Exit:
    """Exit codes; the same everywhere, also in the README."""

    PASS, FAIL, USAGE, UNKNOWN, BROKEN = 0, 1, 2, 3, 4


class Outcome(StrEnum):
    """The three answers a check or a run can give. One order of severity everywhere: FAIL > UNKNOWN > PASS."""

    PASS = "PASS"
    UNKNOWN = "UNKNOWN"
    FAIL = "FAIL"

    @property
    def exit_code(self) -> int:
        return {Outcome.PASS: Exit.PASS, Outcome.UNKNOWN: Exit.UNKNOWN, Outcome.FAIL: Exit.FAIL}[self]

    @staticmethod
    def worst(outcomes: list[Outcome]) -> Outcome:
        """Nothing judged is UNKNOWN, never PASS."""
        order = [Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL]
        return max(outcomes, key=order.index, default=Outcome.UNKNOWN)
