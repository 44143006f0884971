"""Writes the table and the picture of docs/measure/locality.md from the measurement that is kept beside them.

./streamgauge bench --locality --json > docs/measure/locality/measured.json
python -m tools.locality.page
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.install.origin import ROOT
from reports.figures import hops
from reports.figures.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, RED, SKY, Picture, picture
from tools.locality import ways
from tools.locality.ways import Found, Row, Spread

PAGE = ROOT / "docs" / "measure" / "locality.md"
MEASURED = PAGE.with_suffix("") / "measured.json"
DRAWN = PAGE.with_suffix("") / "ratios.png"
BLOCK = re.compile(r"(?<=^```\n\$ \./streamgauge bench --locality\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
IN_JAVA, IN_ENGINES, CPU = "Bytes a second, in Java", "Bytes a second, in Flink and Spark", "CPU seconds per event"
BROWN, OLIVE = "#8c564b", "#7f7f00"  # ten ways need more colours than the page has
COLOURS = {
    "call": RED,
    "queue": BLUE,
    "ipc": GREEN,
    "kafka": PURPLE,
    "reused": ORANGE,
    "chained": SKY,
    "unchained": INK,
    "apart": MUTED,
    "stage": BROWN,
    "shuffle": OLIVE,
}
OF_PUBLISHED = dict(zip(ways.published_ratios(), (INK, MUTED), strict=True))


def measured() -> Found:
    return msgspec.convert(json.loads(MEASURED.read_text(encoding="utf-8"))["bench"], Found)


def drawing(found: Found) -> Picture:
    engines = (*ways.FLINK, *ways.SPARK)
    panels = [
        (IN_JAVA, [*_lines(found, ways.JAVA, _speed), *_published()]),
        (IN_ENGINES, [*_lines(found, engines, _speed)]),
        (CPU, [*_lines(found, (*ways.JAVA, *engines), _cost)]),
    ]
    alt = "bytes per second and CPU seconds of each way, as multiples of a loopback socket's, by the size of a record"
    return picture("locality", alt, lambda sheet: hops.draw([each for each in panels if each[1]], sheet))


def _lines(found: Found, group: tuple[ways.Way, ...], value: Callable[[Row], Spread]) -> Iterator[hops.Line]:
    for way in group:
        points = tuple(_point(row.record_bytes, value(row)) for row in found.rows if row.way == way.name)
        if points and way != ways.LOOPBACK:
            yield hops.Line(way.title, COLOURS[way.name], points)


def _speed(row: Row) -> Spread:
    return row.ratio


def _cost(row: Row) -> Spread:
    return row.cpu_ratio


def _point(size: int, value: Spread) -> hops.Point:
    return hops.Point(size, value.low, value.mid, value.high)


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
