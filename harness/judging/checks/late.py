"""Late-dropped: events that the engine dropped because they came after the watermark: allowed, counted, and limited.

An event outside the permitted set is never excused here: it stays in the expectation and shows as lost. Events that the
*harness* sent seconds after their time are not the engine's fault: if they alone exceed the limit, the result is
UNKNOWN.
"""

from __future__ import annotations

import numpy as np

from harness.judging.checks import explained
from harness.judging.checks.case import RunFacts, failed
from harness.judging.checks.kinds import COUNTS
from harness.model import Blame, CheckResult, Outcome, Witness
from harness.util.texts import many


def check(case: RunFacts) -> CheckResult:
    if not case.drops_late:
        return CheckResult("late", Outcome.PASS, "this sink keeps late events, so none may be missing")
    if not case.exact and case.engine.state != "drained" and not case.complete:
        sentence = f"missing events may be late or not yet visible: the engine is {case.engine.state}"
        return CheckResult("late", Outcome.UNKNOWN, sentence, blame="engine")
    count = case.late_dropped
    how, dropped = _how_known(case, count), _dropped(case, count)
    limit = case.spec.late_dropped_max
    if limit is None or count <= limit:
        bound = "" if limit is None else f", at most {limit:,} allowed"
        return CheckResult("late", Outcome.PASS, f"{dropped}{how}{bound}", count=count)
    if case.doubt_in_all.newest_ms is not None:
        sentence = f"{dropped}{how}; what is missing from the Kafka log may have made them late"
        return CheckResult("late", Outcome.UNKNOWN, sentence, count=count, blame="producer or Kafka")
    if not case.exact and (cause := explained.by_restart(case)):
        return _lost(case, cause)
    ours = sum(part.events.records(part.dropped & part.sent_late) for part in case.judged)
    only_ours = count - ours <= limit
    blame: Blame = (
        "generator" if only_ours else "plan" if case.spec.tape.disorder.reach_ms > case.spec.watermark_ms else "engine"
    )
    also = f"; {ours:,} of them were sent seconds after their time by the generator itself" if ours else ""
    return CheckResult(
        "late",
        Outcome.UNKNOWN if only_ours else Outcome.FAIL,
        f"{dropped}{how}, at most {limit:,} allowed{also}",
        word="late-dropped",
        count=count,
        blame=blame,
        witnesses=_witnesses(case),
    )


def _dropped(case: RunFacts, count: int) -> str:
    """Deficits of cells only show how often events are missing."""
    return f"{many(count, 'event') if case.exact else case.events_said(count)} dropped as late"


def _lost(case: RunFacts, cause: str) -> CheckResult:
    """Report events as lost that may have been late, if the cells show that.

    If some are certainly lost, `lost` reports all.
    """
    missing, short = -sum(d.surplus for d in case.lacking), case.differences_of(COUNTS)
    if any(d.surplus < 0 for d in short):
        return CheckResult(
            "late", Outcome.UNKNOWN, f"the missing events were not late but lost: {cause}", blame="engine"
        )
    events = case.events_said(missing, " is", " are")
    sentence = f"{events} missing from {many(len(case.lacking), 'cell')}{case.in_several}: {cause}"
    return failed("late", sentence, missing, case.witnesses(case.lacking), "lost")


def _how_known(case: RunFacts, count: int) -> str:
    if not case.exact:
        return f" (inferred from what the cells lack: {_why_inferred(case)})"
    cells = case.census.dropped_of_first
    several = f" ({cells:,} times: each is late for a window by itself)" if cells > count else ""
    how = "explained by the watermark of its batch" if case.batch_log else "named by the engine itself"
    return f"{several}, each {how}" if count else ""


def _why_inferred(case: RunFacts) -> str:
    if case.batch_log:
        return case.batch_log.note
    return case.named.lacks if case.named else "there is no batch log with the dropped events"


def _witnesses(case: RunFacts) -> tuple[Witness, ...]:
    if not case.exact:
        return case.witnesses(case.left_out)
    dropped = case.dropped.nonzero()[0]
    rows = dropped[np.unique(case.events.record[dropped], return_index=True)[1]][:5]
    return tuple(
        Witness(
            cell=f"event {int(case.events.id[row]):012x}",
            expected="counted",
            seen="dropped",
            detail=_explained(case, int(row)),
            event_ids=(f"{int(case.events.id[row]):012x}",),
            batches=(int(case.batch[row]),) if case.batch_log else (),
        )
        for row in rows
    )


def _explained(case: RunFacts, row: int) -> str:
    """Explain a dropped event from the engine's own records."""
    batch, ends_ms = int(case.batch[row]), int(case.events.closes_ms[row])
    if case.batch_log is None:
        return f"it named partition {case.events.partition[row]}, offset {case.events.offset[row]:,}"
    (mark_ms,) = (each.drop_watermark_ms for each in case.batch_log.batches if each.batch == batch)
    return f"its window ended {(mark_ms - ends_ms) / 1000:.1f} s before the watermark of batch {batch}"
