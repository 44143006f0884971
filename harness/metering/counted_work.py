"""Counts work of an engine that does not depend on the load of the machine.

`allocated_bytes` comes from an agent in each JVM; see allocated_bytes.py. `redis_commands` counts commands that write,
and scripts with the commands that they call. Redis counts all clients together, but the harness only reads once the
tables of a workload are written. `kafka_bytes` went over the connections to the broker (socket_bytes.py); a poll
without records costs bytes too, so it grows a little with time. `checkpoint_bytes` were written to the files of the
engine's checkpoint; see written_files.py for those that are missed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from harness.metering import socket_bytes
from harness.metering.allocated_bytes import Agents
from harness.metering.written_files import WrittenFiles

SCRIPTS = frozenset({"eval", "evalsha", "fcall"})  # Redis has no flag for scripts that write


@dataclass(frozen=True)
class Totals:
    """Totals up to now. None: not measurable here."""

    allocated_bytes: int | None = None
    kafka_bytes: int | None = None
    redis_commands: int | None = None
    checkpoint_bytes: int | None = None


class CountedWork:
    """The totals of one engine over all its restarts. The difference of two reads is the work of a round.

    `redis` opens a connection to the engine's separate Redis, which is closed after each read; `kafka_port` is the
    broker's port as the engine reaches it; `checkpoint` returns the folder of its checkpoint, if it is on this
    machine.
    """

    def __init__(
        self,
        redis: Callable[[], redis.Redis] | None,
        kafka_port: int | None = None,
        checkpoint: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._redis, self._kafka_port, self._checkpoint = redis, kafka_port, checkpoint
        self._agents, self._files = Agents(), WrittenFiles()
        self._of_sockets: dict[int, int] = {}  # the last value of a closed socket is kept
        self._of_servers: dict[str, int] = {}  # and that of a server before its restart
        self._writes: frozenset[str] = SCRIPTS

    def close(self) -> None:
        """Release the agents' files. Call it once the engine has ended."""
        self._agents.close()

    @property
    def java_options(self) -> tuple[str, ...]:
        """Return the options to add to JAVA_TOOL_OPTIONS of every JVM of the engine."""
        return self._agents.options

    @property
    def reason(self) -> str:
        """Return why `allocated_bytes` was None."""
        return self._agents.reason

    def collect_garbage(self) -> None:
        """Collect the garbage of the engine's JVMs, if it has any."""
        self._agents.collect()

    def read(self, java_pids: Sequence[int], pids: Sequence[int]) -> Totals:
        """Read all totals: `java_pids` are the engine's JVMs, `pids` all its processes."""
        return Totals(
            self._agents.allocated_bytes(java_pids),
            self._kafka_bytes(pids),
            self._redis_commands(),
            self._files.total_bytes(self._checkpoint()),
        )

    def _kafka_bytes(self, pids: Iterable[int]) -> int | None:
        if self._kafka_port is None:
            return None
        try:
            self._of_sockets |= socket_bytes.by_port(pids, self._kafka_port)
        except (OSError, AttributeError):  # refused; AttributeError: no Linux
            return None
        return sum(self._of_sockets.values())

    def _redis_commands(self) -> int | None:
        if self._redis is None:
            return None
        try:
            with self._redis() as client:
                if self._writes == SCRIPTS:
                    self._writes |= writes(client.command())
                server, counts = client.info("server"), client.info("commandstats")
        except (redis.RedisError, OSError):  # not reachable, or it refuses the command
            return None
        self._of_servers[server["run_id"]] = calls(counts, self._writes)
        return sum(self._of_servers.values())


def writes(commands: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return the commands with the flag `write` in the reply of COMMAND."""
    return frozenset(name.lower() for name, told in commands.items() if "write" in told["flags"])


def calls(counts: Mapping[str, Mapping[str, Any]], names: Collection[str]) -> int:
    """Return the number of calls of these commands from INFO commandstats, which lists subcommands separately."""
    of = {told: told.removeprefix("cmdstat_").partition("|")[0].lower() for told in counts}
    return sum(int(counts[told]["calls"]) for told, name in of.items() if name in names)
