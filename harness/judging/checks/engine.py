"""Engine: the engine must process the whole log.

One that never drains is `stuck`, one that stays down is `crashed`: both FAIL. One that got no CPU is `starved`; if the
kernel killed a process for lack of memory it is `no-memory`, if a disk was full `no-room`, and if its Kafka or Redis
was down `unserved`. These are UNKNOWN, because its behaviour without that is unknown. One that seems stuck is UNKNOWN
too if its results could not be read: it may have written all of them.
"""

from __future__ import annotations

from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, EngineReport, Outcome, Witness

LAST_LINES = 5
MANIFEST = "manifest.toml"
KEPT_FROM_IT = frozenset({"starved", "no-memory", "no-room", "unserved"})  # states with a cause outside of the engine


def check(case: RunFacts) -> CheckResult:
    report = case.engine
    sentence = "; ".join([report.detail, *case.notes])
    if report.state in ("drained", "unsettled"):
        return CheckResult("engine", Outcome.PASS, sentence)
    if report.state == "stuck" and case.results_unread:
        sentence = f"not known, because its results were not read: {sentence}"
        return CheckResult("engine", Outcome.UNKNOWN, sentence, word="unread", blame="evidence")
    was_kept = report.state in KEPT_FROM_IT
    return CheckResult(
        "engine",
        Outcome.UNKNOWN if was_kept else Outcome.FAIL,
        sentence,
        word=report.state,
        count=1,
        blame="evidence" if was_kept else "engine",
        witnesses=(
            *(Witness(MANIFEST, "these lines", "others", line) for line in report.advice),
            *(Witness(report.log or "engine", "goes on", report.state, line) for line in _last_words(report)),
        ),
    )


def _last_words(report: EngineReport) -> list[str]:
    return [line for line in report.last_lines if line.strip()][-LAST_LINES:]
