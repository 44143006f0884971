"""An upgrade: one job replaces another in the middle of a run, on a copy of its state. Are all counts still right?

It is a run with the fault `change-job`; this module finds the word for its outcome.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from harness.engines.manifest import program_of
from harness.evidence.changed_query import asked_of
from harness.judging.checks import question
from harness.model import CheckResult, EngineManifest, FaultReport, Outcome, Verdict

DIFFERENCE = "jobs.diff"
WENT_ON = "it went on from a copy of the state, and all counts are right"
DUPLICATED = "duplicated"  # a word of a verdict
STATELESS = "the old job left no state that could be copied"
UNSAID = ("home", "shipped")  # fields of a manifest about its place


class Word(StrEnum):
    RIGHT = "right"
    REFUSED = "refused"  # the new job stopped loudly; the old one went on
    IGNORED = "ignored"  # the job answers the old question throughout, or keeps a setting
    PARTIAL = "partial"  # the new question is answered from the change on, although more was declared
    RESIDUE = "residue"  # uncommitted writes of the old job
    COLLISION = "collision"  # two questions in one cell of the store
    WRONG = "wrong"
    UNKNOWN = "not known"


OF_QUESTION = (Word.COLLISION, Word.IGNORED, Word.PARTIAL, Word.RESIDUE)


@dataclass(frozen=True)
class Upgraded:
    """The outcome of an upgrade."""

    word: Word
    sentence: str
    changed_lines: int  # lines that differ between the two jobs

    @property
    def outcome(self) -> Outcome:
        return {Word.RIGHT: Outcome.PASS, Word.UNKNOWN: Outcome.UNKNOWN}.get(self.word, Outcome.FAIL)


def fault(to: str, stop: str, when: str, **others: str) -> str:
    """Return the text of the fault. `others` are further options; `asks` holds several in one text. Empty ones are left
    out.
    """
    asks = others.pop("asks", "")
    told = [f"{name}={word}" for name, word in others.items() if word]
    return f"change-job({', '.join([f'to={to}', f'stop={stop}', *told, *filter(None, [asks])])})@{when}"


def came_of(verdict: Verdict, faults: Sequence[FaultReport]) -> str:
    """Return the word for the outcome of an upgrade; "" for any other run."""
    changes = tuple(each for each in faults if each.spec.action.startswith("change-"))
    return judged(verdict, changes, 0).word.value if changes else ""


def judged(verdict: Verdict, faults: tuple[FaultReport, ...], changed_lines: int) -> Upgraded:
    """Judge an upgrade. Counts come first: a new job that stops loudly after it has corrupted them was no refusal."""
    found = next((each for each in faults if each.spec.action.startswith("change-")), None)
    if verdict.outcome is Outcome.FAIL and _about_counts(verdict.checks):
        word = next((word for word in OF_QUESTION if word in verdict.words), Word.WRONG)
        return Upgraded(word, _spoilt(verdict, found), changed_lines)
    if found is None or not found.landed:
        return Upgraded(Word.UNKNOWN, found.proof if found else "the new job was never started", changed_lines)
    if found.refused:
        return Upgraded(Word.REFUSED, found.refused, changed_lines)
    if verdict.outcome is not Outcome.PASS:
        return Upgraded(Word.UNKNOWN, verdict.sentence, changed_lines)
    if found.ignored:
        return Upgraded(Word.IGNORED, found.ignored, changed_lines)
    return Upgraded(Word.RIGHT, _went_on(found), changed_lines)


def _spoilt(verdict: Verdict, report: FaultReport | None) -> str:
    """A job without a state starts without the counts so far, and may read events again."""
    if report is None or not report.stateless or DUPLICATED not in verdict.words:
        return verdict.sentence
    return f"counts again: {STATELESS}, and the new one counted once more what it read again; {verdict.sentence}"


def _went_on(report: FaultReport) -> str:
    if report.stateless:
        return f"{STATELESS}; the new one went on all the same, and all counts are right"
    asked = asked_of(report.spec)
    return f"{WENT_ON}: {question.RIGHT[asked.means]}" if asked else WENT_ON


def _about_counts(checks: tuple[CheckResult, ...]) -> bool:
    return any(check.outcome is Outcome.FAIL and check.name != "objective" for check in checks)


def difference(old: EngineManifest, new: EngineManifest) -> list[str]:
    """Return the differences of the two manifests and of the two jobs."""
    names = f"{old.id}/manifest", f"{new.id}/manifest"
    manifests = difflib.unified_diff([*_said(old)], [*_said(new)], *names, lineterm="", n=0)
    one, other = program_of(old), program_of(new)
    return [*manifests, *difflib.unified_diff(_text(one), _text(other), str(one), str(other), lineterm="")]


def changed(lines: list[str]) -> int:
    """Count the added and removed lines."""
    return sum(line[:1] in ("+", "-") and line[:3] not in ("+++", "---") for line in lines)


def _said(manifest: EngineManifest) -> Iterator[str]:
    for name, value in asdict(manifest).items():
        if name not in UNSAID:
            yield f"{name} = {value}"


def _text(path: Path) -> list[str]:
    """Empty for a binary file."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
