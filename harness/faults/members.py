"""The processes of an engine: their roles, and the proof that a struck engine goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.engines import complaint
from harness.engines.base import Engine, Ghost, Member
from harness.faults.base import Context
from harness.faults.run_at_poll import Moment, done
from harness.faults.strike import CannotStrikeError, Strike
from harness.util.texts import shown

# Messages of Spark, and likely ones of other engines, that another driver has taken the checkpoint.
CONFLICT = re.compile(r"CONCURRENT_[A-Z]|[Cc]oncurrent (update|write|modification)|[Ff]enced")
EXECUTORS = (".CoarseGrainedExecutorBackend", ".TaskManagerRunner")
PYTHON_WORKERS = ("pyspark.daemon", "pyspark.worker", "pyflink.fn_execution.")
SLOW_MS = 60_000.0  # to end or to be killed, on a busy machine


def everything(_: Member) -> bool:
    return True


def is_driver(member: Member) -> bool:
    """Return whether it is the started process; of Spark the Python that holds the query."""
    return member.leads


def is_executor(member: Member) -> bool:
    """Return whether it is a worker JVM: Spark's executors, Flink's TaskManagers."""
    return any(word.endswith(EXECUTORS) for word in member.command)


def is_driver_jvm(member: Member) -> bool:
    is_java = bool(member.command) and Path(member.command[0]).name == "java"
    return is_java and not is_executor(member) and not member.of_cluster


def is_python_worker(member: Member) -> bool:
    return any(word.startswith(PYTHON_WORKERS) for word in member.command)


def pids_of(members: tuple[Member, ...]) -> list[int]:
    return [member.pid for member in members]


def chosen(engine: Engine | Ghost, which: Callable[[Member], bool]) -> tuple[Member, ...]:
    return tuple(member for member in engine.members() if which(member))


def at_least_one(engine: Engine, which: Callable[[Member], bool], what: str) -> tuple[Member, ...]:
    found = chosen(engine, which)
    if not found:
        raise CannotStrikeError(f"{engine.manifest.id} has no {what} here")
    return found


def listed(pids: Sequence[int]) -> str:
    return ", ".join(map(str, pids)) or "none"


def is_conflict(line: str) -> bool:
    return bool(CONFLICT.search(line))


def last_words(driver: Engine | Ghost) -> str:
    """Return the line that reports the conflict if there is one, else the exception at the end of the log."""
    lines = driver.tail(complaint.REMEMBERED)
    conflict = [line.strip() for line in lines if is_conflict(line)][-1:]
    return shown("; ".join(conflict or complaint.most_telling([("", lines)]).lines or ["no message"]), 300)


class GoingOn:
    """Detects that a struck engine makes progress again."""

    def __init__(self, manifest_progress: bool) -> None:
        self._tells = manifest_progress
        self._before = 0

    def begin(self, engine: Engine) -> None:
        newest = engine.progress()
        self._before = sum(newest.offsets.values()) if newest else 0

    def seen(self, now: Moment) -> str:
        if not now.engine.alive():
            return ""
        if not self._tells:
            return "it runs; it reports no progress"
        if done(now) > self._before:
            return f"it went on from {self._before:,} to {done(now):,} records"
        return (
            f"it runs, and had already processed all {self._before:,} records" if self._before >= now.total > 0 else ""
        )


class ProcessStrike(Strike):
    """The base class of the family: deadlines from the engine's start time, and proof of progress."""

    def __init__(self, context: Context) -> None:
        ready_ms = context.manifest.ready_s * 1000
        self.land_within_ms = SLOW_MS
        self.heal_within_ms = ready_ms + SLOW_MS
        self._ready_ms = ready_ms
        self._going_on = GoingOn(context.manifest.progress)

    def _restart(self, engine: Engine) -> None:
        """Ensure from any state that exactly one engine runs and is watched."""
        if engine.alive():
            engine.kill()
        self._going_on.begin(engine)
        engine.disarm()
        engine.restart()
