"""Writes the table and the picture of docs/measure/locality.md from the measurement that is kept beside them.

./streamgauge bench --locality --json > docs/measure/locality/measured.json
python -m tools.locality.page
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.install.origin import ROOT
from reports.figures import hops
from reports.figures.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, RED, SKY, Picture, picture
from tools.locality import ways
from tools.locality.ways import Found, Row

PAGE = ROOT / "docs" / "measure" / "locality.md"
MEASURED = PAGE.with_suffix("") / "measured.json"
DRAWN = PAGE.with_suffix("") / "ratios.png"
BLOCK = re.compile(r"(?<=^```\n\$ \./streamgauge bench --locality\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
PANELS = (("Between two operators of our own, in Java", ways.JAVA), ("In Flink and Spark", (*ways.FLINK, *ways.SPARK)))
COLOURS = {
    "call": RED,
    "queue": BLUE,
    "ipc": GREEN,
    "kafka": PURPLE,
    "reused": RED,
    "chained": ORANGE,
    "unchained": BLUE,
    "apart": GREEN,
    "stage": SKY,
    "shuffle": PURPLE,
}
OF_PUBLISHED = dict(zip(ways.published_ratios(), (INK, MUTED), strict=True))


def measured() -> Found:
    return msgspec.convert(json.loads(MEASURED.read_text(encoding="utf-8"))["bench"], Found)


def drawing(found: Found) -> Picture:
    panels = [(title, [*_lines(found, group)]) for title, group in PANELS]
    panels[0][1].extend(_published())
    alt = "the bytes per second of each way, as a multiple of a loopback socket's, by the size of a record"
    return picture("locality", alt, lambda sheet: hops.draw([each for each in panels if each[1]], sheet))


def _lines(found: Found, group: tuple[ways.Way, ...]) -> Iterator[hops.Line]:
    for way in group:
        points = tuple(_point(row) for row in found.rows if row.way == way.name)
        if points and way != ways.LOOPBACK:
            yield hops.Line(way.title, COLOURS[way.name], points)


def _point(row: Row) -> hops.Point:
    return hops.Point(row.record_bytes, row.ratio.low, row.ratio.mid, row.ratio.high)


def _published() -> Iterator[hops.Line]:
    for title, by_size in ways.published_ratios().items():
        points = tuple(hops.Point(size, value, value, value) for size, value in by_size.items())
        yield hops.Line(title, OF_PUBLISHED[title], points, published=True)


def current(text: str, found: Found) -> str:
    """Return the page with the table of this measurement."""
    table = "".join(f"{line}\n" for line in ways.lines(found))
    return BLOCK.sub(lambda _: table, text)


def main(page: Path = PAGE) -> None:
    found = measured()
    page.write_text(current(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    DRAWN.write_bytes(drawing(found).png)


if __name__ == "__main__":
    main()
