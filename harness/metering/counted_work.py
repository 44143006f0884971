"""Work that is counted: how busy the machine is does not change it.

`allocated_bytes` comes from an agent in each JVM (allocated_bytes.py says why). `redis_commands` are the commands that
write, and scripts with what they call: Redis counts all clients together, and what we send of our own only reads once
the tables of a workload are there. `kafka_bytes` went over the connections to the broker (socket_bytes.py); a poll that
brings nothing costs bytes too, so it grows a little with time. `checkpoint_bytes` were written to the files of the
engine's checkpoint (written_files.py says which of them are missed).
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

SCRIPTS = frozenset({"eval", "evalsha", "fcall"})  # Redis has no flag for what they do


@dataclass(frozen=True)
class Totals:
    """Up to now. None: nothing tells."""

    allocated_bytes: int | None = None
    kafka_bytes: int | None = None
    redis_commands: int | None = None
    checkpoint_bytes: int | None = None


class CountedWork:
    """Totals of one engine, over life and death of its processes. The difference of two looks is what a round took.

    `redis` makes a connection to a Redis of the engine's own, which is closed after each look; `kafka_port` is where
    the engine reaches the broker; `checkpoint` returns the folder of its checkpoint, if that is on this machine.
    """

    def __init__(
        self,
        redis: Callable[[], redis.Redis] | None,
        kafka_port: int | None = None,
        checkpoint: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._redis, self._kafka_port, self._checkpoint = redis, kafka_port, checkpoint
        self._agents, self._files = Agents(), WrittenFiles()
        self._of_sockets: dict[int, int] = {}  # a socket that is closed keeps what was seen of it
        self._of_servers: dict[str, int] = {}  # so does a server that was started again
        self._writes: frozenset[str] = SCRIPTS

    def close(self) -> None:
        """When the engine has ended."""
        self._agents.close()

    @property
    def java_options(self) -> tuple[str, ...]:
        """To be among the JAVA_TOOL_OPTIONS of every JVM of the engine."""
        return self._agents.options

    @property
    def reason(self) -> str:
        """Why `allocated_bytes` was None."""
        return self._agents.reason

    def read(self, java_pids: Sequence[int], pids: Sequence[int]) -> Totals:
        """The engine's JVMs, and all its processes."""
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
        except (redis.RedisError, OSError):  # away, or it does not let us ask
            return None
        self._of_servers[server["run_id"]] = calls(counts, self._writes)
        return sum(self._of_servers.values())


def writes(commands: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Those that COMMAND calls so."""
    return frozenset(name.lower() for name, told in commands.items() if "write" in told["flags"])


def calls(counts: Mapping[str, Mapping[str, Any]], names: Collection[str]) -> int:
    """How many calls there were of these commands; `counts` is what INFO commandstats tells, subcommands apart."""
    of = {told: told.removeprefix("cmdstat_").partition("|")[0].lower() for told in counts}
    return sum(int(counts[told]["calls"]) for told, name in of.items() if name in names)
