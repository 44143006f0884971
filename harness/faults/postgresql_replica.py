"""The part of the postgresql family that needs two servers: a replica takes over that lacks the last transactions.

Proofs are positions in the log of changes and numbers of transactions, of both servers.
"""

from __future__ import annotations

from typing import Any

from harness.faults.base import PROGRESS
from harness.faults.postgresql import SLOW_MS, STARTED, PostgresStrike, ask, kind, server_of
from harness.faults.run_at_poll import Moment
from harness.faults.strike import length_ms, need_more_to_do
from harness.model import SqlAddress
from harness.services import postgresql
from harness.services.postgresql import Replica
from harness.util.texts import many
from harness.util.wait import wait_until

CAUGHT_UP_S, PROMOTE_S = 60.0, 60.0
# Number of the next transaction, and the end of the log that is on the disk.
POSITION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_current_wal_flush_lsn()::text"
FOLLOWS = (
    "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn = pg_current_wal_flush_lsn()"
)
CUT = ("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
RECEIVES = "SELECT count(*) FROM pg_stat_wal_receiver"
REPLAYED = "SELECT pg_last_wal_replay_lsn()::text"
PROMOTE = f"SELECT pg_promote(true, {PROMOTE_S:.0f})"


class Promote(PostgresStrike):
    """The replica is cut off, some seconds later the server dies, and the replica serves at its address."""

    def __init__(self, alone_ms: float) -> None:
        super().__init__()
        self._alone_ms = alone_ms
        self.land_within_ms = alone_ms + 3 * SLOW_MS
        self._replica: Replica | None = None
        self._cut_ms = self._next = 0

    def inject(self, now: Moment) -> str:
        need_more_to_do(now)
        server = server_of(now)
        ((_, end),) = of(server.address, POSITION)
        self._replica = replica = server.follow()
        wait_until(
            lambda: ask(now, FOLLOWS.format(end)) == [(1,)],
            deadline_s=CAUGHT_UP_S,
            what=f"the replica to have the log up to {end}",
        )
        for statement in CUT:
            of(replica.address, statement)
        wait_until(
            lambda: of(replica.address, RECEIVES) == [(0,)], deadline_s=CAUGHT_UP_S, what="the replica to be cut off"
        )
        self._cut_ms = now.now_ms
        ((self._next, _),) = of(server.address, POSITION)
        ((end,),) = of(replica.address, REPLAYED)
        return f"a replica followed asynchronously up to {end}, and was then cut off"

    def landed(self, now: Moment) -> str:
        position = ask(now, POSITION)
        if now.now_ms - self._cut_ms < self._alone_ms or not position or position[0][0] <= self._next:
            return ""  # not before there is a transaction to lose
        assert self._replica is not None
        ((following, end),), server = position, server_of(now)
        ((has,),) = of(self._replica.address, REPLAYED)
        server.child.kill_group()
        of(self._replica.address, PROMOTE, PROMOTE_S)
        server.give_way(self._replica)
        lost_bytes = place_of(end) - place_of(has)
        return (
            f"SIGKILL to the server, whose log had reached {end}; the replica was promoted at its address, and has the "
            f"log up to {has}: {lost_bytes:,} bytes or more with {many(following - self._next, 'transaction')} are gone"
        )

    def heal(self, now: Moment) -> None:
        if self._replica is not None:
            self._replica.child.kill_group()
        if not server_of(now).child.alive():
            server_of(now).restart()

    def healed(self, now: Moment) -> str:
        return "it answers" if ask(now, STARTED) else ""


def of(address: SqlAddress, statement: str, reply_s: float = postgresql.REPLY_TIMEOUT_S) -> list[tuple[Any, ...]]:
    """Ask one of the two servers, with patience."""
    with postgresql.connect(address, reply_s) as connection:
        cursor = connection.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return rows


def place_of(position: str) -> int:
    """Return a position in the log, which PostgreSQL writes as two hexadecimal numbers, in bytes."""
    high, low = (int(part, 16) for part in position.split("/"))
    return (high << 32) + low


KINDS = (
    kind(
        "postgresql-promote",
        "a replica that follows asynchronously is cut off; then the server is killed, and the replica takes over at "
        "its address without the last transactions",
        "detects the loss, and stops loudly or writes the rows again; rows that only the lost server had are lost",
        lambda spec, _: Promote(length_ms(spec)),
        {"for": "3s"},
        moments=PROGRESS,
    ),
)
