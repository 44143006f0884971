"""A file of a run as an answer: its type, and what a browser may do with it.

A stored page may be old, foreign or edited. So it is shown in a sandbox: its styles and drawings work, and nothing in
it can call another host or read another page of this server. No script runs but those of this version's live page, by
which `live.html` replays a run: a foreign one could lead its reader elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness.web.server import HTML, Answer
from reports.live import export

INSIDE = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; "
)
STORED = INSIDE + "sandbox allow-downloads"
REPLAYED = INSIDE + "script-src {}; sandbox allow-downloads allow-scripts"
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
TEXT, BINARY = "text/plain; charset=utf-8", "application/octet-stream"
TYPES = {".html": HTML, ".svg": "image/svg+xml", ".png": "image/png"}
TEXTS = (
    ".csv",
    ".json",
    ".jsonl",
    ".log",
    ".md",
    ".out",
    ".prom",
    ".properties",
    ".toml",
    ".txt",
    ".xml",
    ".yaml",
)
LOGS = "logs"
AT_ONCE = 1 << 20  # bytes


def answer(path: Path) -> Answer:
    """Return a small file whole, and a large one in pieces. The path was checked to be a file in a served folder."""
    kind, policy = content_type(path), replayed() if path.name == export.FILE else STORED
    if path.stat().st_size <= AT_ONCE:
        return Answer(b"".join(pieces(path)), kind, policy=policy)
    return Answer(pieces(path), kind, policy=policy)


@cache
def replayed() -> str:
    """Return the policy of a page that replays a run, with the digest of each script that may run in it."""
    scripts = SCRIPT.findall(export.rendered({"frames": []}))
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    return REPLAYED.format(" ".join(f"'sha256-{digest}'" for digest in digests))


def content_type(path: Path) -> str:
    """Return the type by the suffix. All texts are plain, so that none is run or drawn."""
    suffix = path.suffix.lower()
    if suffix in TEXTS or (LOGS in path.parts and suffix not in TYPES):
        return TEXT
    return TYPES.get(suffix, BINARY)


def pieces(path: Path) -> Iterator[bytes]:
    """Yield what a file holds when it is opened: a log may grow faster than it is read. No link is followed here, and
    nothing waits for a writer of a pipe that took the file's place.
    """
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(opened, "rb") as file:
        left = os.fstat(opened).st_size
        while left > 0 and (piece := file.read(min(AT_ONCE, left))):
            left -= len(piece)
            yield piece
