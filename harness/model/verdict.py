"""What is said of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.model.outcome import Outcome

Blame = Literal["plan", "generator", "producer or Kafka", "engine", "evidence"]


@dataclass(frozen=True)
class Witness:
    """One wrong thing, as small as it can be said."""

    cell: str  # "campaign 17 (uuid), window 12:00:10" or another subject
    expected: str
    seen: str
    detail: str
    event_ids: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    from_ms: int | None = None  # when it went wrong: at some time from here ...
    until_ms: int | None = None  # ... to here; None: nobody knows


@dataclass(frozen=True)
class CheckResult:
    """The answer of one check. `word` names the kind of wrong (lost, duplicated, ...), empty when there is none."""

    name: str
    outcome: Outcome
    sentence: str
    word: str = ""
    count: int = 0
    blame: Blame | Literal[""] = ""
    witnesses: tuple[Witness, ...] = ()
    asked: bool = True  # False: of this run nothing is claimed by it, and its PASS says nothing


@dataclass(frozen=True)
class Verdict:
    """The answer of a run."""

    outcome: Outcome
    sentence: str
    slack: int  # how many events could be missing, by what is compared, without being noticed
    checks: tuple[CheckResult, ...]
    totals: Mapping[str, int]
    covers: str = ""  # beside the slack: what is compared, and what that can't show
    looked: str = ""  # how often the results were looked at; "": nobody did, or nobody knows

    @property
    def slack_said(self) -> str:
        """Beside what is compared, which a run of an older version does not say."""
        return f"{self.slack:,} {self.covers}".rstrip()

    @property
    def words(self) -> tuple[str, ...]:
        """Each once: two checks may find the same."""
        wrong = (check for check in self.checks if check.word and check.outcome is not Outcome.PASS)
        return tuple(dict.fromkeys(check.word for check in wrong))
