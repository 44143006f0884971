"""The kills of the table family: SIGKILL at two moments of a write that a job can't be held at.

Spark's own sinks write a table without a crash point in between. So a thread looks at the table's files a thousand
times a second, freezes the engine when it sees a new one, checks what is committed, and kills it or thaws it. The reply
to a commit that succeeded is lost with the process. A job that gets an error as the reply and goes on is not tried:
that would take code of ours in the job's JVM.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.engines.base import Engine
from harness.faults.base import PROGRESS, Context, Fault, Kind
from harness.faults.kill import Hunted, Replayed
from harness.faults.run_at_poll import Moment
from harness.faults.strike import Idle, missing_for, nothing_left, unresumed
from harness.model import FaultSpec
from harness.results.table_commits import LOGS, Commit, TableLog, is_whole

NEEDS = "results in `delta`, `iceberg` or `parquet`; a local checkpoint of Spark, and an engine that resumes"


class KillAtTable(Hunted, Replayed):
    """The base class of both."""

    def __init__(self, spec: FaultSpec, source: str) -> None:
        super().__init__(spec)
        self._source = source
        self._log: TableLog = LOGS[source](Path())
        self._last: Commit | None = None
        self._first = 0  # no earlier batch can be open
        self._nothing_left = ""

    def prepare(self, now: Moment) -> None:
        assert now.field is not None
        assert now.field.table is not None, "a run whose table is elsewhere can't have this fault"
        self._log = LOGS[self._source](now.field.table)
        self._last = self._log.newest()
        self._first = max(0, now.progress.batch) if now.progress else 0

    def poll(self, now: Moment) -> None:
        self._nothing_left = nothing_left(now)
        super().poll(now)

    def _strike(self, engine: Engine, is_it: Callable[[], bool]) -> None:
        """Freeze the engine and look again; kill it if a batch is open, else let it go on."""
        engine.freeze()
        self._batch = self._open_batch(engine)
        if self._batch is not None and is_it():
            self._kill(engine)
        else:
            self._missed += 1
            engine.thaw()

    def _open_batch(self, engine: Engine) -> int | None:
        """Return the batch that is planned and not committed."""
        while engine.committed(self._first):
            self._first += 1
        return self._first if engine.planned(self._first) is not None else None

    def _why_not(self) -> str:
        if self._hunter is None:
            return super()._why_not()
        missed = f", and {self._missed} times the engine was frozen too late or for no rows" if self._missed else ""
        return f"no such moment was seen{missed}{f': {self._nothing_left}' if self._nothing_left else ''}"


class KillCommitted(KillAtTable):
    """The table has committed the batch, and the checkpoint has not."""

    def look(self, engine: Engine) -> None:
        newest = self._log.newest()
        if newest is not None and newest != self._last:
            self._last = newest
            self._strike(engine, lambda: self._log.has_rows(newest))

    def _where(self) -> str:
        assert self._last is not None
        return f"in the table as {self._last.name}"


class KillWritten(KillAtTable):
    """A data file is written, and the table has not committed it."""

    def __init__(self, spec: FaultSpec, source: str) -> None:
        super().__init__(spec, source)
        self._known: set[str] = set()
        self._file = ""

    def prepare(self, now: Moment) -> None:
        super().prepare(now)
        self._known = self._log.data_files()

    def look(self, engine: Engine) -> None:
        files, newest = self._log.data_files(), self._log.newest()
        if newest != self._last:
            self._last, self._known = newest, files
        self._file = next((each for each in files - self._known if is_whole(each)), "")
        if self._file:
            self._known.add(self._file)
            self._strike(engine, lambda: self._log.newest() == self._last)

    def _where(self) -> str:
        at = self._last.name if self._last else "empty"
        return f"in the file {Path(self._file).name}, while the table was still at {at}"


def table_kill(make: Callable[[FaultSpec, str], KillAtTable]) -> Callable[[FaultSpec, Context], Fault]:
    def fault(spec: FaultSpec, context: Context) -> Fault:
        missing = (*unresumed(context.manifest), *elsewhere(spec, context), *_no_plans(context))
        missing = (*missing, *missing_for(spec, context))
        return Idle(spec, missing) if missing else make(spec, context.manifest.source)

    return fault


def elsewhere(_: FaultSpec, context: Context) -> tuple[str, ...]:
    if context.manifest.source in LOGS:
        return ()
    return (f"{context.manifest.id} writes its results elsewhere (results = {context.manifest.results!r})",)


def _no_plans(context: Context) -> tuple[str, ...]:
    if context.manifest.evidence == "spark-checkpoint":
        return ()
    return (f"{context.manifest.id} has no checkpoint that says which batch is open",)


KINDS = (
    Kind(
        "table-kill-committed",
        "SIGKILL when the table has committed a batch and the checkpoint has not: the reply to the commit is lost",
        "replays the batch, and the table does not take it twice",
        table_kill(KillCommitted),
        needs=NEEDS,
        moments=PROGRESS,
    ),
    Kind(
        "table-kill-written",
        "SIGKILL when a data file of a batch is complete and the table has not committed it",
        "replays the batch; readers never see the rows of the abandoned file",
        table_kill(KillWritten),
        needs=NEEDS,
        moments=PROGRESS,
    ),
)
