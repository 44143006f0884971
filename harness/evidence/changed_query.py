"""A planned change of the question during a run, and its declared meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.model import FaultSpec
from harness.util.durations import seconds

SAME = "same"
WORDS = ("counts", "by", "window")  # options of a fault that changes the question


class CutoverRule(StrEnum):
    """The rule, declared before the run, for correct results after a change.

    The seam is the first offset of each partition that is not in the state with which the new job began.
    """

    SAME = SAME  # the question stays the same
    CARRY = "carry"  # the old question before the seam, the new one after it
    FRESH = "fresh"  # the new question for everything
    ANEW = "anew"  # the new question after the seam, and nothing else in any cell that it touches


@dataclass(frozen=True)
class QueryChange:
    means: CutoverRule
    words: Mapping[str, str]  # as `workloads.base.Changeable` has them


def asked_of(fault: FaultSpec) -> QueryChange | None:
    """Return the change that a fault makes to the question. None: the question stays the same."""
    changes = [leaf for leaf in fault.leaves if leaf.options.get("means", SAME) != SAME]
    if not changes:
        return None
    options = changes[0].options
    words = {name: options[name] for name in WORDS if options[name] != SAME}
    if "window" in words:
        words["window_ms"] = str(round(seconds(words.pop("window"), "window") * 1000))
    return QueryChange(CutoverRule(options["means"]), words)
