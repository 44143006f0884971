"""Question: a job that was changed during the run must answer the question as declared; known errors have names.

Ignored: the old question throughout. Partial: the new one from the seam on, in cells that needed all events. Residue:
values of the old job that the new one did not write again. Collision: windows of two lengths in one cell of the store.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.evidence.changed_query import CutoverRule
from harness.judging.changed import Changed
from harness.judging.checks.case import RunFacts, failed
from harness.model import CheckResult, Outcome

NAME = "question"
FEWEST_CELLS = 50
RIGHT = {
    CutoverRule.CARRY: "the old query before the seam and the new one after it, as declared (carry)",
    CutoverRule.FRESH: "the new query over all events, as declared (fresh)",
    CutoverRule.ANEW: "the new query after the seam, without counts of the old one in its cells, as declared (anew)",
}
UNPROVEN = {
    "no seam": "it is unknown which events are in the state with which the new job started",
    "vacuous": f"{{}} cells have events on both sides of the change, and fewer than {FEWEST_CELLS} prove nothing",
}
WRONG = {
    "collision": "windows of two lengths lie in the same cells of the store",
    "ignored": "the new query was ignored: all cells hold the counts of the old one",
    "partial": "the new query was applied only after the seam",
    "residue": "the wrong values were written by the old job, and the new one did not rewrite them",
}
# Other checks report the same counts. Which of these do depends on the batch that the change met.
BESIDE_IT = frozenset({"lost", "duplicated", "phantom", "masked", "non-monotonic", "early", "stale"})


def check(case: RunFacts) -> CheckResult:
    change = case.change
    if change is None:
        return CheckResult(NAME, Outcome.PASS, "the query did not change")
    if word := _unproven(change):
        return CheckResult(NAME, Outcome.UNKNOWN, UNPROVEN[word].format(change.both_sides), word, blame="evidence")
    if case.engine.state != "drained":
        return CheckResult(NAME, Outcome.PASS, "the engine did not reach the end; see other checks")
    if word := _way(case, change):
        found = case.differences
        return failed(NAME, WRONG[word], len(found), case.witnesses(found), word)
    if case.differences:
        return CheckResult(NAME, Outcome.PASS, "no other query explains the wrong cells; see other checks")
    return CheckResult(NAME, Outcome.PASS, RIGHT[change.means])


def has_name(words: Sequence[str]) -> bool:
    """Return True if a verdict names the wrong way in which the question was answered."""
    return any(word in WRONG for word in words)


def telling(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that matter: if the wrong way has a name, words for its consequences add nothing."""
    return tuple(word for word in words if not (has_name(words) and word in BESIDE_IT))


def _unproven(change: Changed) -> str:
    if not change.restored:
        return "no seam"
    return "vacuous" if change.both_sides < FEWEST_CELLS else ""


def _way(case: RunFacts, change: Changed) -> str:
    """Return the name of the wrong way; "" if there is none, or it has no name."""
    if change.collisions:
        return "collision"
    if not case.differences:
        return ""
    left = all(each.seen in change.left.get(each.cell, ()) for each in case.differences)
    same = (word for word, counts in change.others.items() if counts == case.observed.counts)
    return next(same, "residue" if left else "")
