"""The verdict of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.model.outcome import Outcome

Blame = Literal["plan", "generator", "producer or Kafka", "engine", "evidence"]


@dataclass(frozen=True)
class Witness:
    """One wrong result, described as briefly as possible."""

    cell: str  # "campaign 17 (uuid), window 12:00:10" or another subject
    expected: str
    seen: str
    detail: str
    event_ids: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    from_ms: int | None = None  # the start of the interval in which it went wrong ...
    until_ms: int | None = None  # ... and its end; None: unknown


@dataclass(frozen=True)
class CheckResult:
    """The result of one check. `word` names the kind of error (lost, duplicated, ...) and is empty if there is none."""

    name: str
    outcome: Outcome
    sentence: str
    word: str = ""
    count: int = 0
    blame: Blame | Literal[""] = ""
    witnesses: tuple[Witness, ...] = ()
    asked: bool = True  # False: the run makes no claim that the check could test, and its PASS means nothing


@dataclass(frozen=True)
class Verdict:
    """The verdict of a run."""

    outcome: Outcome
    sentence: str
    slack: int  # how many events could be missing without detection by the comparison
    checks: tuple[CheckResult, ...]
    totals: Mapping[str, int]
    covers: str = ""  # beside the slack: what is compared, and what that can't show
    looked: str = ""  # how often the results were polled; "": never, or unknown

    @property
    def slack_said(self) -> str:
        """The slack with what it covers, which runs of older versions do not record."""
        return f"{self.slack:,} {self.covers}".rstrip()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all checks that did not pass, without repetition: two checks may find the same error."""
        wrong = (check for check in self.checks if check.word and check.outcome is not Outcome.PASS)
        return tuple(dict.fromkeys(check.word for check in wrong))
