"""A door with TLS before a server that has none: what comes in is decrypted and handed on."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from harness.services.addresses import LOOPBACK

CHUNK_BYTES = 65_536


@contextmanager
def tls_before(port: int, certificate: Path, authority: Path | None = None) -> Iterator[int]:
    """The port of the door. `certificate`: a PEM file with key and certificate. With an authority, the door asks
    clients for certificates of it too."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    if authority:
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_REQUIRED
    opened: Future[tuple[int, Callable[[], object]]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(port, context, opened)))
    thread.start()
    at, close = opened.result(10)
    yield at
    close()
    thread.join()


async def _serve(port: int, context: ssl.SSLContext, opened: Future[tuple[int, Callable[[], object]]]) -> None:
    """Until it is closed; then asyncio ends what is still relayed."""
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    door = await asyncio.start_server(partial(_relay, port), LOOPBACK, 0, ssl=context)
    at = door.sockets[0].getsockname()[1]
    opened.set_result((at, lambda: loop.call_soon_threadsafe(closed.set)))
    await closed.wait()
    door.close()


async def _relay(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    behind_reader, behind_writer = await asyncio.open_connection(LOOPBACK, port)
    await asyncio.gather(_pump(reader, behind_writer), _pump(behind_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Either side may end without a word."""
    with suppress(ConnectionError, ssl.SSLError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    writer.close()
    with suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()
