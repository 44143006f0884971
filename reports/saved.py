"""A page as files: `report.html`, and its drawings and curves in `figures/`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.host import disk_space
from harness.model import UsageError
from harness.rundir import markers
from harness.util.suggest import is_file
from reports import files
from reports.page import Page, render

FILE = "report.html"
OURS = '<p class="name">streamgauge</p>'  # in the template of every page


def save(page: Page, curves: Mapping[str, str], folder: Path) -> None:
    """Write `report.html`, and in `figures/` each drawing as PNG and SVG and each curve as CSV. Older drawings and
    curves are removed. The end of the page lists all files of the folder.
    """
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    for old in (*figures.glob("*.png"), *figures.glob("*.svg"), *figures.glob("*.csv")):
        old.unlink()
    for picture in page.pictures:
        disk_space.write(figures / f"{picture.name}.png", picture.png)
        disk_space.write(figures / f"{picture.name}.svg", picture.svg)
    for name, text in curves.items():
        disk_space.write(figures / f"{name}.csv", text.encode())
    whole = replace(page, sections=(*page.sections, files.section(folder)))
    write(files.without_dead_links(render(whole), folder), folder)


def refuse_others(out: Path, file: str, what: str) -> None:
    """Refuse a folder of --out that holds anything else than an output with this file: drawings would be replaced."""
    if out.exists() and not (out.is_dir() and ((out / file).is_file() or not any(out.iterdir()))):
        raise UsageError(f"--out {out} contains other files than {what}. Name a new or empty folder.")


def begin(out: Path, file: str, content: Mapping[str, Any]) -> None:
    """Create the folder of --out with its first file, which marks it as an output."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out} can't be created: {error.strerror}. Name another folder.") from None
    disk_space.write(out / file, (json.dumps(content, indent=1) + "\n").encode())


def csv_of(rows: Iterable[Sequence[object]]) -> str:
    """Write the numbers of a curve; the first row has the names of the columns."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def write(html: str, folder: Path) -> None:
    part = folder / f".{FILE}.part"
    disk_space.write(part, html.encode())
    part.replace(folder / FILE)


def is_copy(folder: Path) -> bool:
    """Check if a folder holds a page of streamgauge without the files it was made from. The marker in the page is
    needed, because other programs write a `report.html`, too.
    """
    if any(is_file(folder / name) for name in markers.CALLED) or not is_file(folder / FILE):
        return False
    return OURS in (folder / FILE).read_text(encoding="utf-8", errors="replace")


def mend(folder: Path) -> None:
    write(files.without_dead_links((folder / FILE).read_text(encoding="utf-8"), folder), folder)
