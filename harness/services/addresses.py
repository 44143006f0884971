"""Addresses: free ports for what we start, and what an address says about where it leads."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on at this moment, all different. Somebody may take one before we do: callers retry."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def is_loopback(address: str) -> bool:
    """Whether a URL, or any server of a `host:port,host:port` list, can be reached from this machine only."""
    if "://" in address:
        parts = urlsplit(address)
        return parts.scheme == "unix" or _is_loopback_host(parts.hostname or "localhost")
    return any(_is_loopback_host(urlsplit(f"//{server.strip()}").hostname or "") for server in address.split(","))


def _is_loopback_host(host: str) -> bool:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return ip.is_loopback or ip.is_unspecified
