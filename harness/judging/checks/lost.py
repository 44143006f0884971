"""Lost: an event that is in the Kafka log, and was not late, is missing from its cell."""

from __future__ import annotations

import numpy as np

from harness.evidence.ledger import Difference, Ledger
from harness.judging import census
from harness.judging.checks import explained, removed, reruns, seam
from harness.judging.checks.case import RunFacts, failed
from harness.judging.checks.kinds import COUNTS, TIMES
from harness.model import CheckResult, Outcome
from harness.util.integers import parse_int64
from harness.util.texts import many


def check(case: RunFacts) -> CheckResult:
    short = [d for d in case.differences_of(TIMES) if d.surplus < 0 and d.may > 0]
    few = case.lacking_events
    if not short and not few:
        return CheckResult("lost", Outcome.PASS, "no cell holds too few")
    if case.engine.state != "drained":
        # Events that an engine has not reached are not lost, only unseen; the check `engine` fails the run.
        sentence = f"{_missing(case, short, few, 'unseen in')}: the engine is {case.engine.state}"
        return CheckResult("lost", Outcome.UNKNOWN, sentence, count=_count(short, few), blame="engine")
    if not short or not case.differences_of(COUNTS):  # neither maxima nor matches show which events are missing
        return _failed(case, short, few, explained.by_names(case))
    cause, word = _cause(case, short), "lost"
    if not cause and (cause := explained.by_restart(case)):
        short = case.lacking  # include events that may have been late: both have one cause
    elif not cause and (cause := explained.by_watermark(case)):
        word = "late-dropped"
    elif not cause:
        cause = explained.by_forgotten_names(case)
    return _failed(case, short, few, cause, word)


def _failed(
    case: RunFacts, short: list[Difference], few: list[Difference], cause: str, word: str = "lost"
) -> CheckResult:
    sentence = _missing(case, short, few, "missing from")
    sentence = f"{sentence}: {cause}" if cause else sentence
    witnesses = case.witnesses([*short, *few])
    return failed("lost", sentence, _count(short, few), witnesses, word)


def _missing(case: RunFacts, short: list[Difference], few: list[Difference], where: str) -> str:
    """Count missing events, and cells with other values, which do not show a number of events."""
    if not short:
        return f"{many(len(few), 'cell holds', 'cells hold')} too few"
    events = case.events_said(-sum(d.surplus for d in short), " is", " are")
    beside = f", and other values of {many(len(few), 'cell')} are too small with them" if few else ""
    return f"{events} {where} {many(len(short), 'cell')}{case.in_several}{beside}"


def _count(short: list[Difference], few: list[Difference]) -> int:
    return -sum(d.surplus for d in short) or len(few)


def _cause(case: RunFacts, short: list[Difference]) -> str:
    return (
        removed.unread(case, short)
        or reruns.skipped(case, short)
        or seam.passed_over(case, short)
        or _orphaned(case, short)
        or _copies(case, short)
        or explained.by_names(case)
        or explained.by_one_window(case)
    )


def _copies(case: RunFacts, short: list[Difference]) -> str:
    """A job that removes duplicates is wrong here, because each record of the log counts."""
    if not case.census.copies:
        return ""
    rows = np.concatenate([is_copy & part.kept for part, is_copy in census.copies(case.judged, case.audit.again)])
    copies = case.only(case.fold(rows), COUNTS)
    if not copies.total or copies != Ledger((d.cell, -d.surplus) for d in short):
        return ""
    return (
        "exactly the "
        f"{many(copies.total, 'copy in the tape, which counts', 'copies in the tape, which count')} twice by the rules"
    )


def _orphaned(case: RunFacts, short: list[Difference]) -> str:
    """Report two writers that created the same window at once; "" if no hash is orphaned."""
    orphans = [stray for stray in case.observed.strays if stray.kind == "orphan"]
    held = sum(parse_int64(stray.value) or 0 for stray in orphans)
    exactly = "exactly as many" if held == -sum(d.surplus for d in short) else many(held, "event")
    hashes = "1 orphaned hash" if len(orphans) == 1 else f"{len(orphans):,} orphaned hashes"
    return f"{exactly} lie in {hashes}, to which no campaign refers" if orphans else ""
