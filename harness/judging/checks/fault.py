"""Fault: the planned fault took effect, with proof, and was undone. A fault without effect makes the run UNKNOWN."""

from __future__ import annotations

from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, FaultReport, Outcome


def check(case: RunFacts) -> CheckResult:
    if not case.spec.fault.planned:
        return CheckResult("fault", Outcome.PASS, "no fault was planned")
    if not case.faults:
        return _unknown(f"{case.spec.fault.text} was planned, but no record shows that it was tried")
    for report in case.faults:
        if not report.reachable:
            return _unknown(f"{report.spec.text} is n/a: {report.proof.removeprefix('n/a: ')}")
        if not report.landed:
            return _unknown(f"{report.spec.text} did not land: {report.proof.removeprefix('did not land: ')}")
        if not report.healed:
            return _unknown(f"{report.spec.text} was not healed: {report.proof}")
    return CheckResult("fault", Outcome.PASS, "; ".join(_landed(report) for report in case.faults))


def _landed(report: FaultReport) -> str:
    where = "" if report.batch is None else f" in batch {report.batch}"
    again = {None: "", True: ", which was replayed", False: ", and nothing was replayed"}[report.replayed]
    return f"{report.spec.text} landed{where}{again}: {report.proof}"


def _unknown(sentence: str) -> CheckResult:
    return CheckResult("fault", Outcome.UNKNOWN, sentence, word="not landed", blame="evidence")
