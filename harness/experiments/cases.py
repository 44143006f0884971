"""The runs of an experiment that are planned as cases, and those that are made. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol, TypeVar

from harness.model import Outcome


class Case(Protocol):
    """One run to make."""

    @property
    def engine(self) -> str: ...
    @property
    def seed(self) -> int: ...


CaseT_co = TypeVar("CaseT_co", bound=Case, covariant=True)


class Made(Protocol[CaseT_co]):
    """The result of a run."""

    @property
    def case(self) -> CaseT_co: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def sentence(self) -> str: ...
    @property
    def run(self) -> str: ...  # its directory, relative to the experiment's


CaseT = TypeVar("CaseT", bound=Case)


def pending(wanted: Sequence[CaseT], done: Collection[Made[Any]]) -> list[CaseT]:
    made = {each.case for each in done}
    return [case for case in wanted if case not in made]
