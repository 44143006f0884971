"""Evidence for a page: each file of a run, read on first use, with an error that names a missing file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from harness.evidence.observed import LogAudit, Named
from harness.judging import facts, judge
from harness.judging.checks.case import RunFacts
from harness.judging.stored_run import StoredRun
from harness.measuring.measure import RECOVERY, withheld
from harness.measuring.measurement import Measurement, Recovery
from harness.metering import clock_steps
from harness.model import Outcome, Verdict
from harness.rundir.missing_evidence import MissingEvidence, from_files, unless_missing


class Evidence(StoredRun):
    """A stored run with the files that only a page needs."""

    @cached_property
    def verdict(self) -> Verdict:
        """The stored verdict, unless files were changed since: then the verdict of that change."""
        verdict = super().verdict
        return judge.changed_since(self) or verdict

    @cached_property
    def clock(self) -> str:
        """Clock problems of the run; "" if there were none."""
        return clock_steps.in_words(self.store)

    @cached_property
    def environment(self) -> Mapping[str, Any]:
        return dict(self.store.read_as("environment.json", dict[str, Any]))

    @cached_property
    def engine_settings(self) -> Mapping[str, str]:
        """The settings that the job reported as its own; empty if it reported none."""
        name = "engine_settings.json"
        return dict(self.store.read_as(name, dict[str, str])) if self.store.has(name) else {}

    @cached_property
    def withheld(self) -> str:
        """The reason why no speed may be shown on the page; "" if it may."""
        try:
            return withheld(self.spec, self.verdict, unless_missing(lambda: self.certificate), self.clock)
        except MissingEvidence as error:
            return f"not known whether the counts are right: {error}"

    @cached_property
    def measurement(self) -> Measurement:
        """The measurement. Raises MissingEvidence where it is withheld, even if the file has one."""
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
        """The log audit. If the verdict found all of the tape in the log, it is made from the verdict's totals, because
        a new comparison takes as long as judging. The number of records removed since is not part of a page.
        """
        verdict = unless_missing(lambda: self.verdict)
        if verdict is None or not any(each.name == "log" and each.outcome is Outcome.PASS for each in verdict.checks):
            return super().audit
        return LogAudit(verdict.totals["planned"], verdict.totals["in_log"], Named(), Named(), Named(), Named())

    @cached_property
    def case(self) -> RunFacts:
        return from_files("what is known of the cells", lambda: facts.facts_of(self))
