"""Add to a FAIL the faults that were active when the error happened, because they may be its cause."""

from __future__ import annotations

from dataclasses import replace

from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, FaultReport, Outcome, Witness


def with_faults(case: RunFacts, result: CheckResult) -> CheckResult:
    """Append the faults that the sentence does not name yet."""
    if result.outcome is not Outcome.FAIL:
        return result
    on = [f for f in case.faults if f.landed and f.spec.text not in result.sentence and _meets(f, result)]
    return replace(result, sentence="; ".join([result.sentence, *(_said(case, fault) for fault in on)]))


def _meets(fault: FaultReport, result: CheckResult) -> bool:
    """Any earlier fault may have stopped an engine; a cell is affected only by one during its counting."""
    if result.name == "engine":
        return True
    return any(_overlap(fault, witness) for witness in result.witnesses)


def _overlap(fault: FaultReport, witness: Witness) -> bool:
    if witness.from_ms is None or witness.until_ms is None:
        return False
    until_ms = fault.healed_ms or witness.until_ms
    return fault.at_ms <= witness.until_ms and witness.from_ms <= max(until_ms, fault.at_ms)


def _said(case: RunFacts, fault: FaultReport) -> str:
    begin_s = (fault.at_ms - case.epoch_ms) / 1000
    end = f"to {(fault.healed_ms - case.epoch_ms) / 1000:.1f} s" if fault.healed_ms else "on"
    return f"{fault.spec.text} was active from {begin_s:.1f} s {end}"
