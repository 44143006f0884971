"""Addresses: free ports for our servers, and checks of a given address."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TypeVar
from urllib.parse import urlsplit

from harness.model import HarnessError

LOOPBACK = "127.0.0.1"
EVERY_INTERFACE = ("0.0.0.0", "::")
ATTEMPTS = 3
LAST_PORT, PORT_DIGITS = 65_535, 5
CONNECT_TIMEOUT_S = 5.0

T = TypeVar("T")


class PortTaken(HarnessError):  # noqa: N818  (it reads as an event)
    """A server found its port in use."""


def on_free_ports(count: int, start: Callable[[list[int]], T]) -> T:
    """Call `start` with free ports; retry with others if another process took one before the server could."""
    for _ in range(ATTEMPTS - 1):
        try:
            return start(free_ports(count))
        except PortTaken:
            continue
    return start(free_ports(count))


def free_ports(count: int) -> list[int]:
    """Return distinct ports that are free at this moment."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def split(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT. Raise ValueError if it is none."""
    host, _, port = address.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= PORT_DIGITS else 0
    if not host or not 1 <= number <= LAST_PORT:
        raise ValueError(f"{address!r} is not HOST:PORT, with a port from 1 to {LAST_PORT}")
    return host.strip("[]"), number


def refuse_bind(address: str) -> None:
    """Raise if this machine can't listen at HOST:PORT."""
    try:
        with socket.create_server(split(address)):
            pass
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)  # its own text repeats the address
        raise HarnessError(
            f"bind = {address!r}: this machine can't listen there ({why}). Name the address of one "
            f"of its own network interfaces, with a free port."
        ) from error


def is_loopback(address: str) -> bool:
    """Return whether a URL, or any server of a `host:port,host:port` list, is reachable from this machine only."""
    if "://" in address:
        parts = urlsplit(address)
        return parts.scheme == "unix" or _is_loopback_host(parts.hostname or "localhost")
    return any(_is_loopback_host(urlsplit(f"//{server.strip()}").hostname or "") for server in address.split(","))


def listens_on_loopback(address: str) -> bool:
    """Return whether a server that listens at HOST:PORT is reachable from this machine only: at 0.0.0.0 all can reach
    it.
    """
    host, _ = split(address)
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return is_loopback(address)


def reached_at(address: str) -> str:
    """Return where other hosts reach a server that listens at HOST:PORT: at 0.0.0.0 by the name of this machine."""
    host, port = split(address)
    return f"{socket.gethostname()}:{port}" if host in EVERY_INTERFACE else address


def _is_loopback_host(host: str) -> bool:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return ip.is_loopback or ip.is_unspecified


def is_open(server: str) -> bool:
    """Return whether a server listens at host:port."""
    host, _, port = server.rpartition(":")
    with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S):
        return True
    return False
