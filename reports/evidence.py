"""What a page rests on: each file of a run, read when it is asked for, and named when it is missing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from harness.evidence.observed import LogAudit, Named
from harness.judging import judge
from harness.judging.checks.case import Case
from harness.judging.stored_run import StoredRun
from harness.measuring.measure import RECOVERY, withheld
from harness.measuring.measurement import Measurement, Recovery
from harness.metering import clock_steps
from harness.model import Outcome, Verdict
from harness.rundir.store import MissingEvidence, unless_missing


class Evidence(StoredRun):
    """A stored run, and what only a page needs of it."""

    @cached_property
    def verdict(self) -> Verdict:
        """Of files that were changed since, the stored one says nothing."""
        verdict = super().verdict
        return judge.changed_since(self) or verdict

    @cached_property
    def clock(self) -> str:
        """What was odd about the clocks of the run; empty when nothing was."""
        return clock_steps.in_words(self.store)

    @cached_property
    def environment(self) -> Mapping[str, Any]:
        return dict(self.store.read_as("environment.json", dict[str, Any]))

    @cached_property
    def engine_settings(self) -> Mapping[str, str]:
        """What the job says it set by itself; empty when it says nothing."""
        name = "engine_settings.json"
        return dict(self.store.read_as(name, dict[str, str])) if self.store.has(name) else {}

    @cached_property
    def withheld(self) -> str:
        """Why no speed may stand anywhere on the page; empty when it may."""
        try:
            return withheld(self.spec, self.verdict, unless_missing(lambda: self.certificate), self.clock)
        except MissingEvidence as error:
            return f"not known whether the counts are right: {error}"

    @cached_property
    def measurement(self) -> Measurement:
        """Never asked for where it is withheld, whatever a file may say."""
        if self.withheld:
            raise MissingEvidence(f"no measurement: {self.withheld}")
        found: Measurement | None = self.store.read_as("measurement.json", Measurement | None)
        if found is None:
            raise MissingEvidence(f"{self.store.path / 'measurement.json'} holds no measurement")
        return found

    @cached_property
    def recovery(self) -> tuple[Recovery, ...]:
        return tuple(self.store.read_as(RECOVERY, tuple[Recovery, ...]))

    @cached_property
    def timeline(self) -> pa.Table:
        return self.store.read_table("timeline.parquet")

    @cached_property
    def audit(self) -> LogAudit:
        """As the verdict has it, where that found all of the tape in the log: to compare them again takes as long as to
        judge. How many of its records were removed since is no part of a page."""
        verdict = unless_missing(lambda: self.verdict)
        if verdict is None or not any(each.name == "log" and each.outcome is Outcome.PASS for each in verdict.checks):
            return super().audit
        return LogAudit(verdict.totals["planned"], verdict.totals["in_log"], Named(), Named(), Named(), Named())

    @cached_property
    def case(self) -> Case:
        return judge.case_of(self)
