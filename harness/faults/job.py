"""The job family: the engine is ended in a stated way, and another job takes its place, as in an upgrade.

The new job finds a copy of the old one's state, so that the old one can have its own back where the new one does not
go on. Which job runs is read from the process that was started.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from harness.engines import environments, manifest
from harness.engines.job import Job
from harness.engines.manifest import job_path
from harness.faults.base import Context, Fault, Kind
from harness.faults.change import STANDING
from harness.faults.downtime import Downtime, down
from harness.faults.idle import Idle
from harness.faults.moment import Moment
from harness.model import EngineManifest, FaultSpec

CLEAN = "clean"
STOPS = ("kill", CLEAN)
SAME = "same"


class ChangeJob(Downtime):
    """`to`: the job that takes its place."""

    def __init__(self, spec: FaultSpec, context: Context, to: EngineManifest) -> None:
        super().__init__(spec, context)
        self._to, self._clean = to, spec.options["stop"] == CLEAN
        self._asks = self._asks and not self._clean  # what stands still does not end by itself
        self._own: Job | None = None

    def take_down(self, now: Moment) -> str:
        return now.engine.end() if self._clean else now.engine.kill()

    def check(self, now: Moment) -> None:
        """There is always a job to change."""

    def deed(self, now: Moment) -> None:
        self._own = own = now.engine.job
        surroundings = environments.prepare(self._to, lambda _: None)
        now.engine.become(Job(self._to, surroundings, copied(own.checkpoint, now.engine.starts + 1)))

    def proof(self, now: Moment) -> str:
        if now.engine.job.manifest != self._to:
            return ""
        leads = next((member for member in now.engine.members() if member.leads), None)
        if leads is None:
            return ""
        if self._to.simulated:
            return f"process {leads.pid} runs {self._to.id}"
        # Two versions of an engine run the same file, each with the Python of its own environment.
        words = [word for word in map(Path, leads.command) if word.name == job_path(self._to).name]
        of = Path(leads.command[0]).parent.parent.name
        program = words[0].name if words else Path(leads.command[0]).name
        return f"process {leads.pid} runs {self._to.id}: {program}, by {of}"

    def undo(self, now: Moment) -> str:
        if self._own:
            now.engine.become(self._own)
        return "it got its old job and its own state back"

    def effect(self, now: Moment) -> str:
        return f"as {now.engine.job.manifest.id}"


def copied(state: str, start: int) -> str:
    """A copy of the state beside it; what is not on this machine is shared."""
    if not state or not (folder := Path(state)).is_dir():
        return state
    copy = folder.with_name(f"{folder.name}-of-start-{start}")
    shutil.copytree(folder, copy)
    return str(copy)


def others(fault: FaultSpec, own: EngineManifest) -> list[EngineManifest]:
    """The jobs that a plan starts beside the run's own."""
    return [other_job(leaf, own) for leaf in fault.leaves if leaf.action == KINDS[0].name]


def other_job(spec: FaultSpec, own: EngineManifest) -> EngineManifest:
    to = spec.options["to"]
    return own if to == SAME else replace(manifest.load(to, own.workload), workload=own.workload)


def _changed(spec: FaultSpec, context: Context) -> Fault:
    to, own, sink = other_job(spec, context.manifest), context.manifest, context.spec.sink
    missing = []
    if spec.options["stop"] not in STOPS:
        missing.append(f"stop = {spec.options['stop']} is none of {', '.join(STOPS)}")
    if spec.options["stop"] == CLEAN and spec.when.kind == "point":
        missing.append("a job that stands still at a crash point can't end cleanly: take stop=kill, or another moment")
    if sink not in [claim.name for claim in to.sinks]:
        missing.append(f"{to.id} has no sink {sink!r}, it has {', '.join(claim.name for claim in to.sinks)}")
    elif to.sink(sink).late != own.sink(sink).late or to.evidence != own.evidence:
        missing.append(f"{own.id} and {to.id} treat late events otherwise, and one verdict is of one rule")
    if to.simulated != own.simulated or to.source != own.source or to.results_topic != own.results_topic:
        missing.append(f"{own.id} and {to.id} leave their results in other places")
    return Idle(spec, tuple(missing)) if missing else down(spec, ChangeJob(spec, context, to), context)


KINDS = (
    Kind(
        "change-job",
        "job",
        "ended, and another job started in its place, on a copy of its state",
        "goes on, no count changes; or stops loudly and goes on as it was",
        _changed,
        needs="an engine that resumes and reports its progress, and a job with the same sink",
        options={"to": SAME, "stop": "kill"},
        moments=STANDING,
    ),
)
