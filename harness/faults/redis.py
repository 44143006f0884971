"""The redis family: harm to the server that holds the results. An external Redis is never harmed.

Proofs come from the server or its process: the run id that changed, a key of ours that is gone, a write of ours that
was refused. Our own lost data, the table of ads, is restored as its operator would do; results never are.
"""

from __future__ import annotations

import signal
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice

import psutil
import redis

from harness.faults.base import Context, Kind
from harness.faults.run_at_poll import Field, Moment
from harness.faults.strike import CannotStrikeError, Strike, length_ms, struck_by
from harness.model import FaultSpec, UsageError
from harness.services.redis import CLIENT_NAME, EmbeddedRedis
from harness.util.durations import seconds
from harness.util.texts import many
from harness.util.wait import wait_until

# These keys have our own prefix, which no check takes for results.
SCRATCH = "streamgauge:scratch"
EARLY, LATE = "streamgauge:canary:early", "streamgauge:canary:late"
ASIDE = "streamgauge:aside"

NEEDS = "an embedded Redis"
PROBE_S = 0.5  # reply timeout of a probe to a server that may never answer
END_DEADLINE_S = 20.0
# If this time passed while PEXPIRE runs, Redis would delete the key without counting it as expired.
SOON_MS = 50
LONGEST_PAUSE_MS = 600_000  # we end a pause ourselves; this limit is for a killed harness
OUT_OF_REACH = (redis.ConnectionError, redis.TimeoutError)
KEEPS = {"none": "", "rdb": "rdb", "aof": "aof"}


class RedisStrike(Strike):
    """The base class of the family."""

    colour = "tab:purple"

    def healed(self, now: Moment) -> str:
        """Return the proof that the server accepts writes again."""
        with server_of(now).client() as client, suppress(*OUT_OF_REACH):
            return "" if refusal(client) else "a test write is accepted again"
        return ""


def field_of(now: Moment) -> tuple[Field, EmbeddedRedis]:
    if now.field is None or now.field.redis is None:
        raise CannotStrikeError("this run has no embedded Redis")
    return now.field, now.field.redis


def server_of(now: Moment) -> EmbeddedRedis:
    return field_of(now)[1]


def answers(server: EmbeddedRedis) -> bool:
    with server.client(PROBE_S) as client, suppress(redis.RedisError):
        return bool(client.ping())
    return False


def refusal(client: redis.Redis) -> redis.ResponseError | None:
    """Return the server's error to a write of ours; None if it accepts it."""
    try:
        client.set(SCRATCH, "1")
    except redis.ResponseError as error:
        return error
    client.delete(SCRATCH)
    return None


class Down(RedisStrike):
    """The server ends, and is started again at the same port with the data it kept."""

    keeps = ""

    def __init__(self, hold_ms: float = 0.0) -> None:
        super().__init__(hold_ms)
        self._run_id = ""

    @abstractmethod
    def prepare(self, client: redis.Redis) -> str:
        """Prepare the end, and return a description."""

    @abstractmethod
    def is_ready(self, client: redis.Redis, now_ms: int) -> bool:
        """Return whether the server may be ended now."""

    @abstractmethod
    def end(self, server: EmbeddedRedis, client: redis.Redis) -> None: ...

    def inject(self, now: Moment) -> str:
        with server_of(now).client() as client:
            self._run_id = str(client.info("server")["run_id"])
            client.set(EARLY, self._run_id)
            return self.prepare(client)

    def landed(self, now: Moment) -> str:
        server = server_of(now)
        child = server.child
        if child.alive():
            with server.client() as client:
                if not self.is_ready(client, now.now_ms):
                    return ""
                client.set(LATE, self._run_id)
                self.end(server, client)
            wait_until(lambda: not child.alive(), deadline_s=END_DEADLINE_S, what=f"the end of process {child.pid}")
        if answers(server):
            return ""
        return f"process {child.pid} ended with exit code {child.returncode()}, and nothing answers at its port"

    def heal(self, now: Moment) -> None:
        field, server = field_of(now)
        if not server.child.alive():
            server.restart(self.keeps, None if self.keeps else field.put_back)

    def healed(self, now: Moment) -> str:
        with server_of(now).client() as client, suppress(*OUT_OF_REACH):
            return self._compared(client)
        return ""

    def _compared(self, client: redis.Redis) -> str:
        run_id = str(client.info("server")["run_id"])
        early, late = (client.get(key) == self._run_id for key in (EARLY, LATE))
        client.delete(EARLY, LATE)
        if run_id == self._run_id:
            return f"it was not restarted: its run_id is still {run_id[:8]}"
        back = f"its run_id changed from {self._run_id[:8]} to {run_id[:8]}"
        if not self.keeps:
            return f"{back}, and data from before is {'still there' if early or late else 'gone'}"
        first, last = ("there" if kept else "gone" for kept in (early, late))
        return f"{back}; data from before its save is {first}, data from its end is {last}"


class Kill(Down):
    """SIGKILL. Its persistence settings decide which data survives."""

    def __init__(self, hold_ms: float, keeps: str, age_s: float) -> None:
        super().__init__(hold_ms)
        self.keeps, self._age_ms = keeps, age_s * 1000
        self._saved_ms: int | None = None

    def prepare(self, client: redis.Redis) -> str:
        if self.keeps == "rdb":
            client.bgsave()
            return f"BGSAVE, then SIGKILL {self._age_ms / 1000:g} s after the snapshot"
        if self.keeps == "aof":
            client.config_set("appendfsync", "everysec")
            client.config_set("appendonly", "yes")
            return f"appendonly everysec, then SIGKILL {self._age_ms / 1000:g} s later"
        return "SIGKILL, with nothing kept on disk"

    def is_ready(self, client: redis.Redis, now_ms: int) -> bool:
        if not self.keeps:
            return True
        told = client.info("persistence")
        busy, status = {
            "rdb": ("rdb_bgsave_in_progress", "rdb_last_bgsave_status"),
            "aof": ("aof_rewrite_in_progress", "aof_last_bgrewrite_status"),
        }[self.keeps]
        if self._saved_ms is None and not told[busy] and told[status] == "ok":
            self._saved_ms = now_ms
        return self._saved_ms is not None and now_ms - self._saved_ms >= self._age_ms

    def end(self, server: EmbeddedRedis, client: redis.Redis) -> None:  # noqa: ARG002
        server.child.kill_group()


class RestartEmpty(Down):
    """An orderly end that saves nothing."""

    def prepare(self, client: redis.Redis) -> str:  # noqa: ARG002
        return "SHUTDOWN NOSAVE"

    def is_ready(self, client: redis.Redis, now_ms: int) -> bool:  # noqa: ARG002
        return True

    def end(self, server: EmbeddedRedis, client: redis.Redis) -> None:  # noqa: ARG002
        client.shutdown(nosave=True)


class Flush(RedisStrike):
    """FLUSHALL, with our own data restored in the same transaction: no engine sees Redis without it."""

    def __init__(self) -> None:
        super().__init__()
        self._before = self._after = -1

    def inject(self, now: Moment) -> str:
        field, server = field_of(now)
        with server.client() as client, client.pipeline(transaction=True) as pipe:
            pipe.dbsize()
            pipe.flushall()
            pipe.dbsize()
            field.put_back(pipe)
            self._before, _, self._after, *_ = pipe.execute()
        return "FLUSHALL"

    def landed(self, now: Moment) -> str:  # noqa: ARG002
        gone = self._before > 0 and self._after == 0
        return (
            f"of {many(self._before, 'key')} none was left; only the data that jobs read was restored" if gone else ""
        )

    # There is nothing to heal: results are not ours to restore.


class Evict(RedisStrike):
    """Sets a time to live on the results of some keys, as an operator does who uses Redis as a cache."""

    def __init__(self, keys: int) -> None:
        super().__init__()
        self._wanted = keys
        self._expired_before = 0
        self._lengths: dict[str, int] = {}

    def inject(self, now: Moment) -> str:
        with server_of(now).client() as client:
            self._expired_before = int(client.info("stats")["expired_keys"])
        return f"PEXPIRE {SOON_MS} on the results of {many(self._wanted, 'campaign')}"

    def landed(self, now: Moment) -> str:
        field, server = field_of(now)
        with server.client() as client:
            if not self._lengths:
                self._expire(client, field)
                return ""
            client.exists(*self._lengths)  # Redis checks the expiry of a key that is accessed
            expired = int(client.info("stats")["expired_keys"])
        if expired - self._expired_before < len(self._lengths):
            return ""
        counts = sum(self._lengths.values())
        return (
            f"{many(counts, 'count')} of {many(len(self._lengths), 'campaign')} are gone: expired_keys went from "
            f"{self._expired_before} to {expired}"
        )

    # There is nothing to heal: results are not ours to restore.

    def _expire(self, client: redis.Redis, field: Field) -> None:
        """Expire nothing until enough keys have results."""
        lengths = with_results(client, field)
        if len(lengths) >= self._wanted:
            self._lengths = dict(islice(lengths.items(), self._wanted))
            with client.pipeline(transaction=True) as pipe:
                for key in self._lengths:
                    pipe.pexpire(key, SOON_MS)
                pipe.execute()


class WrongType(RedisStrike):
    """The results of one key are moved away, and a string replaces the hash."""

    def __init__(self, hold_ms: float) -> None:
        super().__init__(hold_ms)
        self._key = ""

    def inject(self, now: Moment) -> str:
        server_of(now)
        return "RENAME of the results of one campaign, and SET of a string in their place"

    def landed(self, now: Moment) -> str:
        field, server = field_of(now)
        with server.client() as client:
            if not self._key and (lengths := with_results(client, field)):
                self._key = next(iter(lengths))
                with client.pipeline(transaction=True) as pipe:
                    pipe.rename(self._key, ASIDE)
                    pipe.set(self._key, "not a hash")
                    pipe.execute()
            if not self._key:
                return ""
            try:
                client.hlen(self._key)
            except redis.ResponseError as error:
                return f"key {self._key} returns: {error}"
        return ""

    def heal(self, now: Moment) -> None:
        with server_of(now).client() as client:
            if self._key and client.type(self._key) == "string":
                client.rename(ASIDE, self._key)
            client.delete(ASIDE)

    def healed(self, now: Moment) -> str:
        if not self._key:
            return "nothing was done"
        with server_of(now).client() as client:
            kind = client.type(self._key)
        return f"key {self._key} is a hash again" if kind == "hash" else ""


def with_results(client: redis.Redis, field: Field) -> dict[str, int]:
    """Return the number of results of each key that has any, in the order of the keys."""
    with client.pipeline(transaction=False) as pipe:
        for key in field.keys:
            pipe.hlen(key)
        return {name: length for name, length in zip(field.keys, pipe.execute(), strict=True) if length}


class Pause(RedisStrike):
    """CLIENT PAUSE WRITE: writes wait, reads are answered."""

    def inject(self, now: Moment) -> str:
        with server_of(now).client() as client:
            client.client_pause(LONGEST_PAUSE_MS, all=False)
        return "CLIENT PAUSE WRITE"

    def landed(self, now: Moment) -> str:
        server = server_of(now)
        with server.client(PROBE_S) as client, suppress(redis.TimeoutError):
            client.set(SCRATCH, "1")
            return ""
        if not answers(server):
            return ""
        return f"a test write was not answered within {PROBE_S:g} s, and PING was"

    def heal(self, now: Moment) -> None:
        with server_of(now).client() as client:
            client.client_unpause()


class Freeze(RedisStrike):
    """SIGSTOP: connections stay open, and nothing is answered."""

    def inject(self, now: Moment) -> str:
        child = server_of(now).child
        child.signal_group(signal.SIGSTOP)
        return f"SIGSTOP to process {child.pid}"

    def landed(self, now: Moment) -> str:
        server = server_of(now)
        state = psutil.Process(server.child.pid).status()
        if state != psutil.STATUS_STOPPED or answers(server):
            return ""
        return f"the process is {state}, and PING was not answered within {PROBE_S:g} s"

    def heal(self, now: Moment) -> None:
        server_of(now).child.signal_group(signal.SIGCONT)


class Refusing(RedisStrike):
    """Settings make the server refuse writes; it still answers reads."""

    def __init__(self, hold_ms: float) -> None:
        super().__init__(hold_ms)
        self._before: dict[str, str] = {}

    @abstractmethod
    def settings(self, client: redis.Redis) -> dict[str, str]: ...

    @abstractmethod
    def is_meant(self, error: redis.ResponseError) -> bool:
        """Return whether this refusal has the planned reason."""

    def inject(self, now: Moment) -> str:
        with server_of(now).client() as client:
            settings = self.settings(client)
            self._before = {name: str(client.config_get(name)[name]) for name in settings}
            for name, value in settings.items():
                client.config_set(name, value)
        return "CONFIG SET " + ", ".join(f"{name} {value}" for name, value in settings.items())

    def landed(self, now: Moment) -> str:
        with server_of(now).client() as client:
            error = refusal(client)
        return f"a test write was refused: {error}" if error and self.is_meant(error) else ""

    def heal(self, now: Moment) -> None:
        with server_of(now).client() as client:
            for name, value in self._before.items():
                client.config_set(name, value)


class Full(Refusing):
    """No memory is left, and nothing may be evicted."""

    def settings(self, client: redis.Redis) -> dict[str, str]:
        used = int(client.info("memory")["used_memory"])
        return {"maxmemory-policy": "noeviction", "maxmemory": str(used // 2)}

    def is_meant(self, error: redis.ResponseError) -> bool:
        return isinstance(error, redis.OutOfMemoryError)


class ReadOnly(Refusing):
    """The server requires a replica, which does not exist, before it accepts a write."""

    def settings(self, client: redis.Redis) -> dict[str, str]:  # noqa: ARG002
        return {"min-replicas-to-write": "1"}

    def is_meant(self, error: redis.ResponseError) -> bool:
        return "NOREPLICAS" in str(error)


class ClientKill(RedisStrike):
    """Every connection that is not the harness's is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._killed: set[str] = set()

    def inject(self, now: Moment) -> str:
        server_of(now)
        return "CLIENT KILL of every connection that is not ours"

    def landed(self, now: Moment) -> str:
        """Close all connections and check that they are gone. If the engine has none, wait for its next one."""
        with server_of(now).client() as client:
            if not self._killed:
                self._killed = {each["id"] for each in clients(client) if each["name"] != CLIENT_NAME}
                for number in self._killed:
                    client.client_kill_filter(_id=number)
            left = {each["id"] for each in clients(client)}
        if not self._killed or self._killed & left:
            return ""
        return f"connections {', '.join(sorted(self._killed, key=int))} are gone from CLIENT LIST"

    # There is nothing to heal: reconnecting is the engine's task.


def clients(client: redis.Redis) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = client.client_list()
    return listed


def keeps_of(persistence: str) -> str:
    if persistence not in KEEPS:
        raise UsageError(f"persistence = {persistence!r} of redis-kill is not one of {', '.join(KEEPS)}.")
    return KEEPS[persistence]


def missing(_: FaultSpec, context: Context) -> tuple[str, ...]:
    if context.spec.redis:
        return ("this run uses an existing Redis (--redis); a fault harms only an embedded one",)
    return ()


def kind(
    name: str,
    what: str,
    correct: str,
    strike: Callable[[FaultSpec], RedisStrike],
    options: Mapping[str, str] | None = None,
) -> Kind:
    make = struck_by(lambda spec, _: strike(spec), missing)
    return Kind(name, what, correct, make, NEEDS, options or {})


KINDS = (
    kind(
        "redis-kill",
        "SIGKILL to Redis, then a restart at the same port: empty, with a snapshot of some seconds ago, or with its "
        "append-only file",
        "detects the loss, and stops loudly or restores the results; counts that only Redis held are lost",
        lambda spec: Kill(length_ms(spec), keeps_of(spec.options["persistence"]), seconds(spec.options["age"], "age")),
        {"for": "3s", "persistence": "none", "age": "2s"},
    ),
    kind(
        "redis-restart-empty",
        "SHUTDOWN NOSAVE, then a restart at the same port: Redis comes back without results",
        "detects the loss, and restores the results or stops loudly; a count that it does not write again is lost",
        lambda spec: RestartEmpty(length_ms(spec)),
        {"for": "1s"},
    ),
    kind(
        "redis-flush",
        "FLUSHALL while the engine is connected; the data that jobs read is restored in the same transaction",
        "detects that its results are gone, and restores them or stops loudly",
        lambda _: Flush(),
    ),
    kind(
        "redis-pause",
        "CLIENT PAUSE WRITE: writes wait for their answer, reads are answered",
        "waits and catches up; no count changes",
        lambda spec: Pause(length_ms(spec)),
        {"for": "3s"},
    ),
    kind(
        "redis-freeze",
        "SIGSTOP to Redis: connections stay open, and nothing is answered",
        "waits and catches up; a timeout must not cause a second write",
        lambda spec: Freeze(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "redis-full",
        "maxmemory below what is used, and noeviction: each write is refused with OOM",
        "stops loudly or retries; commits nothing that it could not write",
        lambda spec: Full(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "redis-read-only",
        "min-replicas-to-write 1 without any replica: each write is refused, reads are answered",
        "stops loudly or retries; commits nothing that it could not write",
        lambda spec: ReadOnly(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "redis-client-kill",
        "CLIENT KILL of every connection of the engine",
        "reconnects; each interrupted write takes effect once",
        lambda _: ClientKill(),
    ),
    kind(
        "redis-wrong-type",
        "the results of one campaign are moved away and replaced by a string, so that one command of a larger write "
        "fails",
        "stops loudly; when it goes on, it does not repeat the commands that succeeded",
        lambda spec: WrongType(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "redis-evict",
        "a time to live of 1 ms on the results of some campaigns",
        "restores them from its own state, or reports that they are gone",
        lambda spec: Evict(int(spec.options["campaigns"])),
        {"campaigns": "5"},
    ),
)
