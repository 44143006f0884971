"""A report page as values, and its rendering to one self-contained HTML file. It knows no run: any experiment may fill
one.

Nothing is fetched and no script is needed: styles and drawings are in the page, tooltips and foldings are HTML's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.model import Outcome
from harness.util.local_time import local
from harness.util.text_tables import without_empty
from reports.figures.style import VARIABLES, Picture

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Number:
    """One of the few figures at the top. An empty value was not measured, and the note gives the reason."""

    label: str
    value: str
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Link:
    """A text with a link to a file beside the page, or to an address. Without a target it is only a text."""

    text: str
    href: str


@dataclass(frozen=True)
class Table:
    """Rows of texts. A folded table shows only its caption until a reader opens it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | Link, ...], ...]
    caption: str = ""
    folded: bool = False

    @property
    def shown(self) -> Table:
        """The table without empty columns."""
        columns, rows = without_empty(self.columns, self.rows)
        return replace(self, columns=columns, rows=tuple(rows))


@dataclass(frozen=True)
class Section:
    """A heading with its content in this order: missing evidence, drawing, text, tables, code to copy."""

    id: str
    title: str
    missing: tuple[str, ...] = ()
    picture: Picture | None = None
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    code: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """A page: the verdict and the numbers first, then sections."""

    title: str
    subtitle: str
    outcome: Outcome
    sentence: str
    facts: tuple[str, ...]  # short sentences below the verdict
    numbers: tuple[Number, ...]
    withheld: str  # why there are no numbers; "" if there are
    sections: tuple[Section, ...]
    word: str = ""  # the answer, if it differs from the outcome
    why: Link | None = None  # the entry of the documents that explains the answer
    began_ms: int | None = None  # the begin of the run, by whose offset from UTC times without a date are shown

    @property
    def answer(self) -> str:
        return self.word or self.outcome.value

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """The id and the title of each section."""
        return tuple((section.id, section.title) for section in self.sections)

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return tuple(section.picture for section in self.sections if section.picture)


def render(page: Page) -> str:
    """Render the page as HTML. Equal values give equal bytes."""
    return filled("page.html.j2", page.began_ms, page=page)


def filled(template: str, began_ms: int | None = None, **values: object) -> str:
    """Fill a template. They share the colours of the drawings. A time without a date is of the day `began_ms`."""
    theme = {name.removeprefix("--"): colour for colour, name in VARIABLES.items()}
    return _environment(began_ms).get_template(template).render(theme=theme, **values)


@lru_cache
def _environment(began_ms: int | None) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["local"] = partial(local, at_ms=began_ms)
    environment.filters["drawing"] = Markup  # our own SVG, whose texts are escaped when it is drawn
    return environment
