"""The live page's process: it serves one run or experiment to browsers on this machine.

    python -m reports.live.server PATH PORT [metrics]         see harness/services/live_page.py

It reads files below PATH and writes one, `live/url`. Without a reader it reads nothing. With `metrics` it writes
`live/metrics.prom` once a second, and exports the same by OpenTelemetry if its variables name a collector. SIGTERM ends
it: readers get the last frames, and a moment to fetch the report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from http import HTTPStatus
from pathlib import Path

from harness.model import UsageError
from harness.util.replace_file import replace_file
from harness.util.wait import ends_within
from harness.web.live_folder import FOLDER, URL_FILE
from harness.web.server import HTML, Answer, Query, Server
from reports.exports import openmetrics_text
from reports.exports.openmetrics_text import Family
from reports.live import assets, metrics, otel
from reports.live.feed import ExperimentFeed, frames_for
from reports.live.follow import is_own

METRICS_FILE = f"{FOLDER}/{metrics.FILE}"
METRICS = "metrics"  # the word that asks for them
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
        if name == "metrics":
            return Answer(self.metrics().encode(), openmetrics_text.CONTENT_TYPE)
        if name == "usage.json":
            return Answer(json.dumps({"pid": os.getpid(), "cpu_s": time.process_time()}).encode(), JSON)
        return self._report(name)

    def metrics(self) -> str:
        feed = self._feed.current()
        return feed.look(lambda state: metrics.of_run(state, feed.name))

    def catch_up(self) -> None:
        """Read the files of the run that goes on, however soon after the last time."""
        self._feed.current().poll()

    def families(self) -> list[Family]:
        """Return the families of the run that goes on, with its name on each sample."""
        feed = self._feed.current()
        return feed.look(lambda state: metrics.with_labels(metrics.families(state), metrics.common(state, feed.name)))

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
        return not ends_within(EVERY_S, self._ending)

    def _report(self, name: str) -> Answer | None:
        """Return the page of the watched run or experiment, or of one of its runs."""
        folder, _, file = name.rpartition("/")
        if file != REPORT or (folder and folder not in self._feed.runs()):
            return None
        path = self._feed.path / folder / file
        if not is_own(self._feed.path, path):
            return None
        with self._changed:
            self._fetched += 1
        return Answer(path.read_bytes(), HTML, HTTPStatus.OK, OF_A_REPORT)


class Written:
    """Writes the metrics once a second while the block lasts, and once more at its end, when the verdict is there."""

    def __init__(self, page: LivePage, path: Path) -> None:
        self._page, self._file = page, path / METRICS_FILE
        self._otel = otel.exporter(os.environ, page.families)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write_on, name="metrics", daemon=True)

    def __enter__(self) -> Written:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._otel:
            self._otel.end()

    def _write_on(self) -> None:
        while not ends_within(EVERY_S, self._over):
            self._write()
        self._page.catch_up()
        self._write()

    def _write(self) -> None:
        """A file that can't be written is left as it was: readers beside a run must not end it."""
        with suppress(OSError):
            replace_file(self._file, self._page.metrics().encode())
        if self._otel:
            self._otel.refresh()


def main(path: str, port: str, extra: str = "") -> int:
    page, ended = LivePage(Path(path)), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        server = Server(page.answers, int(port))
    except UsageError as error:
        print(error, flush=True)
        return 2
    file = Path(path) / FOLDER / URL_FILE
    with server:
        replace_file(file, server.url.encode())
        with Written(page, Path(path)) if extra == METRICS else nullcontext():
            ended.wait()
            page.end()
        file.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
