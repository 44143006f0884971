"""Run a stored plan again in a new directory, and check whether it ends the same way.

A seed fixes the events and the plan, but not the scheduling of processes. So the same outcome means: the same verdict
in the same words, the same class, and each fault landed where it did before. The batch in which a question changes also
depends on scheduling: if the verdict names the consequence, only that name is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.drivers import one_run
from harness.drivers.chaos import ended
from harness.engines import manifest as manifests
from harness.experiments.chaos import Seen, classified
from harness.faults.when import words
from harness.judging.checks import question
from harness.judging.stored_run import StoredRun
from harness.model import HIDDEN, EngineManifest, FaultReport, Outcome, RunSpec, UsageError
from harness.rundir.missing_evidence import MissingEvidence


@dataclass(frozen=True)
class Ended:
    """The reproducible part of how a run ended."""

    outcome: Outcome
    words: tuple[str, ...]
    seen: Seen
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One property of both runs."""

    what: str
    before: str
    again: str

    @property
    def same(self) -> bool:
        return self.before == self.again


@dataclass(frozen=True)
class Replayed:
    """A run and its repetition."""

    run: str
    again: str
    lines: tuple[Line, ...]
    known: bool  # neither of them is UNKNOWN

    @property
    def same(self) -> bool:
        return all(line.same for line in self.lines)

    @property
    def outcome(self) -> Outcome:
        if not self.known:
            return Outcome.UNKNOWN
        return Outcome.PASS if self.same else Outcome.FAIL

    @property
    def sentence(self) -> str:
        if not self.known:
            return "one of the two runs is UNKNOWN, so their outcomes can't be compared"
        unlike = [line.what for line in self.lines if not line.same]
        return f"the outcome differs: {', '.join(unlike)}" if unlike else "the outcome is the same"


def replay(run: Path, out: Path) -> Replayed:
    before = StoredRun.open(run.absolute())
    spec, manifest = planned(before)
    first = how(before)
    result = one_run.drive(spec, manifest, out)
    return compared(str(before.store.path), first, str(result.path), how(StoredRun.open(result.path)))


def planned(run: StoredRun) -> tuple[RunSpec, EngineManifest]:
    """Return the stored plan, or refuse it if the stored files do not allow another run."""
    try:
        spec, manifest, _ = run.spec, run.manifest, run.claim
    except MissingEvidence as error:
        raise UsageError(f"{run.store.path} can't be replayed: {error}.") from None
    if HIDDEN in spec.redis + spec.sql:
        server, flag = ("Redis", "--redis") if HIDDEN in spec.redis else ("PostgreSQL", "--sql")
        raise UsageError(
            f"{run.store.path} can't be replayed, because the password and the options of its {server} are not stored. "
            f"Run its scenario with {flag} instead; its page shows the command."
        )
    if manifest.shipped:  # the run may come from another or older checkout, whose job had other files
        ours = manifests.load(manifest.id, manifest.workload)
        manifest = replace(manifest, home=ours.home, command=ours.command, program=ours.program, java=ours.java)
    one_run.refuse_the_impossible(spec, manifest)
    return spec, manifest


def how(run: StoredRun) -> Ended:
    try:
        verdict, spec = run.verdict, run.spec
    except MissingEvidence as error:
        raise UsageError(
            f"{error}: `streamgauge recheck {run.store.path}` judges the run from the files that are left."
        ) from None
    faults, engine = ended(run.store)
    seen, _ = classified(verdict, faults, engine.state, planned=spec.fault.planned)
    return Ended(verdict.outcome, question.telling(verdict.words), seen, tuple(_landed(faults)))


def compared(run: str, before: Ended, again_run: str, again: Ended) -> Replayed:
    lines = [
        Line("verdict", before.outcome.value, again.outcome.value),
        Line("words", ", ".join(before.words), ", ".join(again.words)),
    ]
    if not question.has_name(before.words):
        lines.append(Line("class", before.seen.value, again.seen.value))
    for number in range(max(len(before.faults), len(again.faults))):
        mine, other = ((each.faults[number] if number < len(each.faults) else "not there") for each in (before, again))
        lines.append(Line(f"fault {number + 1}", mine, other))
    known = Outcome.UNKNOWN not in (before.outcome, again.outcome)
    return Replayed(run, again_run, tuple(lines), known)


def _landed(faults: Sequence[FaultReport]) -> Iterator[str]:
    """Yield where each fault landed, as exactly as it can be repeated: the batch of a crash point, else its moment."""
    for report in faults:
        if not report.landed:
            yield f"{report.spec.text} did not land"
            continue
        moment = report.spec.when
        exact = moment.kind == "point" and report.batch is not None
        where = f"batch {report.batch}" if exact else words(moment)
        again = {None: "", True: ", replayed", False: ", not replayed"}[report.replayed]
        yield f"{report.spec.text} landed at {where}{again}"
