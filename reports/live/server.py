"""The live page's process: it serves one run or experiment to browsers on this machine.

    python -m reports.live.server PATH PORT         see harness/services/live_page.py

It reads files below PATH and writes one, `live/url`. Without a reader it reads nothing. SIGTERM ends it: readers get
the last frames, and a moment to fetch the report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from harness.model import UsageError
from harness.web.live_folder import FOLDER, URL_FILE
from harness.web.server import HTML, Answer, Query, Server
from reports.live import assets
from reports.live.feed import ExperimentFeed, frames_for

EVERY_S = 1.0
HEARTBEAT_S = 10.0
FAREWELL_S = 8.0
REPORT = "report.html"
EVENTS = "text/event-stream"
JSON = "application/json"
# A stored page has its styles and drawings in itself, and no script.
OF_A_REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class LivePage:
    """The answers of the live page."""

    def __init__(self, path: Path) -> None:
        self._feed = ExperimentFeed(path)
        self._ending = threading.Event()
        self._readers = self._fetched = 0  # now, and how often a report was fetched
        self._changed = threading.Lock()

    def answers(self, path: str, query: Query) -> Answer | None:
        name = path.lstrip("/")
        if not name:
            return Answer(assets.page(), HTML)
        if found := assets.of(name):
            return Answer(*found)
        if name == "events":
            return self._events(query.get("run", ""))
        if name == "usage.json":
            return Answer(json.dumps({"pid": os.getpid(), "cpu_s": time.process_time()}).encode(), JSON)
        return self._report(name)

    def end(self) -> None:
        """Send the last frames to the readers, and wait until each of them has the report, if there is one."""
        wanted = self._readers if (self._feed.path / REPORT).exists() else 0
        self._ending.set()
        until_s = time.monotonic() + FAREWELL_S
        while time.monotonic() < until_s and (self._readers or self._fetched < wanted):
            time.sleep(0.05)

    def _events(self, run: str) -> Answer | None:
        if run and run not in self._feed.runs():
            return None
        return Answer(self._stream(run), EVENTS)

    def _stream(self, run: str) -> Iterator[bytes]:
        beat_s = time.monotonic()
        with self._changed:
            self._readers += 1
        try:
            yield b"retry: 2000\n\n"
            for frame in frames_for(self._feed, run, self._goes_on):
                if frame or time.monotonic() - beat_s > HEARTBEAT_S:
                    beat_s = time.monotonic()
                    yield b"data: " + frame + b"\n\n" if frame else b": still here\n\n"
            yield b"event: end\ndata: {}\n\n"
        finally:
            with self._changed:
                self._readers -= 1

    def _goes_on(self) -> bool:
        return not self._ending.wait(EVERY_S)

    def _report(self, name: str) -> Answer | None:
        """Return the page of the watched run or experiment, or of one of its runs."""
        folder, _, file = name.rpartition("/")
        if file != REPORT or (folder and folder not in self._feed.runs()):
            return None
        path = self._feed.path / folder / file
        if path.is_symlink() or not path.is_file():
            return None
        with self._changed:
            self._fetched += 1
        return Answer(path.read_bytes(), HTML, HTTPStatus.OK, OF_A_REPORT)


def main(path: str, port: str) -> int:
    page, ended = LivePage(Path(path)), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        server = Server(page.answers, int(port))
    except UsageError as error:
        print(error, flush=True)
        return 2
    file = Path(path) / FOLDER / URL_FILE
    with server:
        part = file.with_suffix(".part")
        part.write_text(server.url, encoding="utf-8")
        part.replace(file)
        ended.wait()
        page.end()
        file.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
