"""Count the bytes through the TCP sockets of processes, by Linux's counters for each socket (sock_diag of netlink).

These count bytes of the streams: a packet that was sent twice counts once.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
DONE, ERROR = 3, 2
TCP_INFO = 2  # INET_DIAG_INFO
STATES = 0xFFFFFFFF & ~(1 << 10 | 1 << 6)  # all but LISTEN and TIME_WAIT, which have no stream
HEADER, REQUEST, SOCKET, ATTRIBUTE = "=IHHII", "=BBBBI", "=4B48s5I", "=HH"
ACKED_AND_RECEIVED = "=QQ"
ACKED_AT = 120  # in the kernel's tcp_info, since Linux 4.1
ANSWER_S = 5.0


def by_port(pids: Iterable[int], port: int) -> dict[int, int]:
    """Return the bytes that each connection of these processes to this port received and sent, by socket inode."""
    own = {inode for pid in pids for inode in _inodes(pid)}
    if not own:
        return {}
    found = (each for family in (socket.AF_INET, socket.AF_INET6) for each in _dump(family, port))
    return {inode: octets for inode, octets in found if inode in own}


def _inodes(pid: int) -> Iterator[int]:
    with suppress(OSError):  # it has ended, or belongs to another user
        for link in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                kind, _, number = str(link.readlink()).partition(":[")
                if kind == "socket":
                    yield int(number.rstrip("]"))


def _dump(family: int, port: int) -> Iterator[tuple[int, int]]:
    wanted = struct.pack(REQUEST, family, socket.IPPROTO_TCP, 1 << TCP_INFO - 1, 0, STATES)
    wanted += struct.pack("!HH44x", 0, port)  # the kernel returns only this port's sockets
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_S)
        length = struct.calcsize(HEADER) + len(wanted)
        kernel.send(struct.pack(HEADER, length, SOCK_DIAG_BY_FAMILY, DUMP, 1, 0) + wanted)
        while True:
            for kind, content in _pieces(kernel.recv(1 << 18), HEADER):
                if kind == ERROR:
                    raise OSError(-struct.unpack_from("=i", content)[0], "netlink does not list sockets")
                if kind == DONE:
                    return
                yield _connection(content)


def _connection(content: bytes) -> tuple[int, int]:
    """Return the inode and the bytes of a socket."""
    inode = struct.unpack_from(SOCKET, content)[-1]
    for kind, value in _pieces(content[struct.calcsize(SOCKET) :], ATTRIBUTE):
        if kind == TCP_INFO and len(value) >= ACKED_AT + struct.calcsize(ACKED_AND_RECEIVED):
            acked, received = struct.unpack_from(ACKED_AND_RECEIVED, value, ACKED_AT)
            # The SYN is acknowledged as if it were a byte.
            return inode, max(0, acked - 1) + received
    return inode, 0


def _pieces(content: bytes, header: str) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and content of each piece. Each begins with its length and kind, at a multiple of four."""
    at, before = 0, struct.calcsize(header)
    while at + before <= len(content):
        length, kind = struct.unpack_from(header, content, at)[:2]
        yield kind, content[at + before : at + length]
        at += max(length + 3 & ~3, before)
