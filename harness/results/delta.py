"""`delta:TABLE`: a Delta table in the folder that the job's run config names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from harness.results.base import ResultLocation
from harness.results.redis_scan import UnreadableTableError
from harness.results.table_files import TableFile, words_of
from harness.results.table_history import CommitFile, TableWithHistory

MAPPING = "delta.columnMapping.mode"  # with it, columns have other names in the files
PARTITION = "partition."  # how deltalake names a column that is in the place of a file
# What a reader must understand. With others, the files alone do not show the rows.
UNDERSTOOD = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening"})


class Delta(TableWithHistory):
    form = "delta:TABLE"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._table: Any = None

    def version(self) -> object:
        return self._table.version() if self._moved_to(None) else None

    def files(self) -> Iterator[TableFile]:
        import pyarrow as pa

        for action in pa.table(self._table.get_add_actions(flatten=True)).to_pylist():
            partition = tuple(
                (name.removeprefix(PARTITION), value) for name, value in action.items() if name.startswith(PARTITION)
            )
            yield TableFile(str(self.path / unquote(action["path"])), partition)

    def commits(self, after: int | None) -> Sequence[CommitFile] | None:
        if after is not None and not self._commit(after).path.exists():
            self._table = None  # it was made anew
            return None
        found: list[CommitFile] = []
        while (commit := self._commit((-1 if after is None else after) + 1 + len(found))).path.exists():
            found.append(commit)
        return found

    def load(self, commit: CommitFile) -> None:
        self._moved_to(commit.number)

    def described(self, commit: CommitFile) -> tuple[str, str]:
        return f"version {commit.number}", writer_of(commit.path)

    def _commit(self, number: int) -> CommitFile:
        return CommitFile(number, self.path / "_delta_log" / f"{number:020}.json")

    def _moved_to(self, number: int | None) -> bool:
        """Load a version, or the newest one; return False if there is no table."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            if self._table is None:
                self._table = DeltaTable(str(self.path), version=number)
            elif number is None:
                self._table.update_incremental()
            else:
                self._table.load_as_version(number)
        except TableNotFoundError:
            return False
        except DeltaError as error:
            self._table = None
            advice = " Let the job write an older protocol." if "upported" in str(error) else ""
            raise UnreadableTableError(
                f"The Delta table {self.path} can't be read: {words_of(error)}.{advice}"
            ) from None
        self._refuse_what_it_needs()
        return True

    def _refuse_what_it_needs(self) -> None:
        protocol = self._table.protocol()
        unknown = sorted(set(protocol.reader_features or ()) - UNDERSTOOD)
        if self._table.metadata().configuration.get(MAPPING, "none") != "none":
            unknown = sorted({*unknown, "columnMapping"})
        if unknown:
            raise UnreadableTableError(
                f"The Delta table {self.path} needs readers that understand {', '.join(unknown)}, and this one does "
                f"not. Let the job write without, such as delta.enableDeletionVectors = false or {MAPPING} = none."
            )


def writer_of(commit: Path) -> str:
    """Return what a commit says of its writer: the operation, the program, and the number of its batch."""
    actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines() if line.strip()]
    said: Mapping[str, Any] = next((each["commitInfo"] for each in actions if each.get("commitInfo")), {})
    batches = [each["txn"] for each in actions if each.get("txn")]
    return ", ".join([*_program(said), *(f"batch {each['version']} of {each['appId']}" for each in batches)])


def _program(said: Mapping[str, Any]) -> Iterator[str]:
    program = said.get("engineInfo") or said.get("clientVersion")
    words = [said.get("operation"), program and f"by {program}"]
    if any(words):
        yield " ".join(word for word in words if word)
