"""The questions of a run: its workload's, and the one to which a plan may change."""

from __future__ import annotations

from collections.abc import Sequence

from harness.evidence.changed_query import asked_of
from harness.model import RunSpec
from workloads.base import Question
from workloads.cells import Codes
from workloads.registry import question_of, results_of


def other_question(spec: RunSpec, codes: Codes) -> Question | None:
    asked = asked_of(spec.fault)
    return question_of(spec, asked.words, codes) if asked else None


def keys_of(spec: RunSpec) -> Sequence[str]:
    """Return the names of all result keys by number, including those of the other question."""
    question = other_question(spec, Codes())
    return question.keys if question else results_of(spec.tape).keys
