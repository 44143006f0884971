"""A TCP proxy between an engine and one service, which manipulates the traffic on command; a separate program.

    python -m harness.services.proxy redis|kafka|postgresql    one JSON line on its output has the ports it listens on

A Toxic describes the manipulation of one direction. It takes effect at once for all connections, also those that were
already open. Nothing is persisted: when the proxy dies, its connections drop and only the engine's route is gone.

A TCP connection never has a hole in its stream. So a connection that lost bytes is reset when the toxic is cleared, and
may not go on with half a message.

The control port takes one command per line, as JSON, and answers each with the Statistics.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.services.postgresql_wire import Commits
from harness.services.resp import Conversation, writes

LOOPBACK = "127.0.0.1"
SIDES = ("request", "reply")  # from the engine to the service, and back
CHUNK_BYTES = 65_536
CHUNKS_UNDERWAY = 64
PACE_S = 0.02  # a slow link is a steady trickle, not one burst per second
# A connection whose reply is to be lost must be without requests for this time: then its pipeline was complete.
QUIET_S = 0.2
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close sends RST


@dataclass(frozen=True)
class Toxic:
    """The manipulation of one direction of each connection. All zero means none."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0  # additional delay, uniform up to this; the order stays
    kbps: float = 0.0  # kilobits per second and connection
    slice_bytes: int = 0  # pieces of so many bytes ...
    gap_ms: float = 0.0  # ... with a pause after each
    swallow: bool = False  # drop all bytes silently
    cut_after_bytes: int = 0  # cut the connection after so many bytes
    lose_reply: bool = False  # writes are executed, their replies dropped and the connection reset
    times: int = 0  # cut or lose this often, over all connections, then stop

    def piece_bytes(self) -> int:
        """Return how many bytes may be sent at once."""
        limits = [self.slice_bytes, max(1, int(self.kbps * 125 * PACE_S)) if self.kbps else 0]
        return min((limit for limit in limits if limit), default=CHUNK_BYTES)

    def pause_s(self, sent_bytes: int) -> float:
        gap_s = self.gap_ms / 1000 if self.slice_bytes else 0.0
        return max(gap_s, sent_bytes / (self.kbps * 125) if self.kbps else 0.0)

    def least_ms(self, sent_bytes: int) -> float:
        """Return the least time that so many bytes take."""
        pieces = -(-sent_bytes // self.piece_bytes())
        return self.delay_ms + (pieces - 1) * self.pause_s(self.piece_bytes()) * 1000  # no pause after the last


@dataclass(frozen=True)
class Statistics:
    """Counts of the proxy's actions since its start."""

    connections: int = 0  # opened so far
    open: int = 0
    ending: int = 0  # of the open ones: struck, while the service still executes what had passed
    resets: int = 0  # sent by us
    struck: int = 0  # of those, cut or robbed of a reply
    troubled: bool = False  # a toxic is in force
    passed: Mapping[str, int] = field(default_factory=dict)  # bytes by side
    swallowed: Mapping[str, int] = field(default_factory=dict)
    # By name, commands of Redis whose reply was delivered, and commits that PostgreSQL confirmed.
    answered: Mapping[str, int] = field(default_factory=dict)
    unanswered: Mapping[str, int] = field(default_factory=dict)  # ... and was not delivered


class Proxy:
    """All connections of one link, and their toxics."""

    def __init__(self, link: str) -> None:
        self.protocol = link
        self.toxics = dict.fromkeys(SIDES, Toxic())
        self.setting = 0  # counts how often a toxic was set: each time restarts the byte count
        self.passed: Counter[str] = Counter()
        self.swallowed: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.unanswered: Counter[str] = Counter()
        self.dice = random.Random(link)
        self._target: tuple[str, int] | None = None
        self._tunnels: set[Tunnel] = set()
        self._made = self._resets = self._struck = self._left = 0

    def statistics(self) -> Statistics:
        return Statistics(
            connections=self._made,
            open=len(self._tunnels),
            ending=sum(tunnel.ending for tunnel in self._tunnels),
            resets=self._resets,
            struck=self._struck,
            troubled=any(toxic != Toxic() for toxic in self.toxics.values()),
            passed=dict(self.passed),
            swallowed=dict(self.swallowed),
            answered=dict(self.answered),
            unanswered=dict(self.unanswered),
        )

    def obey(self, order: Mapping[str, Any]) -> Statistics:
        """Execute one command of the control port."""
        match order["do"]:
            case "lead":
                self._target = str(order["host"]), int(order["port"])
            case "trouble":
                toxic = Toxic(**order["toxic"])
                self.toxics = {side: toxic if side in order["sides"] else Toxic() for side in SIDES}
                self.setting, self._left = self.setting + 1, toxic.times
            case "clear":
                self.toxics = dict.fromkeys(SIDES, Toxic())
                for tunnel in [each for each in self._tunnels if each.spoilt]:
                    self.reset(tunnel)
            case "reset":
                for tunnel in list(self._tunnels):
                    self.reset(tunnel)
            case "tell":
                pass
            case other:
                raise ValueError(f"{other!r} is not a command of the proxy")
        return self.statistics()

    def reset(self, tunnel: Tunnel) -> None:
        self._resets += 1
        tunnel.abort()

    def may_rob(self) -> bool:
        return self.toxics["reply"].lose_reply and self._left > sum(tunnel.robbed for tunnel in self._tunnels)

    def strike(self) -> None:
        """Use up one of the toxic's times. The caller resets the connection."""
        self._struck += 1
        self._resets += 1
        self._left -= 1
        if self._left <= 0:
            self.toxics = dict.fromkeys(SIDES, Toxic())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._made += 1
        try:
            if self._target is None:
                raise ConnectionRefusedError("the proxy has no target yet")
            ends = await asyncio.open_connection(*self._target)
        except OSError:
            _reset(writer)
            return
        tunnel = Tunnel(self, (reader, writer), ends)
        self._tunnels.add(tunnel)
        try:
            await asyncio.wait([asyncio.ensure_future(tunnel.run())])  # a reset cancels it, and must not cancel us
        finally:
            self._tunnels.discard(tunnel)


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Tunnel:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, engine: Ends, service: Ends) -> None:
        self._proxy = proxy
        self._engine, self._service = engine[1], service[1]
        self._pumps = (
            Pump(proxy, self, "request", engine[0], service[1]),
            Pump(proxy, self, "reply", service[0], engine[1]),
        )
        self._conversation = Conversation(proxy.answered, proxy.unanswered) if proxy.protocol == "redis" else None
        self._commits = Commits() if proxy.protocol == "postgresql" else None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.spoilt = False  # bytes are missing within the stream
        self.robbed = False  # it will be reset once its requests are executed
        self._cut = False

    @property
    def ending(self) -> bool:
        """Return whether the requests that passed are executed while no reply is delivered."""
        return self.robbed or self._cut

    async def run(self) -> None:
        self._task = asyncio.current_task()
        try:
            async with asyncio.TaskGroup() as group:
                for pump in self._pumps:
                    group.create_task(pump.take_in())
                    group.create_task(pump.give_out())
        except* OSError:
            self._reset_ends()
        finally:
            self._engine.close()
            self._service.close()
            if self._timer:
                self._timer.cancel()
            if self._conversation:
                self._conversation.end()

    def abort(self) -> None:
        """Reset both ends and drop the data in transit."""
        self._reset_ends()
        if self._task:
            self._task.cancel()

    def cut(self, side: str) -> None:
        """Stop this direction. Requests that have passed are executed: the service gets an end of stream, no reset."""
        self._proxy.strike()
        if side == "reply":
            self.abort()
            return
        self._cut = True
        self._service.write_eof()
        _reset(self._engine)

    def heard(self, side: str, data: bytes, *, delivered: bool = True) -> None:
        """Track requests and replies where the protocol is understood."""
        if self._conversation is None:
            return
        if side == "reply":
            self._conversation.answer(data, delivered=delivered)
        elif writes(self._conversation.ask(data)) and not self.ending and self._proxy.may_rob():
            self.robbed = True
        if self.robbed:
            self._look_again()

    def arrived(self, data: bytes) -> None:
        """Read the replies of PostgreSQL before they pass: the next one may be the one to drop."""
        for name in self._commits.feed(data) if self._commits else ():
            self.robbed |= not self.ending and self._proxy.may_rob()
            (self._proxy.unanswered if self.ending else self._proxy.answered)[name] += 1
        if self._commits and self.robbed:
            self._look_again()

    def _look_again(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(QUIET_S, self._end_robbery)

    def _end_robbery(self) -> None:
        """Abort if all requests have been executed by now; otherwise the next reply schedules this again."""
        if (said := self._conversation or self._commits) and said.quiet:
            self._proxy.strike()
            self.abort()

    def _reset_ends(self) -> None:
        _reset(self._engine)
        _reset(self._service)


class Pump:
    """One direction of one connection."""

    def __init__(
        self, proxy: Proxy, tunnel: Tunnel, side: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy, self._tunnel, self._side = proxy, tunnel, side
        self._reader, self._writer = reader, writer
        self._underway: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_UNDERWAY)
        self._setting, self._passed, self._cut = -1, 0, False
        writer.transport.set_write_buffer_limits(high=0)  # a drained writer has then really sent everything
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def _toxic(self) -> Toxic:
        return self._proxy.toxics[self._side]

    async def take_in(self) -> None:
        """Bytes are delayed from their arrival, so that a long route is not a narrow one."""
        clock = asyncio.get_running_loop()
        while True:
            data = await self._reader.read(CHUNK_BYTES)
            late_ms = self._toxic.delay_ms + self._proxy.dice.uniform(0, self._toxic.jitter_ms)
            await self._underway.put((clock.time() + late_ms / 1000, data))
            if not data:
                return

    async def give_out(self) -> None:
        clock = asyncio.get_running_loop()
        while True:
            due_s, data = await self._underway.get()
            await asyncio.sleep(max(0.0, due_s - clock.time()))
            if not data:
                break
            await self._pass(data)
        if not self._cut:
            self._writer.write_eof()

    async def _pass(self, data: bytes) -> None:
        """Read the toxic for each piece, so that a change takes effect at once."""
        if self._side == "reply":
            self._tunnel.arrived(data)
        while data and not self._cut:
            toxic = self._toxic
            if toxic.swallow or (self._side == "reply" and self._tunnel.ending):
                self._swallow(data, spoils=toxic.swallow)
                return
            left = self._left_before_the_cut(toxic)
            size = toxic.piece_bytes() if left is None else min(toxic.piece_bytes(), left)
            piece, data = data[:size], data[size:]
            await self._send(piece)
            if left == len(piece):
                self._cut = True
                self._tunnel.cut(self._side)
            elif pause_s := toxic.pause_s(len(piece)):
                await asyncio.sleep(pause_s)

    def _swallow(self, data: bytes, *, spoils: bool) -> None:
        self._proxy.swallowed[self._side] += len(data)
        self._tunnel.spoilt |= spoils
        if self._side == "reply":
            self._tunnel.heard("reply", data, delivered=False)

    async def _send(self, piece: bytes) -> None:
        self._passed += len(piece)
        self._proxy.passed[self._side] += len(piece)
        self._tunnel.heard(self._side, piece)
        self._writer.write(piece)
        await self._writer.drain()

    def _left_before_the_cut(self, toxic: Toxic) -> int | None:
        """None: no cut is due."""
        if self._setting != self._proxy.setting:
            self._setting, self._passed = self._proxy.setting, 0
        return max(1, toxic.cut_after_bytes - self._passed) if toxic.cut_after_bytes else None


def _reset(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def _main(link: str) -> None:
    proxy = Proxy(link)

    async def take_commands(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                writer.write(json.dumps(asdict(proxy.obey(json.loads(line)))).encode() + b"\n")
                await writer.drain()
        writer.close()

    road = await asyncio.start_server(proxy.serve, LOOPBACK, 0)
    control = await asyncio.start_server(take_commands, LOOPBACK, 0)
    ports = {"port": road.sockets[0].getsockname()[1], "control": control.sockets[0].getsockname()[1]}
    print(json.dumps(ports), flush=True)
    async with road, control:
        await road.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
