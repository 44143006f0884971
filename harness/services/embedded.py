"""Base class of a server that runs as our child: start, stop, address."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from harness.model import HarnessError
from harness.services.addresses import on_free_ports
from harness.services.children import Child

Address = TypeVar("Address")


class Embedded(ABC, Generic[Address]):
    """One server for one owner: `start`, then `address`, then `stop`."""

    name: ClassVar[str]
    ports: int  # number of ports it needs
    stop_deadline_s: float  # time to end in order before it is killed

    def __init__(self, log: Path) -> None:
        self.log = log
        self._child: Child | None = None
        self._address: Address | None = None

    @property
    def address(self) -> Address:
        if self._address is None:
            raise HarnessError(f"The embedded {self.name} has no address before it is started.")
        return self._address

    @property
    def child(self) -> Child:
        """Return the server's process, for cost metering and faults."""
        if self._child is None:
            raise HarnessError(f"The embedded {self.name} has no process before it is started.")
        return self._child

    def children(self) -> tuple[Child, ...]:
        """Return all of its processes; what they started is below them."""
        return (self._child,) if self._child else ()

    def pids(self) -> tuple[int, ...]:
        return tuple(child.pid for child in self.children())

    def start(self) -> Address:
        """Return when the server answers by its own protocol. Clean up after a failed start."""
        try:
            self._address = on_free_ports(self.ports, self._start_anew)
        except BaseException:
            self.stop()
            raise
        return self._address

    def stop(self) -> None:
        if self._child:
            self._child.stop(self.stop_deadline_s)
        self._child = self._address = None

    def _start_anew(self, ports: list[int]) -> Address:
        self.stop()
        self.log.unlink(missing_ok=True)  # the log must cover this start only
        return self._start_at(ports)

    @abstractmethod
    def _start_at(self, ports: list[int]) -> Address:
        """Start it as `_child`, and wait until it answers. Raise PortTaken for a retry on other ports."""
