"""The table family beside its kills: other programs that work on the table while the job writes it.

They go through deltalake and pyiceberg, and change no row. Proofs are the versions of the table that are ours, and the
files that are gone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.faults.base import Context, Kind
from harness.faults.iceberg_table import compact as compact_iceberg
from harness.faults.iceberg_table import table_at
from harness.faults.run_at_poll import Moment
from harness.faults.strike import CannotStrikeError, Strike, length_ms, struck_by
from harness.faults.table_kill import elsewhere
from harness.model import FaultSpec, UsageError
from harness.results.table_commits import LOGS, Commit
from harness.util.durations import seconds
from harness.util.texts import many, shown

MARK = "streamgauge.writes"  # the property that our commits set
MODES = ("lite", "full")
LONGEST_NAME = 60  # characters


class TableStrike(Strike):
    """The base class: each poll tries until the proof is there, because a commit may lose against the job's."""

    colour = "tab:brown"
    land_within_ms = 60_000.0

    def __init__(self, source: str, hold_ms: float = 0.0) -> None:
        self._source = source
        self.hold_ms = hold_ms

    @abstractmethod
    def work(self, folder: Path) -> str:
        """Work on the table once; return the proof, "" if nothing was there to do."""

    def landed(self, now: Moment) -> str:
        try:
            return self.work(folder_of(now))
        except (OSError, conflict(self._source)):  # the job was first, or has just deleted a file
            return ""

    def healed(self, now: Moment) -> str:
        newest = LOGS[self._source](folder_of(now)).newest()
        return f"nothing is to be undone; the table is at {newest.name}" if newest else ""

    def newest(self, now: Moment) -> Commit:
        """Return the newest commit of a table that we can commit to."""
        found = LOGS[self._source](folder_of(now)).newest()
        if found is None:
            raise CannotStrikeError("the job has not made its table yet")
        if self._source == "iceberg":
            table_at(folder_of(now))
        return found


class Vacuum(TableStrike):
    """Deletes the files that no current version needs."""

    def __init__(self, source: str, mode: str) -> None:
        super().__init__(source)
        self._is_full = mode == "full"

    def inject(self, now: Moment) -> str:
        kind = "FULL" if self._is_full else "LITE"
        return f"VACUUM {kind} with a retention of 0 hours, when the table was at {self.newest(now).name}"

    def work(self, folder: Path) -> str:
        from deltalake import DeltaTable

        log = LOGS[self._source](folder)
        before = log.data_files()  # the list that vacuum returns also has files that were gone before
        DeltaTable(str(folder)).vacuum(
            retention_hours=0, dry_run=False, enforce_retention_duration=False, full=self._is_full
        )
        gone = sorted(before - log.data_files())
        return f"{many(len(gone), 'file')} gone, such as {shown(Path(gone[0]).name, LONGEST_NAME)}" if gone else ""


class Compact(TableStrike):
    """Rewrites small files as large ones."""

    def inject(self, now: Moment) -> str:
        return f"compaction, when the table was at {self.newest(now).name}"

    def work(self, folder: Path) -> str:
        return {"delta": compact_delta, "iceberg": compact_iceberg}[self._source](folder)


class Expire(TableStrike):
    """Removes all snapshots but the current one."""

    def inject(self, now: Moment) -> str:
        return f"expire_snapshots of all but the current one, when the table was at {self.newest(now).name}"

    def work(self, folder: Path) -> str:
        table = table_at(folder)
        current = table.current_snapshot()
        old = [each.snapshot_id for each in table.snapshots() if current and each.snapshot_id != current.snapshot_id]
        if not old:
            return ""
        table.maintenance.expire_snapshots().by_ids(old).commit()
        left = table_at(folder).snapshots()
        return f"{many(len(old), 'snapshot')} gone, {many(len(left), 'snapshot')} left"


class Writer(TableStrike):
    """Commits a property of the table again and again."""

    def __init__(self, source: str, hold_ms: float, every_ms: float) -> None:
        super().__init__(source, hold_ms)
        self._every_ms = every_ms
        self._due_ms = self._commits = self._starts = 0
        self._first = ""

    def inject(self, now: Moment) -> str:
        self._first, self._starts = self.newest(now).name, now.engine.starts
        return f"a second writer sets the property {MARK} every {self._every_ms:g} ms"

    def work(self, folder: Path) -> str:
        {"delta": set_of_delta, "iceberg": set_of_iceberg}[self._source](folder, str(self._commits + 1))
        self._commits += 1
        newest = LOGS[self._source](folder).newest()
        return f"its first commit is {newest.name}" if newest else ""

    def holds(self, now: Moment, landed_ms: int) -> bool:
        if now.now_ms >= self._due_ms:
            self._due_ms = now.now_ms + round(self._every_ms)
            self.landed(now)
        return super().holds(now, landed_ms)

    def healed(self, now: Moment) -> str:
        times = now.engine.starts - self._starts
        job = f"the job was restarted {many(times, 'time')}" if times else "the job was not restarted"
        return f"it made {many(self._commits, 'commit')} from {self._first} to {self.newest(now).name}; {job}"


def compact_delta(folder: Path) -> str:
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    done = table.optimize.compact()
    if not done["numFilesRemoved"]:
        return ""
    table.update_incremental()
    return f"version {table.version()}: {done['numFilesRemoved']:,} files became {done['numFilesAdded']:,}"


def set_of_delta(folder: Path, value: str) -> None:
    from deltalake import DeltaTable

    DeltaTable(str(folder)).alter.set_table_properties({MARK: value}, raise_if_not_exists=False)


def set_of_iceberg(folder: Path, value: str) -> None:
    with table_at(folder).transaction() as transaction:
        transaction.set_properties({MARK: value})


def conflict(source: str) -> type[Exception]:
    """Return the error of a commit that lost against the job's."""
    found: type[Exception]
    if source == "delta":
        from deltalake.exceptions import DeltaError

        found = DeltaError
    else:
        from pyiceberg.exceptions import CommitFailedException

        found = CommitFailedException
    return found


def folder_of(now: Moment) -> Path:
    if now.field is None or now.field.table is None:
        raise CannotStrikeError("this run has no table of files")
    return now.field.table


def mode_of(spec: FaultSpec) -> str:
    if (mode := spec.options["mode"]) not in MODES:
        raise UsageError(f"mode = {mode!r} of {spec.action} is not one of {', '.join(MODES)}.")
    return mode


class Where(NamedTuple):
    """The tables that can have a fault, and why others can't."""

    sources: tuple[str, ...]
    needs: str
    why_not: str

    def missing(self, spec: FaultSpec, context: Context) -> tuple[str, ...]:
        found = elsewhere(spec, context)
        return found or (() if context.manifest.source in self.sources else (self.why_not,))


def kind(
    words: tuple[str, str, str],
    strike: Callable[[FaultSpec, str], Strike],
    where: Where,
    options: Mapping[str, str] | None = None,
) -> Kind:
    """Return an entry of the catalogue; `words` are its name, what happens, and what a correct job does."""
    make = struck_by(lambda spec, context: strike(spec, context.manifest.source), where.missing)
    return Kind(*words, make, where.needs, options or {})


KINDS = (
    kind(
        (
            "table-writer",
            "a second writer commits a property of the table again and again: commits of the job conflict with it",
            "tries its commit again, or stops loudly; no count changes",
        ),
        lambda spec, source: Writer(source, length_ms(spec), seconds(spec.options["every"], "every") * 1000),
        Where(
            ("delta", "iceberg"),
            "results in `delta`, or in `iceberg` in a table of a Hadoop catalog",
            "a folder of Parquet files has no commits that could conflict",
        ),
        {"for": "5s", "every": "200ms"},
    ),
    kind(
        (
            "table-vacuum",
            "VACUUM of a Delta table with a retention of 0 hours: LITE deletes files of old versions, FULL also files "
            "that are not committed yet",
            "goes on after LITE; after FULL it stops loudly, or commits no file that is gone",
        ),
        lambda spec, source: Vacuum(source, mode_of(spec)),
        Where(("delta",), "results in `delta`", "only Delta has VACUUM; for Iceberg there is table-expire"),
        {"mode": "lite"},
    ),
    kind(
        (
            "table-compact",
            "OPTIMIZE of a Delta table, or a rewrite of an Iceberg table's data files: small files become large ones",
            "tries its commit again, or stops loudly; no count changes",
        ),
        lambda _, source: Compact(source),
        Where(
            ("delta", "iceberg"),
            "results in `delta`, or in `iceberg` in a table of a Hadoop catalog",
            "a folder of Parquet files has no commits by which files could be replaced",
        ),
    ),
    kind(
        (
            "table-expire",
            "expire_snapshots of an Iceberg table: all snapshots but the current one are removed",
            "goes on; it still knows which batch it wrote last",
        ),
        lambda _, source: Expire(source),
        Where(
            ("iceberg",),
            "results in `iceberg`, in a table of a Hadoop catalog",
            "only Iceberg has snapshots to expire; for Delta there is table-vacuum",
        ),
    ),
)
