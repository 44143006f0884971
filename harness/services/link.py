"""The connection between an engine and one service through our proxy (a child process), and commands to it."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.install.origin import ROOT
from harness.model import HarnessError
from harness.services.addresses import LOOPBACK
from harness.services.children import Child, spawn
from harness.services.proxy import Statistics, Toxic
from harness.util.wait import wait_until

NAMES = ("kafka", "redis")
READY_DEADLINE_S = 60.0
ORDER_DEADLINE_S = 30.0
STOP_DEADLINE_S = 5.0


class Link:
    """A connection through a proxy: `start`, then `address` for the engine, then `lead_to` the service; `stop` when the
    engine has ended."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.log = folder / f"proxy-{name}.log"
        self._child: Child | None = None
        self._port = self._control = 0

    @property
    def address(self) -> str:
        """Return host:port, for the engine only."""
        return f"{LOOPBACK}:{self._port}"

    def start(self) -> None:
        """Start the proxy and wait until it listens."""
        self.log.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "harness.services.proxy", self.name]
        self._child = spawn(argv, name=f"proxy-{self.name}", log=self.log, cwd=ROOT)
        ports = wait_until(
            self._told,
            deadline_s=READY_DEADLINE_S,
            what=f"the proxy before {self.name} to report its port",
            state=self._child.last_words,
        )
        self._port, self._control = int(ports["port"]), int(ports["control"])

    def lead_to(self, server: str) -> None:
        """Set the target of new connections, as host:port."""
        host, _, port = server.rpartition(":")
        self._order({"do": "lead", "host": host, "port": int(port)})

    def trouble(self, toxic: Toxic, sides: Sequence[str]) -> Statistics:
        """Apply this toxic to these directions of all connections, replacing any earlier one."""
        return self._order({"do": "trouble", "toxic": asdict(toxic), "sides": list(sides)})

    def clear(self) -> Statistics:
        """Remove the toxic; reset the connections that lost bytes."""
        return self._order({"do": "clear"})

    def reset(self) -> Statistics:
        """Reset all connections, once."""
        return self._order({"do": "reset"})

    def statistics(self) -> Statistics:
        return self._order({"do": "tell"})

    def check(self) -> None:
        """Raise if the proxy ended by itself, which is our fault and no engine's."""
        if self._child and not self._child.alive():
            raise HarnessError(
                f"The proxy between the engine and {self.name} ended by itself (exit {self._child.returncode()}). "
                f"{self._child.last_words()}"
            )

    def stop(self) -> None:
        if self._child:
            self._child.stop(STOP_DEADLINE_S)
        self._child = None

    def _told(self) -> dict[str, Any] | None:
        self.check()
        lines = self._child.tail(1) if self._child else []
        return json.loads(lines[0]) if lines and lines[0].endswith("}") else None

    def _order(self, order: dict[str, Any]) -> Statistics:
        self.check()
        try:
            with socket.create_connection((LOOPBACK, self._control), ORDER_DEADLINE_S) as control:
                control.sendall(json.dumps(order).encode() + b"\n")
                with control.makefile("rb") as answers:
                    return Statistics(**json.loads(answers.readline()))
        except (OSError, ValueError) as error:
            raise HarnessError(
                f"The proxy between the engine and {self.name} failed to execute the command {order['do']!r} "
                f"({type(error).__name__}: {error}). Its log is {self.log}."
            ) from error
