"""`sql:TABLE`: a table or view in PostgreSQL, or `sql` with a `query` that returns the cells.

The database tells which of its transactions can be seen; if those are the ones of the poll before, nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model import HarnessError, SqlAddress, redacted
from harness.results.base import PolledStore, ResultLocation
from harness.results.columns import LOOKS_FOR, PRINTS, Columns
from harness.results.redis_scan import Row, UnreadableTableError
from harness.services import postgresql

# Two polls with the same answer see the same rows.
VISIBLE = "SELECT pg_current_snapshot()::text"


class Sql(PolledStore):
    form = "sql:TABLE"
    looks_for = LOOKS_FOR
    service = "sql"
    prints = PRINTS
    when_empty = (
        "the table of the results is empty or does not exist; it belongs in the schema that the job's config names"
    )

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._columns = Columns(location)
        self._table, self._query = location.manifest.table, location.manifest.query
        self._connection: Any = None
        self._seen = ""
        self._rows: list[Row] = []

    @property
    def _address(self) -> SqlAddress:
        if self._location.sql is None:
            raise HarnessError("PostgreSQL was requested before it was open.")
        return self._location.sql

    def prepare(self) -> None:
        postgresql.make_schema(self._address)

    def rows(self) -> list[Row]:
        import psycopg

        try:
            return self._read()
        except psycopg.errors.UndefinedTable:
            return []  # the job has not made it yet
        except (psycopg.ProgrammingError, psycopg.DataError) as error:
            raise UnreadableTableError(f"The results can't be read: {postgresql.words_of(error)}.") from None
        except psycopg.Error as error:
            self.close()
            raise HarnessError(f"PostgreSQL at {redacted(self._address.url)}: {postgresql.words_of(error)}.") from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._seen = None, ""

    def _read(self) -> list[Row]:
        if self._connection is None:
            self._connection = postgresql.connect(self._address)
        (visible,) = self._connection.execute(VISIBLE).fetchone()
        if visible == self._seen:
            return self._rows
        cursor = self._connection.execute(self._statement())
        names = [each.name for each in cursor.description]
        named = ((f"row {number}", dict(zip(names, row, strict=True))) for number, row in enumerate(cursor, 1))
        self._rows, self._seen = self._columns.together(self._columns.rows(named)), visible
        return self._rows

    def _statement(self) -> str:
        """Return a statement whose columns have our names."""
        source = f"({self._query}) AS results" if self._query else self._table
        present = [each.name for each in self._connection.execute(f"SELECT * FROM {source} LIMIT 0").description]
        names = self._columns.chosen(present)
        if names is None:
            raise UnreadableTableError(
                f"The results in {self._query or self._table} can't be read: {self._columns.missing(present)}."
            )
        return f"SELECT {', '.join(self._as_ours(names))} FROM {source}{self._grouped(names)}"

    def _as_ours(self, names: Sequence[str]) -> list[str]:
        return [f'{self._of(name)} AS "{name}"' for name in names]

    def _of(self, name: str) -> str:
        column = f'"{self._columns.column_of(name)}"'
        is_summed = self._location.manifest.sums and name in self._columns.wanted.values
        # A sum passes over NULL, which is no count.
        return f"CASE WHEN count(*) = count({column}) THEN sum({column}) END" if is_summed else column

    def _grouped(self, names: Sequence[str]) -> str:
        if not self._location.manifest.sums:
            return ""
        keys = [str(number) for number, name in enumerate(names, 1) if name not in self._columns.wanted.values]
        return f" GROUP BY {', '.join(keys)}"
