"""The job family: the engine is ended in a given way, and another job replaces it, as in an upgrade.

The new job gets a copy of the old one's state, so that the old job can go on with its own state if the new one fails.
The proof is the program of the started process. The new job may answer another question: the correct results are then
declared beforehand (harness/evidence/changed_query.py).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from harness.engines import environments, manifest, own_options
from harness.engines.base import Member
from harness.engines.job import Job
from harness.engines.manifest import program_of
from harness.faults.base import Context, Fault, Kind
from harness.faults.change import config_of, difference, in_plan, kept_by
from harness.faults.downtime import Downtime, down
from harness.faults.run_at_poll import Field, Moment, done
from harness.faults.strike import Idle
from harness.model import EngineManifest, FaultSpec
from harness.services import kafka
from harness.util.durations import seconds

CLEAN = "clean"
STOPS = ("kill", CLEAN)
SAME = "same"
MEANS = (SAME, "carry", "fresh", "anew")
FROM_NOTHING = ("fresh", "anew")
NO_STATE = "none"
STATES = ("copy", NO_STATE)
NEW_TOPIC = "new"
TOPICS = (SAME, NEW_TOPIC)
BEGINS_OPTION = "streamgauge.source.startingOffsets"
# The parts of a question, and the option of the run config that sets each.
QUESTION = {"counts": "streamgauge.counts", "by": "streamgauge.by", "window": ""}
SAVEPOINT = "execution.state-recovery.path"  # of Flink: the state to begin with
SEVERAL = re.compile(r"\+(?=[\w.-]+=)")  # a value may contain a plus

ConfigKeys = Mapping[str, Any]


class ChangeJob(Downtime):
    """Replaces the job by `to`. `asked` and `back` are run configs: with another question, and the previous one."""

    by_results = True

    def __init__(
        self, spec: FaultSpec, context: Context, to: EngineManifest, asked: ConfigKeys, back: ConfigKeys
    ) -> None:
        super().__init__(spec, context)
        self._to, self._clean = to, spec.options["stop"] == CLEAN
        self._asked, self._back = asked, back
        self._anew, self._means = spec.options["state"] == NO_STATE, spec.options["means"]
        self._elsewhere, self._partitions = spec.options["topic"] == NEW_TOPIC, context.spec.tape.partitions
        self._asks = self._asks and not self._clean  # a held engine does not end by itself
        self._own: Job | None = None
        self._set_before = dict.fromkeys(settings_of(spec), "")

    def take_down(self, now: Moment) -> str:
        return now.engine.end() if self._clean else now.engine.kill()

    def check(self, now: Moment) -> None:
        """Check nothing: a job can always be replaced."""

    def deed(self, now: Moment) -> None:
        self._own = own = now.engine.job
        self.stateless = left_nothing(now.engine.checkpoint)
        self.restart_offsets = now.engine.restart_offsets()
        self._set_before = {key: in_plan(now.engine, key) for key in self._set_before}
        surroundings, start = environments.prepare(self._to, lambda _: None), now.engine.starts + 1
        state = beside(own.checkpoint, start) if self._anew else copied(own.checkpoint, start)
        now.engine.swap_job(Job(self._to, surroundings, state))
        if self._anew and self._means == "anew":
            options = {**self._asked["options"], **self._from_restart_offsets(now.field.topic if now.field else "")}
            self._asked = {**self._asked, "options": options}
        if self._elsewhere and now.field:
            self._turn_to_a_new_topic(now.field)
        if self._asked != self._back:
            now.engine.change(self._asked)

    def _turn_to_a_new_topic(self, field: Field) -> None:
        """Switch to a new topic that stays empty: all further events go to the old one."""
        name = f"{field.topic}.next"  # deleted with the run, like all topics below the run's own
        kafka.create_topic(field.kafka_address, name, self._partitions)
        self._asked, self._back = {**self._asked, "topic": name}, {**self._back, "topic": field.topic}

    def _from_restart_offsets(self, topic: str) -> Mapping[str, str]:
        """Set the start offsets of a job without state, which by default starts elsewhere."""
        return {BEGINS_OPTION: json.dumps({topic: dict(enumerate(self.restart_offsets.restored))})}

    def borne(self, now: Moment) -> bool:
        """Require a plan of the new job itself: the plans of the old one prove nothing."""
        planned = sum(self.restart_offsets.written) if now.progress else 0
        return self.went_on(now) and (not planned or done(now) > planned or done(now) >= now.total)

    def proof(self, now: Moment) -> str:
        if now.engine.job.manifest != self._to:
            return ""
        leads = next((member for member in now.engine.members() if member.leads), None)
        if leads is None or not runs(now.engine.job, leads):
            return ""
        asked = f", with {told}" if (told := difference(self._asked, self._back)) else ""
        if self._to.simulated:
            return f"process {leads.pid} runs {self._to.id}{asked}"
        _, config = config_of(now.engine)
        if any(config.get(key) != value for key, value in self._asked.items()):
            return ""
        # Two versions of an engine run the same file, each with the Python of its own environment.
        words = [word for word in map(Path, leads.command) if word.name == program_of(self._to).name]
        of = f", by {folder}" if self._to.shipped and (folder := Path(leads.command[0]).parent.parent.name) else ""
        program = words[0].name if words else Path(leads.command[0]).name
        return f"process {leads.pid} runs {self._to.id}: {program}{of}{asked}"

    def undo(self, now: Moment) -> str:
        if self._own:
            now.engine.swap_job(self._own)
            if self._asked != self._back:
                now.engine.change(self._back)
        return "its old job was restored" if self.stateless else "its old job and its own state were restored"

    def effect(self, now: Moment) -> str:
        if not self.restart_offsets.restored and not self.refused:
            self.restart_offsets = now.engine.restored()
        kept = (kept_by(key, before, in_plan(now.engine, key)) for key, before in self._set_before.items())
        self.ignored = "; ".join(filter(None, kept))
        found = "no state was left to copy" if self.stateless else ""
        return "; ".join(filter(None, (f"as {now.engine.job.manifest.id}", found, self.ignored)))


def runs(job: Job, leads: Member) -> bool:
    """Return whether the process has become the job's program, or another program that its command names and that
    replaces it: at first the process is one of ours, and between two programs it has no command line. A user's script
    may become any program."""
    if job.manifest.simulated:
        return True
    around = {"{python}": str(job.surroundings.python), "{java}": job.surroundings.java}
    if job.manifest.command[0] not in around:
        return bool(leads.command)
    programs = {around.get(word, word) for word in job.manifest.command}
    return any(word in programs for word in leads.command[:1])


def left_nothing(state: Path | None) -> bool:
    """Return whether an ended job left no state. None means that its location can't be read."""
    return state is not None and not (state.is_dir() and any(state.iterdir()))


def copied(state: str, start: int) -> str:
    """Copy the state beside itself; a state that is not on this machine is shared."""
    if not state or not (folder := Path(state)).is_dir():
        return state
    shutil.copytree(folder, copy := beside(state, start))
    return copy


def beside(state: str, start: int) -> str:
    """Return the path for the separate state of a later start."""
    return str(Path(state).with_name(f"{Path(state).name}-of-start-{start}"))


def others(fault: FaultSpec, own: EngineManifest) -> list[EngineManifest]:
    """List the jobs that a plan starts besides the run's own."""
    return [other_job(leaf, own) for leaf in fault.leaves if leaf.action == KINDS[0].name]


def other_job(spec: FaultSpec, own: EngineManifest) -> EngineManifest:
    to = spec.options["to"]
    return own if to == SAME else replace(manifest.load(to, own.workload), workload=own.workload)


def settings_of(spec: FaultSpec) -> dict[str, str]:
    """Return the settings of the new job alone: KEY=VALUE, or several joined by a plus."""
    words = [] if spec.options["conf"] == SAME else SEVERAL.split(spec.options["conf"])
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _changed(spec: FaultSpec, context: Context) -> Fault:
    to, own, sink = other_job(spec, context.manifest), context.manifest, context.spec.sink
    missing = []
    if spec.options["stop"] not in STOPS:
        missing.append(f"stop = {spec.options['stop']} is not one of {', '.join(STOPS)}")
    if spec.options["stop"] == CLEAN and spec.when.kind == "point":
        missing.append("a job that is held at a crash point can't end cleanly: use stop=kill or another moment")
    if sink not in [claim.name for claim in to.sinks]:
        missing.append(f"{to.id} has no sink {sink!r}; its sinks are {', '.join(claim.name for claim in to.sinks)}")
    elif to.sink(sink).late != own.sink(sink).late or to.evidence != own.evidence:
        missing.append(f"{own.id} and {to.id} treat late events differently, but a verdict has one rule for them")
    missing += [*_unasked(spec, own, to), *_unlike(spec, to)]
    if to.simulated != own.simulated or to.source != own.source or to.results_topic != own.results_topic:
        missing.append(f"{own.id} and {to.id} write their results to different locations")
    if to.progress_group != own.progress_group:
        missing.append(f"{own.id} and {to.id} report their progress in different ways")
    if missing:
        return Idle(spec, tuple(missing))
    return down(spec, ChangeJob(spec, context, to, *_changed_keys(spec, context, to)), context)


def _unasked(spec: FaultSpec, own: EngineManifest, to: EngineManifest) -> Iterator[str]:
    """Yield the reasons why the question can't be changed."""
    means, words = spec.options["means"], {name: spec.options[name] for name in QUESTION}
    asks = any(word != SAME for word in words.values())
    if means not in MEANS:
        yield f"means = {means} is not one of {', '.join(MEANS)}"
    if asks and means == SAME:
        yield (
            f"the question changes, but nothing declares the correct results: give means, one of {', '.join(MEANS[1:])}"
        )
    if means != SAME and not asks:
        yield f"means = {means}, but the question does not change: give one of {', '.join(QUESTION)}"
    if asks and not own.progress:
        yield f"{own.id} reports no progress (progress = false), so it is not known which events its state holds"
    asked = {key: words[name] for name, key in QUESTION.items() if key and words[name] != SAME}
    if not to.simulated and (mistake := own_options.mistake(to, asked)):
        yield f"an option of the job changes the question, but {mistake}"


def _unlike(spec: FaultSpec, to: EngineManifest) -> Iterator[str]:
    """Yield the reasons why this state or these settings are impossible."""
    state, settings = spec.options["state"], settings_of(spec)
    if not all(key and value for key, value in settings.items()):
        yield f"conf = {spec.options['conf']} is not KEY=VALUE"
    elif mistake := own_options.mistake(to, settings):
        yield mistake
    savepoint = urlsplit(settings.get(SAVEPOINT, ""))
    if savepoint.scheme in ("", "file") and savepoint.path and not Path(unquote(savepoint.path)).exists():
        yield f"there is no savepoint at {settings[SAVEPOINT]}"
    if spec.options["topic"] not in TOPICS:
        yield f"topic = {spec.options['topic']} is not one of {', '.join(TOPICS)}"
    elif spec.options["topic"] == NEW_TOPIC and to.simulated:
        yield f"{to.id} reads no Kafka topic"
    if state not in STATES:
        yield f"state = {state} is not one of {', '.join(STATES)}"
    elif state == NO_STATE and (spec.options["means"] not in FROM_NOTHING or not to.on_spark):
        yield f"without a state a Spark job starts from the beginning: give means, one of {', '.join(FROM_NOTHING)}"


def _changed_keys(spec: FaultSpec, context: Context, to: EngineManifest) -> tuple[ConfigKeys, ConfigKeys]:
    """Return the run configs for the new question and for the previous one."""
    options, given = spec.options, context.spec.conf
    told = {key: options[name] for name, key in QUESTION.items() if key and options[name] != SAME}
    told |= settings_of(spec)
    before_ms = window_ms = context.spec.window_ms
    if options["window"] != SAME:
        window_ms = round(seconds(options["window"], "window") * 1000)
    after = {"options": {**to.options, **given, **told}, "window_ms": window_ms}
    before = {"options": {**context.manifest.options, **given}, "window_ms": before_ms}
    return (after, before) if told or window_ms != before_ms else ({}, {})


KINDS = (
    Kind(
        "change-job",
        "the engine is ended, and another job is started in its place, on a copy of its state",
        "goes on; or stops loudly, and the old job goes on; no count changes",
        _changed,
        needs="an engine that resumes, and a job with the same sink",
        options={
            "to": SAME,
            "stop": "kill",
            "state": "copy",
            "topic": SAME,
            "conf": SAME,
            "means": SAME,
            **dict.fromkeys(QUESTION, SAME),
        },
    ),
)
