"""DuckDB for SQL from users: in memory, with the given relations only.

There is no access to files, the network, extensions, Python variables or settings, and time and memory are limited.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harness.util.texts import shown
from harness.util.toml_reader import MistakeError

if TYPE_CHECKING:
    import duckdb

GIVEN = "given_"  # prefix of relations; a user's query sees those that `reading` names, without the prefix
DEADLINE_S = 120.0  # of CPU time
MEMORY_MIB = 4096

_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
# SQL rounds quotients towards zero, so that a window before 1970 would begin after its events.
_MACROS = (
    "CREATE MACRO tumbling(time_ms, size_ms) AS time_ms - ((time_ms % size_ms) + size_ms) % size_ms",
    "CREATE MACRO sliding(time_ms, size_ms, step_ms) AS CASE WHEN size_ms % nullif(greatest(step_ms, 0), 0) = 0 "
    "THEN range(tumbling(time_ms - size_ms, step_ms) + step_ms, time_ms + 1, step_ms) ELSE error("
    "'sliding(...) has windows of ' || size_ms || ' ms that slide by ' || step_ms || ' ms; expected is a slide above 0 "
    "that divides the window') END",
)


@cache
def _database(threads: int, memory_mib: int) -> duckdb.DuckDBPyConnection:
    """Open an empty database with our macros, whose settings are final. That takes longer than most queries, so
    sandboxes share it: relations, tables and views of each are temporary, and no other connection sees them.
    """
    import duckdb

    limits = {"threads": str(threads), "memory_limit": f"{memory_mib}MiB"}
    database = duckdb.connect(":memory:", config={**_SETTINGS, **limits})
    for macro in _MACROS:
        database.execute(macro)
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    database.execute("SET lock_configuration = true")
    return database


class Sandbox:
    """One connection. It runs our statements as they are, and a user's text only if it is one SELECT."""

    def __init__(
        self,
        relations: Mapping[str, pa.Table],
        *,
        threads: int = 1,
        deadline_s: float = DEADLINE_S,
        memory_mib: int = MEMORY_MIB,
    ) -> None:
        import duckdb

        self._duckdb = duckdb
        self._deadline_s, self._memory_mib = deadline_s, memory_mib
        self._connection = _database(threads, memory_mib).cursor()
        self._columns = {name.lower() for table in relations.values() for name in table.column_names}
        for name, table in relations.items():
            self._connection.register(GIVEN + name, table)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def select(self, sql: str, what: str) -> str:
        """Check that a user's text is one SELECT, and return it in brackets for use in our statements."""
        try:
            with self._in_words(what):
                statements = self._connection.extract_statements(sql)
        except MistakeError as mistake:
            raise MistakeError(f"{mistake}{self._word_of_sql()}") from None
        if len(statements) != 1 or statements[0].type != self._duckdb.StatementType.SELECT:
            kinds = " and ".join(str(each.type.name) for each in statements) or "nothing"
            raise MistakeError(f"{what} is {kinds}; one SELECT is expected, which changes nothing.")
        return f"(\n{statements[0].query.strip().rstrip(';')}\n)"

    def reading(self, select: str, names: Iterable[str]) -> str:
        """Return the query with these relations in scope."""
        given = ", ".join(f"{name} AS NOT MATERIALIZED (FROM {GIVEN}{name})" for name in names)
        return f"(WITH {given} SELECT * FROM {select})"

    def _word_of_sql(self) -> str:
        """A column named like a SQL keyword is the usual reason for a syntax error."""
        found = self._connection.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
        ).fetchall()
        words = sorted(self._columns & {str(word) for (word,) in found})
        return f'. {words[0]!r} is a word of SQL: as a column it is written "{words[0]}"' if words else ""

    def types(self, select: str, what: str) -> dict[str, str]:
        """Return the columns of a query and their types in DuckDB's names."""
        with self._in_words(what):
            found = self._connection.execute(f"DESCRIBE {select}").fetchall()
        return {str(row[0]): str(row[1]).strip('"') for row in found}

    def do(self, statement: str, what: str) -> None:
        """Run one of our statements that returns nothing."""
        with self._in_words(what):
            self._connection.execute(statement)

    def rows(self, select: str, what: str) -> pa.Table:
        with self._in_words(what):
            return self._connection.sql(select).to_arrow_table()

    @contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        """Interrupts a query that takes too long, and turns errors into messages."""
        ended = threading.Event()
        timer = threading.Thread(target=self._interrupt_unless, args=(ended,), daemon=True)
        timer.start()
        try:
            yield
        except self._duckdb.InterruptException:
            raise MistakeError(
                f"{what} did not end within {self._deadline_s:g} s of CPU time; look for a join that pairs every row "
                "with every other."
            ) from None
        except self._duckdb.OutOfMemoryException:
            raise MistakeError(
                f"{what} needs more than the {self._memory_mib:,} MiB of memory that it may have; select fewer "
                "columns, or send fewer events."
            ) from None
        except self._duckdb.PermissionException:
            raise MistakeError(
                f"{what} reaches for a file or the network, which an oracle can't have; what it needs beside the "
                "events goes into a [tables.NAME] of the declaration."
            ) from None
        except self._duckdb.InvalidInputException as error:  # of `error(...)`, which our macros call too
            raise MistakeError(f"{what}: {_first(error).removeprefix('Invalid Input Error: ')}") from None
        except self._duckdb.Error as error:
            raise MistakeError(f"{what} can't be run by DuckDB: {_first(error)}") from None
        finally:
            ended.set()
            timer.join()  # the timer holds the connection, which must be gone before the interpreter exits

    def _interrupt_unless(self, ended: threading.Event) -> None:
        """Interrupt the query when this process has used its CPU time. A machine that is busy with other work makes no
        query wrong.
        """
        until_s = time.process_time() + self._deadline_s
        while (left_s := until_s - time.process_time()) > 0:
            if ended.wait(left_s):
                return
        self._connection.interrupt()


def _first(error: duckdb.Error | Any) -> str:
    """DuckDB's message without its excerpt of the query."""
    return shown(" ".join(str(error).split("\nLINE ")[0].split()), 400)
