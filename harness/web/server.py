"""A read-only HTTP server on loopback, for the pages of a live run and of stored runs.

It answers GET and HEAD, listens on 127.0.0.1, and refuses a request whose Host header names another host: otherwise a
page of a foreign site could read runs by a name that resolves to this machine. Each answer says by a content security
policy what a browser may load for it, so that nothing in a stored file can call another host.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from harness.model import UsageError

LOOPBACK = "127.0.0.1"
OWN_HOSTS = (LOOPBACK, "localhost")
OWN_FILES = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'"
)
HTML = "text/html; charset=utf-8"
READERS_AT_ONCE = 64
SILENT_READER_S = 30.0
POLL_S = 0.05  # how often the server looks whether it shall end


class Answer(NamedTuple):
    """An answer to a request. A body that is an iterator is sent in pieces, until it ends or the reader goes."""

    body: bytes | Iterator[bytes]
    content_type: str = HTML
    status: HTTPStatus = HTTPStatus.OK
    policy: str = OWN_FILES


Query = Mapping[str, str]
Answers = Callable[[str, Query], Answer | None]  # from path and query; None if there is no such page


class Server:
    """One server; `with Server(answers) as server` serves in threads until the block ends."""

    def __init__(self, answers: Answers, port: int = 0) -> None:
        """Listen on that port of loopback, or on a free one for 0."""
        try:
            self._http = _Http((LOOPBACK, port), answers)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise UsageError(
                f"Cannot listen on port {port} of {LOOPBACK}: {error.strerror}. Name another port, or none: then a "
                f"free port is taken."
            ) from None
        self._thread = threading.Thread(target=self._http.serve_forever, args=(POLL_S,), name="web", daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self.close()

    def close(self) -> None:
        """Give the port back. Within a `with` block this comes by itself."""
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a reader of events stays as long as it likes
    request_queue_size = READERS_AT_ONCE

    def __init__(self, address: tuple[str, int], answers: Answers) -> None:
        self.answers = answers
        self.places = threading.BoundedSemaphore(READERS_AT_ONCE)
        super().__init__(address, _Request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that goes in the middle of an answer is no error of ours."""


class _Request(BaseHTTPRequestHandler):
    server: _Http
    server_version = "streamgauge"
    sys_version = ""
    timeout = SILENT_READER_S

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Write no line for a request: the terminal belongs to the command."""

    def _answer(self, *, with_body: bool) -> None:
        if not self.server.places.acquire(blocking=False):
            self._send(_problem(HTTPStatus.SERVICE_UNAVAILABLE, f"{READERS_AT_ONCE} readers are here already."), True)
            return
        try:
            self._send(self._chosen(), with_body)
        finally:
            self.server.places.release()

    def _chosen(self) -> Answer:
        if not is_own(self.headers.get("Host", "")):
            return _problem(HTTPStatus.FORBIDDEN, f"This page is read at {LOOPBACK} or localhost, by no other name.")
        try:
            parts = urlsplit(self.path)
        except ValueError:  # such as a bracket without its other half
            return _problem(HTTPStatus.BAD_REQUEST, "This is no address of a page.")
        path = unquote(parts.path, errors="surrogateescape")  # a file's name is bytes, and need not be UTF-8
        answer = self.server.answers(path, dict(parse_qsl(parts.query, errors="surrogateescape")))
        return answer or _problem(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _send(self, answer: Answer, with_body: bool) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Security-Policy", answer.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if isinstance(answer.body, bytes):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if with_body:
            for piece in (answer.body,) if isinstance(answer.body, bytes) else answer.body:
                self.wfile.write(piece)


def is_own(host: str) -> bool:
    """Return whether a Host header names this machine's loopback, with any port."""
    return host.rpartition(":")[0] in OWN_HOSTS if ":" in host else host in OWN_HOSTS


def _problem(status: HTTPStatus, sentence: str) -> Answer:
    return Answer(f"{status.value} {status.phrase}\n{sentence}\n".encode(), "text/plain; charset=utf-8", status)
