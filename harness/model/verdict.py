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


@dataclass(frozen=True)
class Verdict:
    """The answer of a run."""

    outcome: Outcome
    sentence: str
    slack: int  # how many events could be missing without being noticed; 0 = the verdict is to the single event
    checks: tuple[CheckResult, ...]
    totals: Mapping[str, int]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(check.word for check in self.checks if check.word and check.outcome is not Outcome.PASS)
