"""The runs of an experiment that are planned as cases, and those that are made. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.model import Outcome

CaseT = TypeVar("CaseT")


@dataclass(frozen=True)
class RanCase:
    """The result of a run. If figures are withheld they are empty."""

    case: Any  # with an engine and a seed
    outcome: Outcome
    sentence: str
    run: str  # its directory, relative to the experiment's
    figures: Mapping[str, float] = field(default_factory=dict)


def pending(wanted: Sequence[CaseT], done: Sequence[RanCase]) -> list[CaseT]:
    made = {each.case for each in done}
    return [case for case in wanted if case not in made]
