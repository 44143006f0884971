"""Stage one: the Kafka log against the tape. It shows if the producer or Kafka lost, duplicated or changed a record.

A difference that no planned fault explains makes the harness' own evidence bad: UNKNOWN, and never the engine's fault.
So does a log that was filled at another rate than the tape's because of a quota of Kafka.
"""

from __future__ import annotations

from harness.evidence.observed import Named
from harness.judging.checks.case import EXAMPLES, RunFacts
from harness.model import CheckResult, Outcome, Witness

SEEN = {
    "missing": "not in the log",
    "doubled": "more than once",
    "foreign": "a record that is not planned",
    "altered": "with another content",
}
WORDS = {"missing": "producer-lost", "doubled": "producer-dup", "foreign": "foreign", "altered": "altered"}


def check(case: RunFacts) -> CheckResult:
    audit = case.audit
    wrong: dict[str, Named] = {kind: named for kind in WORDS if (named := getattr(audit, kind)).count}
    if case.cut_short and set(wrong) == {"missing"}:
        sentence = f"the load was cut short after {audit.found:,} of {audit.planned:,} planned records"
        return CheckResult("log", Outcome.UNKNOWN, sentence)
    if not wrong:
        where = "were moved into files" if case.seam else "were removed by the planned fault"
        since = f"; {audit.removed:,} of them {where}" if audit.removed else ""
        verb = "were" if audit.removed else "are"
        sentence = f"all {audit.planned:,} planned records {verb} in the Kafka log, once each{since}"
        if case.throttled:
            sentence = f"{case.throttled}; {sentence}, but later than planned"
            return CheckResult("log", Outcome.UNKNOWN, sentence, word="unserved", blame="evidence")
        return CheckResult("log", Outcome.PASS, sentence)
    parts = [f"{named.count:,} {kind}" for kind, named in wrong.items()]
    cut = case.cut if "missing" in wrong else ""
    causes = [case.throttled, cut]
    sentence = f"of {audit.planned:,} planned records the Kafka log has {', '.join(parts)}"
    return CheckResult(
        "log",
        Outcome.UNKNOWN,
        "; ".join(filter(None, (*causes, sentence))),
        word="unserved" if cut and len(wrong) == 1 else WORDS[next(iter(wrong))],
        count=sum(named.count for named in wrong.values()),
        blame="producer or Kafka",
        witnesses=tuple(_witness(kind, each) for kind, named in wrong.items() for each in named.examples[:EXAMPLES]),
    )


def _witness(kind: str, example: str) -> Witness:
    """`example` is an event's id, followed in brackets by its actual or planned position."""
    number, _, place = example.partition(" (")
    return Witness(f"event {number}", "once, as planned", SEEN[kind], place.removesuffix(")"), (number,))
