"""The part of the postgresql family that needs a disk of its own: it is full for a while.

Without the right to mount one the fault is refused: a quota of PostgreSQL's own, such as temp_file_limit, stops other
writes than those of a job.
"""

from __future__ import annotations

from harness.faults.base import PROGRESS, Context
from harness.faults.postgresql import PROBE_S, PostgresStrike, kind, missing, server_of
from harness.faults.run_at_poll import Moment
from harness.faults.strike import CannotStrikeError, length_ms
from harness.model import FaultSpec
from harness.services import postgresql, small_disk
from harness.services.small_disk import SmallDisk

# Files of a temporary table are on the same disk, and no log is written for it.
WRITE = "CREATE TEMPORARY TABLE probe AS SELECT generate_series(1, 100000)"


class DiskFull(PostgresStrike):
    """A file of ballast takes all space of the disk that the database is on."""

    def inject(self, now: Moment) -> str:
        return f"{disk_of(now).fill():,} bytes of ballast were written to the disk of PostgreSQL"

    def landed(self, now: Moment) -> str:
        disk_of(now).fill()
        if not server_of(now).child.alive():
            return f"it ended with exit code {server_of(now).child.returncode()}: it can't go on without its log"
        refused = refusal(now)
        return f"a test write was refused: {refused}" if "No space left" in refused else ""

    def holds(self, now: Moment, landed_ms: int) -> bool:
        """Fill again: files that the server deletes would make space for its writes."""
        disk_of(now).fill()
        return super().holds(now, landed_ms)

    def heal(self, now: Moment) -> None:
        disk_of(now).free()
        if not server_of(now).child.alive():
            server_of(now).restart()

    def healed(self, now: Moment) -> str:
        return "" if refusal(now) else f"a test write is accepted again, with {disk_of(now).free_bytes():,} bytes free"


def disk_of(now: Moment) -> SmallDisk:
    if (disk := server_of(now).disk) is None:
        raise CannotStrikeError("PostgreSQL is not on a disk of its own")
    return disk


def refusal(now: Moment) -> str:
    """Return the error of a write of ours; "" if it was accepted."""
    import psycopg

    try:
        with postgresql.connect(server_of(now).address, PROBE_S) as connection:
            connection.execute(WRITE)
    except psycopg.Error as error:
        return postgresql.words_of(error)
    return ""


def missing_disk(spec: FaultSpec, context: Context) -> tuple[str, ...]:
    why = small_disk.impossible()
    return (*missing(spec, context), *((f"no small disk can be mounted here: {why}",) if why else ()))


KINDS = (
    kind(
        "postgresql-disk-full",
        "the disk of the database is full for a while: a write that needs space fails with `No space left on device`",
        "stops loudly or tries again; commits nothing that it could not write",
        lambda spec, _: DiskFull(length_ms(spec)),
        {"for": "5s"},
        lacks=missing_disk,
        moments=PROGRESS,
        own_disk="postgresql",
    ),
)
