"""Judge a run from its files. It uses no engine, service or clock: `recheck` calls the same code.

Stage one compares the tape with the Kafka log (did the producer or Kafka lose or duplicate records?), stage two the
Kafka log with the results (did the engine?). `facts.py` reads the `RunFacts`; harness/judging/checks decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.judging import checks, digests
from harness.judging.checks import edited, evidence, masked, question
from harness.judging.checks.case import RunFacts, join
from harness.judging.checks.kinds import COUNTS
from harness.judging.checks.stopped import ONLY_WHEN_STOPPED
from harness.judging.facts import IN_TOTALS, facts_of
from harness.judging.stored_run import StoredRun
from harness.model import (
    CheckResult,
    Outcome,
    Verdict,
)
from harness.rundir.missing_evidence import MissingEvidence, from_files
from harness.util.texts import many
from workloads.base import Kind
from workloads.totals import InTotals


def judge(run: StoredRun) -> Verdict:
    """Judge a stored run. Missing evidence gives UNKNOWN and is named."""
    if changed := changed_since(run):
        return changed
    try:
        return from_files("a verdict", lambda: conclude(facts_of(run)))
    except MissingEvidence as error:
        missing = str(error).replace(f"{run.store.path}/", "")
        aborted = digests.aborted(run.store)
        sentence = f"{aborted} ({missing}); run it again" if aborted else missing
        result = CheckResult("evidence", Outcome.UNKNOWN, sentence, word="no evidence", blame="evidence")
        return Verdict(Outcome.UNKNOWN, f"This run can't be judged: {sentence}", 0, (result,), {})


def changed_since(run: StoredRun) -> Verdict | None:
    """Return UNKNOWN if files were changed since the first verdict; then no component gets the blame."""
    if not run.edits.changed:
        return None
    result = edited.of(run.edits)
    return Verdict(result.outcome, f"{result.word}: {result.sentence}", 0, (result,), {})


def conclude(case: RunFacts) -> Verdict:
    results = checks.run_all(case)
    if case.failed_first and all(result.outcome is Outcome.PASS for result in results):
        results = (*results, evidence.FAILED_FIRST)
    outcome = Outcome.worst([result.outcome for result in results])
    totals = {
        "planned": case.audit.planned,
        "in_log": case.audit.found,
        "countable": case.census.records,
        "counted": case.only(case.observed.counts, COUNTS).total,
        "cells": len(case.expectation.may),
        "late_dropped": case.late_dropped,
        "copies": case.census.copies,
    }
    return Verdict(
        outcome,
        _sentence(case, outcome, results, totals),
        case.slack,
        results,
        totals,
        masked.covers(case),
        _looked(case),
    )


def _looked(case: RunFacts) -> str:
    """Describe how often the results were polled. A shorter error may not have been seen."""
    seen = case.watched
    if seen is None or not seen.period_ms:
        return ""
    closed = f", closed windows every {seen.closed_ms:,.0f} ms" if seen.closed_ms else ""
    return f"every {seen.period_ms:,.0f} ms{closed} (medians)"


def _sentence(case: RunFacts, outcome: Outcome, results: Sequence[CheckResult], totals: dict[str, int]) -> str:
    if outcome is Outcome.PASS:
        how = " and explained" if case.exact else ""
        late = f", {totals['late_dropped']:,} dropped as late{how}" if totals["late_dropped"] else ""
        copies = (
            f"; {many(totals['copies'], 'copy in the tape counts', 'copies in the tape count')} twice, by the rules"
            if totals["copies"]
            else ""
        )
        changed = f"; {question.RIGHT[case.change.means]}" if case.change else ""
        if isinstance(case.oracle, InTotals):
            return (
                f"{many(totals['counted'], 'event')} counted right in "
                f"{many(totals['cells'], 'total')}{copies}; {IN_TOTALS}"
            )
        if any(value.kind is not Kind.COUNT for value in case.oracle.values):
            names = join(value.name for value in case.oracle.values)
            return (
                f"{many(totals['cells'], 'value is', 'values are')} right ({names}), of "
                f"{many(totals['countable'], 'event')}{late}"
            )
        counted = case.events_said(totals["counted"])
        right = f"{counted} counted right in {many(totals['cells'], 'cell')}{case.in_several}"
        return f"{right}{late}{copies}{changed}"
    worst = [r for r in results if r.outcome is outcome]
    # If the machine kept the engine from continuing, that explains all other failures.
    told = next((r for r in worst if r.name == "engine" and outcome is Outcome.UNKNOWN), _leading(case, worst))
    return f"{told.word or told.name}: {told.sentence}"


def _leading(case: RunFacts, worst: Sequence[CheckResult]) -> CheckResult:
    """Choose the check that leads the headline: usually the first.

    If counts are missing because they are no numbers, or appeared only with the stop, `lost` would only report the
    consequence.
    """
    first, others = worst[0], {result.name: result for result in worst[1:]}
    if first.name != "lost":
        return first
    short = sum(each.surplus < 0 for each in case.differences)
    stopped = others.get("stopped")
    if stopped and stopped.word == ONLY_WHEN_STOPPED and stopped.count >= short:
        return stopped
    no_numbers = sum(stray.kind == "number" for stray in case.observed.strays)
    return others["readable"] if "readable" in others and no_numbers >= short else first
