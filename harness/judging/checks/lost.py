"""Lost: an event that is in the Kafka log, and was not late, is missing from its cell."""

from __future__ import annotations

from harness.judging.checks import removed, reruns, seam
from harness.judging.checks.case import Case
from harness.judging.checks.kinds import COUNTS, GROWING
from harness.judging.ledger import Difference, Ledger
from harness.model import CheckResult, Outcome
from harness.texts import many
from harness.whole import whole


def check(case: Case) -> CheckResult:
    short = [d for d in case.differences_of(COUNTS) if d.surplus < 0 and d.may > 0]
    if few := [d for d in case.differences_of(GROWING - COUNTS) if d.surplus < 0 and d.may > 0]:
        return _too_few(case, short, few)
    if not short:
        return CheckResult("lost", Outcome.PASS, "no cell holds too few")
    missing = -sum(d.surplus for d in short)
    if case.engine.state != "drained":
        # What an engine has not reached is not lost, only unseen; the check `engine` fails the run.
        sentence = (
            f"{many(missing, 'event is', 'events are')} unseen in {many(len(short), 'cell')}: the "
            f"engine is {case.engine.state}"
        )
        return CheckResult("lost", Outcome.UNKNOWN, sentence, count=missing, blame="engine")
    return CheckResult(
        "lost",
        Outcome.FAIL,
        f"{many(missing, 'event is', 'events are')} missing from {many(len(short), 'cell')}{_cause(case, short)}",
        word="lost",
        count=missing,
        blame="engine",
        witnesses=case.witnesses(short),
    )


def _too_few(case: Case, short: list[Difference], few: list[Difference]) -> CheckResult:
    """Also of values by which nobody can tell how many events are missing."""
    wrong = [*short, *few]
    sentence = f"{many(len(wrong), 'cell holds', 'cells hold')} too few"
    if case.engine.state != "drained":
        sentence = f"{sentence} so far: the engine is {case.engine.state}"
        return CheckResult("lost", Outcome.UNKNOWN, sentence, count=len(wrong), blame="engine")
    witnesses = case.witnesses(wrong)
    return CheckResult("lost", Outcome.FAIL, sentence, "lost", len(wrong), "engine", witnesses)


def _cause(case: Case, short: list[Difference]) -> str:
    cause = (
        removed.unread(case, short)
        or reruns.skipped(case, short)
        or seam.passed_over(case, short)
        or _orphaned(case, short)
        or _copies(case, short)
    )
    return f": {cause}" if cause else ""


def _copies(case: Case, short: list[Difference]) -> str:
    """A job that leaves out what it has seen before is wrong here, where each record of the log counts."""
    copies = case.only(case.fold(case.copies & ~case.dropped), COUNTS)
    if not copies.total or copies != Ledger((d.cell, -d.surplus) for d in short):
        return ""
    return (
        "exactly the "
        f"{many(copies.total, 'copy in the tape, which counts', 'copies in the tape, which count')} twice by the rules"
    )


def _orphaned(case: Case, short: list[Difference]) -> str:
    """Two writers that made the same window at once; "" where no hash is orphaned."""
    orphans = [stray for stray in case.observed.strays if stray.kind == "orphan"]
    held = sum(whole(stray.value) or 0 for stray in orphans)
    exactly = "exactly as many" if held == -sum(d.surplus for d in short) else many(held, "event")
    hashes = "1 orphaned hash" if len(orphans) == 1 else f"{len(orphans):,} orphaned hashes"
    return f"{exactly} lie in {hashes}, to which no campaign refers" if orphans else ""
