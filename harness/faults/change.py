"""The change family: the engine is killed and restarted with another run config, as after a release or a tuning.

The proof is the config file of the new process. Spark keeps the settings that its checkpoint pins; its next plan shows
which. An engine that stops loudly gets its old config back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.engines import own_options
from harness.engines.base import Engine
from harness.engines.config import FILE
from harness.faults.base import Context, Fault, Kind
from harness.faults.downtime import Downtime, down
from harness.faults.run_at_poll import Moment
from harness.faults.strike import Idle
from harness.model import FaultSpec
from harness.util.durations import seconds
from harness.util.suggest import nearest

PARTITIONS = "spark.sql.shuffle.partitions"
PARSER = "streamgauge.parser"

ConfigKeys = Mapping[str, Any]


class Change(Downtime):
    """Restarts the engine with another run config. `to` and `back` are parts of it; `pinned` is a key of the plan that
    shows the effect."""

    def __init__(self, spec: FaultSpec, context: Context, to: ConfigKeys, back: ConfigKeys, pinned: str = "") -> None:
        super().__init__(spec, context)
        self._to, self._back, self._pinned = to, back, pinned
        self._told_before = ""

    def check(self, now: Moment) -> None:
        """Check nothing: a config can always be changed."""

    def deed(self, now: Moment) -> None:
        self._told_before = in_plan(now.engine, self._pinned)
        now.engine.change(self._to)

    def proof(self, now: Moment) -> str:
        pid, config = config_of(now.engine)
        if any(config.get(key) != value for key, value in self._to.items()):
            return ""
        return f"process {pid} was started with {difference(self._to, self._back)}"

    def undo(self, now: Moment) -> str:
        now.engine.change(self._back)
        return f"its old config was restored: {difference(self._back, self._to)}"

    def effect(self, now: Moment) -> str:
        told = in_plan(now.engine, self._pinned)
        self.ignored = kept_by(self._pinned, self._told_before, told)
        before = "the same" if self.ignored else self._told_before
        return f"its plans have {self._pinned} = {told}; before the restart it was {before}" if told else ""


def in_plan(engine: Engine, key: str) -> str:
    """Return a setting's value in the newest plan, or ""."""
    newest = engine.progress()
    plan = engine.planned(newest.batch) if newest and key else None
    with suppress(ValueError, IndexError, TypeError, KeyError):
        head = json.loads((plan or b"").split(b"\n")[1])
        return str(head["conf"][key] if key in head["conf"] else head.get(key, ""))
    return ""


def kept_by(key: str, before: str, now: str) -> str:
    """Return the sentence that the checkpoint keeps a setting, or ""."""
    return f"its checkpoint keeps {key} = {now}" if now and now == before else ""


def config_of(engine: Engine) -> tuple[int, ConfigKeys]:
    """Return pid and run config of the leading process."""
    for member in engine.members():
        paths = [Path(word) for word in member.command if Path(word).name == FILE]
        with suppress(OSError, ValueError):
            if member.leads and paths:
                return member.pid, json.loads(paths[0].read_bytes())
    return 0, {}


def difference(to: ConfigKeys, other: ConfigKeys) -> str:
    """List only the differences: a run config may hold secrets."""
    words = []
    for key, value in to.items():
        if isinstance(value, Mapping):
            others = other.get(key, {})
            words += [f"{name} = {each}" for name, each in value.items() if others.get(name) != each]
            words += [f"no {name}" for name in others if name not in value]
        elif other.get(key) != value:
            words.append(f"{key} = {value}")
    return ", ".join(words)


def _changed(
    spec: FaultSpec, context: Context, to: ConfigKeys, back: ConfigKeys, *needs: str, pinned: str = ""
) -> Fault:
    missing = [need for need in needs if need]
    if context.manifest.simulated:
        missing.append(f"{context.manifest.id} has no process with a run config")
    if to == back:
        missing.append(f"the run already has {difference(to, {})}")
    return Idle(spec, tuple(missing)) if missing else down(spec, Change(spec, context, to, back, pinned), context)


def _conf(key: str, pinned: str = "") -> Callable[[FaultSpec, Context], Fault]:
    """Make a fault that changes a key that only the Spark jobs have."""

    def change(spec: FaultSpec, context: Context) -> Fault:
        conf = {**context.manifest.options, **context.spec.conf}
        need = own_options.mistake(context.manifest, {key: spec.options["to"]})
        if not context.manifest.on_spark:
            need = f"{context.manifest.id} has no setting {key}"
        to = {"options": {**conf, key: spec.options["to"]}}
        return _changed(spec, context, to, {"options": conf}, need, pinned=pinned)

    return change


def _trigger(spec: FaultSpec, context: Context) -> Fault:
    to = f"{seconds(spec.options['to'], 'to') * 1000:.0f} milliseconds"
    need = own_options.mistake_of_config(context.manifest, {"trigger": to})
    return _changed(spec, context, {"trigger": to}, {"trigger": context.spec.trigger}, need)


def _watermark(spec: FaultSpec, context: Context) -> Fault:
    to_ms, back_ms = round(seconds(spec.options["to"], "to") * 1000), context.spec.watermark_ms
    pinned = "batchWatermarkMs"
    return _changed(spec, context, {"watermark_ms": to_ms}, {"watermark_ms": back_ms}, pinned=pinned)


def _slots(spec: FaultSpec, context: Context) -> Fault:
    """Change the number of tasks that run at the same time."""
    to, back = {"master": f"local[{spec.options['to']}]"}, {"master": context.spec.master}
    of_spark = "" if context.manifest.on_spark else f"{context.manifest.id} has no setting master"
    local = "" if context.spec.master.startswith("local[") else f"master = {context.spec.master} is not local[N]"
    return _changed(spec, context, to, back, of_spark, local)


def _sink(spec: FaultSpec, context: Context) -> Fault:
    to, names = spec.options["to"], [claim.name for claim in context.manifest.sinks]
    need = ""
    if to not in names:
        need = f"{context.manifest.id} has no sink {to!r}; its sinks are {', '.join(names)}{nearest(to, names)}"
    return _changed(spec, context, {"sink": to}, {"sink": context.spec.sink}, need)


RESUMES = "an engine that resumes and reports its progress"
CHANGED = "the engine is killed and restarted with"

KINDS = (
    Kind(
        "change-partitions",
        f"{CHANGED} another number of shuffle partitions",
        "keeps the number of its checkpoint, or redistributes its state; no count changes",
        _conf(PARTITIONS, PARTITIONS),
        needs="the Spark job",
        options={"to": "4"},
    ),
    Kind(
        "change-trigger",
        f"{CHANGED} another trigger",
        "goes on; no count changes",
        _trigger,
        needs=RESUMES,
        options={"to": "2s"},
    ),
    Kind(
        "change-slots",
        f"{CHANGED} another number of parallel tasks",
        "goes on; no count changes",
        _slots,
        needs="a Spark job whose master is local[N]",
        options={"to": "2"},
    ),
    Kind(
        "change-watermark",
        f"{CHANGED} another declared lateness",
        "never moves its watermark back; drops exactly the events that are late by the new lateness",
        _watermark,
        needs=RESUMES,
        options={"to": "20s"},
    ),
    Kind(
        "change-sink",
        f"{CHANGED} another of its sinks",
        "goes on; or stops loudly if its state does not fit, and goes on with its old sink",
        _sink,
        needs=f"{RESUMES}, and that sink",
        options={"to": "fenced"},
    ),
    Kind(
        "change-code",
        f"{CHANGED} another parser, which gives the same query another plan",
        "goes on; no count changes",
        _conf(PARSER),
        needs="the Spark job",
        options={"to": "from_json"},
    ),
)
