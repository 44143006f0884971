"""Starts the live page of a command: a process of its own, so that its cost is not that of the run.

A command asks for it once, before anything is started. The first run or experiment that begins afterwards gets the
page, and the runs inside of an experiment are shown on it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.install.origin import ROOT
from harness.model import HarnessError
from harness.services import children
from harness.services.children import Child
from harness.util.wait import wait_until
from harness.web.live_folder import FOLDER, URL_FILE
from harness.web.server import Server

PROGRAM, NAME = "reports.live.server", "live page"
LOG, METRICS = "server.log", "metrics"
START_DEADLINE_S = 20.0
STOP_DEADLINE_S = 10.0


class _Asked:
    """The page that this process was asked for."""

    port: int | None = None  # 0: any free one; None: there shall be no page
    metrics: bool = False  # it also writes metrics.prom
    child: Child | None = None
    watched: Path | None = None


@contextmanager
def asked(port: int, *, metrics: bool = False) -> Iterator[None]:
    """Within the block the first run or experiment gets a page at this port. A port that is taken is refused here."""
    Server(lambda _path, _query: None, port).close()
    _Asked.port, _Asked.metrics = port, metrics
    try:
        yield
    finally:
        _Asked.port, child, _Asked.child = None, _Asked.child, None
        if child:
            child.stop(STOP_DEADLINE_S)


def watch(path: Path) -> str:
    """Show this run or experiment on the page. Return the URL if the page begins with it, else ""."""
    if _Asked.port is None or _Asked.child:
        return ""
    folder = path / FOLDER
    folder.mkdir(exist_ok=True)
    argv = [
        sys.executable,
        "-m",
        PROGRAM,
        str(path.absolute()),
        str(_Asked.port),
        *([METRICS] if _Asked.metrics else []),
    ]
    child = children.spawn(argv, name=NAME, log=folder / LOG, cwd=ROOT)
    _Asked.child, _Asked.watched = child, path
    url = folder / URL_FILE

    def is_up() -> bool:
        if not child.alive():
            raise HarnessError(f"The live page ended before it was up. {child.last_words()}")
        return url.exists()

    wait_until(is_up, deadline_s=START_DEADLINE_S, what="the live page to be up", state=child.last_words, every_s=0.02)
    return url.read_text(encoding="utf-8")


def watched() -> Path | None:
    """Return the run or experiment that the last page has shown."""
    return _Asked.watched


def pids() -> list[int]:
    """Return the page's process, to which its cost belongs."""
    return [_Asked.child.pid] if _Asked.child and _Asked.child.alive() else []
