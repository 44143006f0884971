"""Writes a run or an experiment as one file that replays it: live.html holds all that it needs, and fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.util.replace_file import replace_file
from reports.live import assets, cases
from reports.live.follow import LINES, Follower
from reports.live.state import Frame, RunState

FILE = "live.html"
LINES_OF = ("phase", "second")  # a frame ends with each of these
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'none'; "
    "base-uri 'none'; form-action 'none'"
)


def write(path: Path) -> Path | None:
    """Write the file into a run or an experiment; return None if a run has no lines to replay."""
    is_run = not (path / cases.FILE).exists()
    if is_run and not (path / LINES).exists():
        return None
    content = {"frames": list(frames(path))} if is_run else _experiment(path)
    replace_file(path / FILE, rendered(content).encode())
    return path / FILE


def write_all(path: Path) -> Path | None:
    """Write the file of a run, or those of an experiment and of each of its runs."""
    if (path / cases.FILE).exists():
        for run in cases.Runs(path).seen():
            write(path / run.path)
    return write(path)


def frames(run: Path) -> Iterator[Frame]:
    """Yield the frames of a stored run: about one for each second of it, and a last one with how it ended."""
    state, follower = RunState(), Follower(run)
    for entry in follower.plans():
        state.take(entry)
    for entry in follower.lines():
        state.take(entry)
        if entry.get("kind") in LINES_OF and (frame := state.frame()):
            yield frame
    for entry in follower.ends():
        state.take(entry)
    if frame := state.frame():
        yield frame


def _experiment(path: Path) -> dict[str, Any]:
    grid, newest = cases.Grid(path).read()
    shown = [{"run": newest, **frame} for frame in frames(path / newest)] if newest else []
    return {"frames": shown, "experiment": grid}


def rendered(content: dict[str, Any]) -> str:
    """Render the page with its styles, scripts and frames inside of it."""
    text = assets.page().decode()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    text = text.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}', 1)
    for name in ("uplot.css", "live.css"):
        text = _replaced(text, f'<link rel="stylesheet" href="{name}">', f"<style>{_file(name)}</style>")
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    charts = f"/*!\n{assets.licence()}*/\n{_file('uplot.js')}"
    inside = f'<script type="application/json" id="frames">{data}</script>\n<script>{charts}</script>'
    text = _replaced(text, '<script src="uplot.js"></script>', inside)
    return _replaced(text, '<script src="live.js"></script>', f"<script>{_file('live.js')}</script>")


def _replaced(text: str, old: str, new: str) -> str:
    before, found, after = text.partition(old)
    assert found, f"the page has no {old}"
    return before + new + after


def _file(name: str) -> str:
    found = assets.of(name)
    assert found
    return found[0].decode()
