"""The files of the live page, which its server serves and the stored page holds."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "page"
PAGE = "page.html"
FILES = {
    "live.css": "text/css; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "uplot.css": "text/css; charset=utf-8",
    "uplot.js": "text/javascript; charset=utf-8",
}


def page() -> bytes:
    return (FOLDER / PAGE).read_bytes()


def licence() -> str:
    """Return the licence of the chart library, which goes with each copy of it."""
    return (FOLDER / "uplot.LICENSE").read_text(encoding="utf-8")


def of(name: str) -> tuple[bytes, str] | None:
    """Return a file of the page with its type; None if there is none of this name."""
    return ((FOLDER / name).read_bytes(), FILES[name]) if name in FILES else None
