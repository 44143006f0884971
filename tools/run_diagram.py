"""Draw docs/pictures/run.svg from the text below: who sends, who reads and who judges in a run.

python -m tools.run_diagram

The colours are those of the reports, light and dark. The drawing has a ground of its own, so that it can be read on
every page. It is narrow, because a phone shows it at 360 pixels.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

from reports.figures.style import COLOURS

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "run.svg"
CSS = ROOT / "reports" / "templates" / "page.css.j2"
DARK = "@media screen and (prefers-color-scheme: dark)"

# A box of the run: its name and colour, what it does, what a fault does to it (!), what the judge gets from it (>), and
# what the next box does with its output (v).
RUN = """
Load blue
Locust sends events that a seed decides
> expected values, from the seed
v sends

Kafka muted
Keeps every event in its log
> the events that arrived, counted again
v reads

Your job orange
Reads, counts and writes: Spark, Flink, Kafka Streams, Python
! A fault strikes the job, Kafka or the results
> the progress that the job reports
v writes

Results muted
Redis, a Kafka topic or the output of a command
> the values a reader saw, every 50 ms
"""
CAPTIONS = ("The run", "The judge compares")
VERDICT = "Verdict: PASS, FAIL or UNKNOWN"
MEANING = "It names the wrong events, and gives speed and latency only for a run whose counts are right."

WIDTH, EDGE = 500, 12
LEFT, MIDDLE, RIGHT = 256, 40, 180  # widths of the boxes of the run, of the arrows, of the judge
GAP = 42  # between two boxes
TOP = 40  # of the first box
TITLE_PX, TEXT_PX, SMALL_PX = 17, 15, 14
PER_LINE, PER_LINE_OF_JUDGE, PER_LINE_OF_VERDICT = 26, 20, 52  # characters that the widest of the fonts has room for
HEAD = 7  # of an arrow


class Step(NamedTuple):
    """A box of the run."""

    name: str
    colour: str
    text: list[str]
    fault: list[str]
    verb: str
    evidence: list[str]

    @property
    def height(self) -> int:
        return 42 + 19 * len(self.text + self.fault)


def steps(text: str) -> list[Step]:
    return [_step(*block.splitlines()) for block in text.strip().split("\n\n")]


def _step(head: str, does: str, *rest: str) -> Step:
    name, _, colour = head.rpartition(" ")
    said = {line[0]: line[2:] for line in rest}
    wrapped = (textwrap.wrap(does, PER_LINE), textwrap.wrap(said.get("!", ""), PER_LINE))
    return Step(name, colour, *wrapped, said.get("v", ""), textwrap.wrap(said[">"], PER_LINE_OF_JUDGE))


def drawing() -> str:
    """Return the SVG."""
    run, y = steps(RUN), TOP
    shapes: list[str] = []
    right = EDGE + LEFT + MIDDLE
    for number, step in enumerate(run):
        shapes += [*_box(EDGE, y, LEFT, step.height, step.colour), *_lines_of(step, y)]
        middle = y + step.height // 2
        shapes += _arrow("green", (EDGE + LEFT + 2, middle), (right - 2, middle))
        shapes += _texts(step.evidence, right + 10, middle - 9 * len(step.evidence) + 14, 18, "small ink")
        y += step.height
        if number < len(run) - 1:
            x = EDGE + LEFT // 2
            shapes += _arrow("muted", (x, y + 2), (x, y + GAP - 2))
            shapes.append(_text(step.verb, x + 12, y + GAP // 2 + 5, "small quiet"))
            y += GAP
    judge = _box(right, TOP, RIGHT, y - TOP, "green")
    shapes = [*judge, *shapes, *_captions(right)]
    shapes += _arrow("green", (right + RIGHT // 2, y + 2), (right + RIGHT // 2, y + GAP - 2))
    y += GAP
    meaning = textwrap.wrap(MEANING, PER_LINE_OF_VERDICT)
    height = 42 + 19 * len(meaning)
    shapes += [*_box(EDGE, y, WIDTH - 2 * EDGE, height, "green"), _text(VERDICT, EDGE + 12, y + 26, "title ink")]
    shapes += _texts(meaning, EDGE + 12, y + 47, 19, "text ink")
    return "\n".join([*_head(run, y + height + EDGE), *shapes, "</svg>", ""])


def _lines_of(step: Step, y: int) -> Iterator[str]:
    yield _text(step.name, EDGE + 12, y + 26, "title ink")
    yield from _texts(step.text, EDGE + 12, y + 47, 19, "text ink")
    yield from _texts(step.fault, EDGE + 12, y + 47 + 19 * len(step.text), 19, "text fault")


def _captions(right: int) -> Iterator[str]:
    for caption, x in zip(CAPTIONS, (EDGE, right), strict=True):
        yield _text(caption, x, 28, "text quiet")


def _head(run: list[Step], height: int) -> Iterator[str]:
    light, dark = palettes(CSS.read_text(encoding="utf-8"))
    boxes = ((step.name, " ".join(step.text), " ".join(step.fault)) for step in run)
    told = " ".join(f"{name}: {does}.{f' {fault}.' if fault else ''}" for name, does, fault in boxes)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">'
    yield "<title>Who sends, who reads and who judges in a run</title>"
    yield f"<desc>{escape(told)} The judge compares what it gets from all four.</desc>"
    yield f"<style>{_style(light)} @media (prefers-color-scheme: dark) {{ {_colours(dark)} }}</style>"
    yield f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>'


def palettes(css: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the colours of the reports by name, light and dark."""
    light, _, rest = css.partition(DARK)
    dark = rest.partition("}")[0]
    named = {name.removeprefix("--"): colour for name, colour in COLOURS.items()}
    return {**named, **_named(light)}, {**named, **_named(dark)}


def _named(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", css))


def _style(palette: Mapping[str, str]) -> str:
    fonts = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
    sizes = f".text {{ font-size: {TEXT_PX}px }} .small {{ font-size: {SMALL_PX}px }}"
    title = f".title {{ font-size: {TITLE_PX}px; font-weight: 700 }}"
    return f"text {{ font-family: {fonts} }} {title} {sizes} {_colours(palette)}"


def _colours(palette: Mapping[str, str]) -> str:
    of_text = f".ink {{ fill: {palette['ink']} }} .quiet {{ fill: {palette['muted']} }}"
    grounds = f".ground {{ fill: {palette['ground']} }} .box {{ fill: {palette['raised']} }}"
    borders = " ".join(f".{each} {{ stroke: {palette[each]} }}" for each in ("blue", "muted", "orange", "green"))
    heads = " ".join(f".{each}-head {{ fill: {palette[each]} }}" for each in ("muted", "green"))
    return f"{of_text} .fault {{ fill: {palette['bad']} }} {grounds} {borders} {heads}"


def _box(x: int, y: int, width: int, height: int, colour: str) -> Iterator[str]:
    yield f'<rect class="box {colour}" x="{x}" y="{y}" width="{width}" height="{height}" rx="4" stroke-width="2"/>'


def _arrow(colour: str, start: tuple[int, int], end: tuple[int, int]) -> Iterator[str]:
    """Draw an arrow to the right or down."""
    (x, y), down = end, end[0] == start[0]
    stop = (x, y - HEAD) if down else (x - HEAD, y)
    sides = ((x - 5, y - HEAD), (x + 5, y - HEAD)) if down else ((x - HEAD, y - 5), (x - HEAD, y + 5))
    points = " ".join(f"{px},{py}" for px, py in (end, *sides))
    path = f"M{start[0]} {start[1]}L{stop[0]} {stop[1]}"
    yield f'<path class="{colour}" d="{path}" stroke-width="2"/>'
    yield f'<polygon class="{colour}-head" points="{points}"/>'


def _texts(lines: list[str], x: int, y: int, step: int, classes: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield _text(line, x, y + step * number, classes)


def _text(text: str, x: int, y: int, classes: str) -> str:
    return f'<text class="{classes}" x="{x}" y="{y}">{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
