"""The postgresql family: harm to the database that holds the results. A database of others is never harmed.

Proofs come from the server or its process: the time of its start that changed, state T, a backend of the job that was
ended, a lock that the server lists, a commit that it confirmed to our proxy.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import psutil

from harness.faults.base import ANY_MOMENT, PROGRESS, Context, Kind
from harness.faults.run_at_poll import Moment
from harness.faults.strike import CannotStrikeError, Strike, length_ms, struck_by
from harness.model import FaultSpec
from harness.services import postgresql
from harness.services.link import Link
from harness.services.postgresql import EmbeddedPostgres
from harness.services.proxy import SIDES, Statistics, Toxic
from harness.util.texts import many, shown
from harness.util.wait import wait_until

NEEDS = "an embedded PostgreSQL, for results in `sql`"
SLOW_MS = 60_000.0  # to recover from its log, on a busy machine
STOP_DEADLINE_S = 10.0
PROBE_S = 2.0  # reply timeout of a probe to a server that may never answer
LONGEST_STATEMENT = 60  # characters
STARTED = "SELECT pg_postmaster_start_time()::text"
OTHERS = """
SELECT pid, query FROM pg_stat_activity
WHERE backend_type = 'client backend' AND application_name <> 'streamgauge' AND state <> 'idle'
"""
LOCKED = """
SELECT count(*) FROM pg_locks WHERE pid = {} AND mode = 'ExclusiveLock' AND granted AND relation IS NOT NULL
"""
LOCK_S = 8.0  # reply timeout of a session that locks
PATIENT = "10min"  # longer than the job waits, so that its session looks for a deadlock and ours does not
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
WAITS = "SELECT pid FROM pg_stat_activity WHERE {} = ANY(pg_blocking_pids(pid))"
ALIVE = "SELECT pid FROM pg_stat_activity WHERE pid = {}"
UNIQUE = "SELECT 1 FROM pg_index WHERE indrelid = '{}'::regclass AND indisunique"
NEWEST = "SELECT xmin::text, count(*) FROM {} GROUP BY xmin ORDER BY age(xmin) LIMIT 1"
LINK = "postgresql"


class PostgresStrike(Strike):
    """The base class of the family."""

    colour = "tab:olive"
    land_within_ms = SLOW_MS
    heal_within_ms = SLOW_MS


def server_of(now: Moment) -> EmbeddedPostgres:
    if now.field is None or now.field.postgresql is None:
        raise CannotStrikeError("this run has no embedded PostgreSQL")
    return now.field.postgresql


def ask(now: Moment, statement: str) -> list[tuple[Any, ...]]:
    """Return rows; nothing if the server does not answer."""
    import psycopg

    with suppress(psycopg.Error), postgresql.connect(server_of(now).address, PROBE_S) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        return rows
    return []


class Kill(PostgresStrike):
    """SIGKILL to all of its processes. What was committed is in its log, and so survives."""

    def __init__(self, hold_ms: float) -> None:
        super().__init__(hold_ms)
        self._started = ""

    def inject(self, now: Moment) -> str:
        child, found = server_of(now).child, ask(now, STARTED)
        self._started = found[0][0] if found else ""
        child.kill_group()
        return f"SIGKILL to process {child.pid} and all of its backends"

    def landed(self, now: Moment) -> str:
        child = server_of(now).child
        if child.alive() or ask(now, STARTED):
            return ""
        return f"it ended with exit code {child.returncode()}, and nothing answers at its port"

    def heal(self, now: Moment) -> None:
        server = server_of(now)
        if not server.child.alive():
            server.restart()

    def healed(self, now: Moment) -> str:
        found = ask(now, STARTED)
        if not found or found[0][0] == self._started:
            return ""
        return f"it was started again at {found[0][0]} with its data, and answers"


class Pause(PostgresStrike):
    """SIGSTOP: connections stay open, and nothing is answered."""

    def inject(self, now: Moment) -> str:
        child = server_of(now).child
        child.signal_group(signal.SIGSTOP)
        wait_until(lambda: _stopped(now), deadline_s=STOP_DEADLINE_S, what=f"process {child.pid} to be in state T")
        return f"SIGSTOP to process {child.pid} and all of its backends"

    def landed(self, now: Moment) -> str:
        return "it is in state T" if _stopped(now) else ""

    def heal(self, now: Moment) -> None:
        server_of(now).child.signal_group(signal.SIGCONT)

    def healed(self, now: Moment) -> str:
        return "SIGCONT, and it answers" if not _stopped(now) and ask(now, STARTED) else ""


class Cut(PostgresStrike):
    """Ends the connections of the job while a statement of it runs."""

    def inject(self, now: Moment) -> str:
        server_of(now)
        return "the next statement of the job was waited for"

    def landed(self, now: Moment) -> str:
        end = "SELECT pg_terminate_backend({}, 5000)".format
        ended = [(pid, query) for pid, query in ask(now, OTHERS) if ask(now, end(pid))]
        if not ended:
            return ""
        pid, query = ended[0]
        return f"backend {pid} was ended in `{shown(' '.join(query.split()), LONGEST_STATEMENT)}`"

    # There is nothing to heal: the job connects again.

    def healed(self, now: Moment) -> str:
        return "it answers" if ask(now, STARTED) else ""


class Lock(PostgresStrike):
    """Another session holds the table, so that the job's writes wait."""

    def __init__(self, hold_ms: float, table: str) -> None:
        super().__init__(hold_ms)
        self._table = table
        self._holder: Any = None

    def inject(self, now: Moment) -> str:
        import psycopg

        self._holder = holder = postgresql.connect(server_of(now).address)
        try:
            holder.execute("BEGIN")
            holder.execute(f"LOCK TABLE {self._table} IN EXCLUSIVE MODE")
        except psycopg.Error as error:
            holder.close()
            raise CannotStrikeError(f"the table can't be locked: {postgresql.words_of(error)}") from None
        return f"LOCK TABLE {self._table} IN EXCLUSIVE MODE by backend {holder.info.backend_pid}"

    def landed(self, now: Moment) -> str:
        pid = self._holder.info.backend_pid
        found = ask(now, LOCKED.format(pid))
        return "the server lists the lock as granted" if found and found[0][0] else ""

    def heal(self, now: Moment) -> None:  # noqa: ARG002
        if self._holder is not None:
            self._holder.close()

    def healed(self, now: Moment) -> str:
        pid = self._holder.info.backend_pid if self._holder and not self._holder.closed else 0
        found = ask(now, LOCKED.format(pid))
        return "the lock is gone" if found and not found[0][0] else ""


class Deadlock(PostgresStrike):
    """Our session locks the rows of the table, and then wants the table as soon as the job waits for a row.

    The job's first statement has a lock on the table. So each waits for the other, and the server ends a transaction:
    that of the session that looks for a deadlock first, which is the job's.
    """

    def __init__(self, table: str) -> None:
        super().__init__()
        self._table = table
        self._ours: Any = None
        self._lock: threading.Thread | None = None
        self._before = self._pid = 0
        self._granted = False

    def inject(self, now: Moment) -> str:
        if not ask(now, UNIQUE.format(self._table)):
            raise CannotStrikeError(f"{self._table} has no unique index, so no write of the job waits for a row")
        self._before = self._deadlocks(now)
        rows = self._lock_rows(now)
        if not rows:
            self._ours.close()
            raise CannotStrikeError(f"{self._table} has no rows yet, so no write of the job waits for one")
        return f"backend {self._pid} of ours locked {many(rows, 'row')} of {self._table}"

    def landed(self, now: Moment) -> str:
        if self._ours.closed:
            with suppress(CannotStrikeError):  # try again at the next poll
                self._lock_rows(now)
        if self._lock is None and ask(now, WAITS.format(self._pid)):
            self._lock = threading.Thread(target=self._lock_table, name="fault-deadlock", daemon=True)
            self._lock.start()
        if self._lock is None or self._lock.is_alive():
            return ""
        after = self._deadlocks(now)
        if self._granted and after > self._before:
            return (
                f"pg_stat_database.deadlocks went from {self._before} to {after}, and our LOCK TABLE was granted: the "
                "server ended the job's transaction"
            )
        if not self._granted:  # the job had looked for a deadlock before there was one
            self._lock = None
            self._ours.close()
        return ""

    def heal(self, now: Moment) -> None:  # noqa: ARG002
        if self._ours is not None:
            self._ours.close()

    def healed(self, now: Moment) -> str:
        return "our locks are gone" if ask(now, STARTED) and not ask(now, ALIVE.format(self._pid)) else ""

    def _lock_rows(self, now: Moment) -> int:
        """Begin a transaction of ours; return how many rows it locked."""
        import psycopg

        self._ours = ours = postgresql.connect(server_of(now).address, LOCK_S)
        self._pid = ours.info.backend_pid
        try:
            ours.execute(f"SET deadlock_timeout = '{PATIENT}'")
            ours.execute("BEGIN")
            (rows,) = ours.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {self._table} FOR UPDATE) AS locked"
            ).fetchone()
        except psycopg.Error as error:
            ours.close()
            raise CannotStrikeError(f"its rows can't be locked: {postgresql.words_of(error)}") from None
        return int(rows)

    def _lock_table(self) -> None:
        import psycopg

        with suppress(psycopg.Error):
            self._ours.execute(f"LOCK TABLE {self._table} IN SHARE MODE")
            self._granted = True

    def _deadlocks(self, now: Moment) -> int:
        found = ask(now, DEADLOCKS)
        return int(found[0][0]) if found else 0


class ResetReply(PostgresStrike):
    """A commit of the job is executed, its reply is dropped, and its connection is reset."""

    land_within_ms = 2 * SLOW_MS  # the job has to write, and may have to restart after each but the last

    def __init__(self, times: int, table: str) -> None:
        super().__init__()
        self._times, self._table = times, table
        self._before = Statistics()

    def inject(self, now: Moment) -> str:
        server_of(now)
        self._before = link_of(now).trouble(Toxic(lose_reply=True, times=self._times), SIDES)
        return "the next commit of rows reaches PostgreSQL; its reply is dropped, and its connection is reset"

    def landed(self, now: Moment) -> str:
        after = link_of(now).statistics()
        lost = Counter(after.unanswered) - Counter(self._before.unanswered)
        struck_times = after.struck - self._before.struck
        if struck_times < self._times or after.ending or lost.total() < self._times:
            return ""
        names = ", ".join(f"{count:,} {name}" for name, count in sorted(lost.items()))
        found = ask(now, NEWEST.format(self._table)) if self._table else []
        rows = f"; the newest rows of {self._table} are {found[0][1]:,} of transaction {found[0][0]}" if found else ""
        return f"PostgreSQL confirmed {names}, whose reply was dropped, in {many(struck_times, 'connection')}{rows}"

    def heal(self, now: Moment) -> None:
        link_of(now).clear()

    def healed(self, now: Moment) -> str:
        return "it answers" if ask(now, STARTED) else ""


def link_of(now: Moment) -> Link:
    assert now.field is not None, "a run without services has no links"
    return now.field.links[LINK]


def _stopped(now: Moment) -> bool:
    return psutil.Process(server_of(now).child.pid).status() == psutil.STATUS_STOPPED


def missing(_: FaultSpec, context: Context) -> tuple[str, ...]:
    if context.manifest.source != "sql":
        return (f"{context.manifest.id} writes its results elsewhere (results = {context.manifest.results!r})",)
    if context.spec.sql:
        return ("this run uses an existing PostgreSQL (--sql); a fault harms only an embedded one",)
    return ()


def missing_for_lock(spec: FaultSpec, context: Context) -> tuple[str, ...]:
    found = missing(spec, context)
    return found or (() if context.manifest.table else ("a query returns its results, so no table is known to lock",))


def kind(
    name: str,
    what: str,
    correct: str,
    strike: Callable[[FaultSpec, Context], Strike],
    options: Mapping[str, str] | None = None,
    *,
    lacks: Callable[[FaultSpec, Context], tuple[str, ...]] = missing,
    moments: tuple[str, ...] = ANY_MOMENT,
    links: tuple[str, ...] = (),
    own_disk: str = "",
) -> Kind:
    make, needs = struck_by(strike, lacks), f"{NEEDS}; the right to mount a tmpfs" if own_disk else NEEDS
    return Kind(name, what, correct, make, needs, options or {}, moments, links, own_disk=own_disk)


KINDS = (
    kind(
        "postgresql-kill",
        "SIGKILL to the database and its backends, then a restart at the same port with its data",
        "tries again or stops loudly; no count changes",
        lambda spec, _: Kill(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "postgresql-pause",
        "SIGSTOP to the database and its backends: connections stay open, and nothing is answered",
        "waits and catches up; no count changes",
        lambda spec, _: Pause(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "postgresql-cut",
        "the backend of the job is ended while a statement of it runs",
        "writes the whole batch again, and none of it twice",
        lambda *_: Cut(),
    ),
    kind(
        "postgresql-lock",
        "another session holds the table, so that writes wait and readers do not",
        "waits and catches up; no count changes",
        lambda spec, context: Lock(length_ms(spec), context.manifest.table),
        {"for": "5s"},
        lacks=missing_for_lock,
    ),
    kind(
        "postgresql-deadlock",
        "our session locks rows and then the table, in the opposite order of the job: PostgreSQL ends the job's "
        "transaction with `deadlock detected`",
        "runs the transaction again; no count changes",
        lambda _, context: Deadlock(context.manifest.table),
        lacks=missing_for_lock,
        moments=PROGRESS,
    ),
    kind(
        "postgresql-reset-reply",
        "PostgreSQL commits rows of the job, and the connection is reset before its reply arrives",
        "does not treat a missing reply as a missing commit: a repeated batch changes nothing",
        lambda spec, context: ResetReply(int(spec.options["times"]), context.manifest.table),
        {"times": "1"},
        moments=PROGRESS,
        links=(LINK,),
    ),
)
