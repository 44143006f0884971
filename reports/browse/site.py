"""The page for each address. All that a page shows comes through `Served`, which leads nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from harness.experiments.gating import history
from harness.host.disk_space import size_in_words
from harness.model import HarnessError, RunSpec, UsageError
from harness.rundir.missing_evidence import MissingEvidence, unless_missing
from harness.rundir.store import HISTORY, Store
from harness.terminal.command_end import known
from harness.util import local_time
from harness.util.file_tree import files
from harness.util.texts import clock, printable, shown
from harness.web.server import Answer, Query
from reports import page, saved, trend_page
from reports.browse import filtering, in_progress, pages, series, side, stored_files
from reports.browse.index import FOREIGN, NOT_READ, RUN, SPEC, Entry, Index
from reports.browse.places import Served
from reports.files import KNOWN
from reports.listing import RUNNING
from reports.live import assets
from reports.live.server import LivePage
from reports.page import Link, Section, Table

LINES, LONGEST = 30, 200
FILES = 1000  # most that a page lists
K = TypeVar("K")
V = TypeVar("V")
KEPT = 20  # pages with drawings, and live pages
LIVE = ("", "events", *assets.FILES)
OTAVA = "otava"  # the section of a trend that explains files which `trend` writes, and `serve` does not
UNREADABLE = (MissingEvidence, UsageError, HarnessError)


class Site:
    """The pages of some folders."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self.served = Served(roots)
        self.index = Index(self.served)
        self._making = threading.Lock()  # one drawing at a time: matplotlib's settings are global
        self._routes: Mapping[str, Callable[[str, Query], Answer | None]] = {
            "": self._list,
            "in": self._experiment,
            "run": self._run,
            "live": self._live,
            "compare": self._compare,
            "trends": self._trends,
            "trend": self._trend,
            "gates": self._gates,
            "files": self._file,
        }
        self._drawn: dict[object, Answer] = {}
        self._watched: dict[str, LivePage] = {}

    def answers(self, path: str, query: Query) -> Answer | None:
        """Return the page of an address; None if there is none."""
        name, _, place = path.removeprefix("/").partition("/")
        route = self._routes.get(name) if path.startswith("/") else None
        try:
            return route(place, query) if route else None
        except UNREADABLE as error:
            return pages.problem(HTTPStatus.OK, f"This can't be shown: {error}")
        except Exception as error:  # noqa: BLE001 - one page that fails costs no other
            return pages.problem(HTTPStatus.INTERNAL_SERVER_ERROR, str(known(error)))

    # The list.

    def _list(self, place: str, query: Query) -> Answer | None:
        if place:
            return None
        entries = self.index.entries()
        folders = ", ".join(str(path) for path in self.served.roots.values())
        return self._listed(
            entries, query, title="Runs and experiments", subtitle=folders, action="/", what="runs and experiments"
        )

    def _experiment(self, place: str, query: Query) -> Answer | None:
        entry = self._entry(place)
        if entry is None or not entry.is_experiment:
            return None
        links = [Link("The report", pages.file_address(place, saved.FILE))] if entry.has_page else []
        if entry.state == RUNNING:
            links = [Link("Watch it live", pages.live(entry)), *links]
        return self._listed(
            self.index.entries(place),
            query,
            title=entry.name,
            subtitle=f"{entry.kind}, made {entry.made}" if entry.made else entry.kind,
            action=pages.about(entry),
            what="runs",
            text=[pages.stands(entry)],
            links=links,
        )

    def _listed(self, entries: list[Entry], query: Query, **of_the_page: Any) -> Answer:
        foreign, own = filtering.foreign(entries), [each for each in entries if each.state != FOREIGN]
        wanted = filtering.Wanted.of(query)
        found = filtering.matching(own, wanted)
        rows, number, count = filtering.page_of(found, query.get("page", ""))
        a = query.get("a", "")
        return pages.listed(
            found,
            rows,
            number,
            count,
            choices=filtering.choices(own),
            wanted=wanted,
            foreign=foreign,
            running=[each for each in own if each.state == RUNNING],
            a=a if (chosen := self._entry(a)) and chosen.kind == RUN else "",
            of=len(own),
            **of_the_page,
        )

    # One run.

    def _run(self, place: str, _: Query) -> Answer | None:
        entry, folder = self._entry(place), self.served.folder(place)
        if entry is None or folder is None or entry.is_experiment:
            return None
        store = Store(folder)
        return pages.run_page(entry, [*_settings(store), _history(store), _files(place, folder)])

    def _live(self, path: str, query: Query) -> Answer | None:
        """Return the live page of a run or an experiment, what it loads, or a file to which it links."""
        place, _, name = path.rpartition("/")
        if name not in LIVE:
            return self._file(path, query)
        entry, folder = self._entry(place), self.served.folder(place)
        if entry is None or folder is None or not (entry.kind == RUN or entry.is_experiment):
            return None
        with self._making:
            return _kept(self._watched, place, lambda: LivePage(folder)).answers(name, query)

    def _entry(self, place: str) -> Entry | None:
        entry = self.index.entry(place) if "/" in place else None
        return entry if entry and entry.state not in (FOREIGN, NOT_READ) else None

    # Two runs.

    def _compare(self, place: str, query: Query) -> Answer | None:
        if place:
            return None
        entries = [self._entry(query.get(name, "")) for name in ("a", "b")]
        folders = [self.served.folder(query.get(name, "")) for name in ("a", "b")]
        a, b = entries
        if a is None or b is None or folders[0] is None or folders[1] is None or a.kind != RUN or b.kind != RUN:
            return pages.problem(
                HTTPStatus.BAD_REQUEST, "Choose two runs that are here: in the list, mark one as A and one as B."
            )
        return pages.compared(side.read(a, Store(folders[0])), side.read(b, Store(folders[1])))

    # Trends.

    def _trends(self, place: str, _: Query) -> Answer | None:
        if place:
            return None
        return pages.trends(series.found(self.index.entries()), self._histories())

    def _histories(self) -> list[str]:
        """Return the histories of gates that lie directly in a served folder."""
        found = []
        for name in self.served.roots:
            root = self.served.path(name)
            for path in sorted(root.glob(history.PATTERN)) if root else ():
                place = f"{name}/{path.name}"
                if path.name != HISTORY and (real := self.served.path(place)) and _is_history(real):
                    found.append(place)
        return found

    def _trend(self, place: str, query: Query) -> Answer | None:
        if place:
            return None
        wanted = query.get("series", "")
        chosen = next((each for each in series.found(self.index.entries()) if each.name == wanted), None)
        return self._once(chosen, partial(pages.trend, chosen)) if chosen else None

    def _gates(self, place: str, query: Query) -> Answer | None:
        wanted = query.get("history", "")
        if place or wanted not in self._histories():
            return None
        path = self.served.path(wanted)
        if path is None:
            return None
        stat = path.stat()
        return self._once((wanted, stat.st_mtime_ns, stat.st_size), partial(_of_gates, path))

    def _once(self, key: object, draw: Callable[[], Answer]) -> Answer:
        """Draw a page once for equal values. One is drawn at a time."""
        with self._making:
            return _kept(self._drawn, key, draw)

    # A file.

    def _file(self, place: str, _: Query) -> Answer | None:
        found = self.served.file(place)
        try:
            return stored_files.answer(found) if found else None
        except OSError:  # it was removed meanwhile
            return None


def _kept(kept: dict[K, V], key: K, make: Callable[[], V]) -> V:
    """Return a value that is made once; of many, only the newest are kept."""
    if key not in kept:
        while len(kept) >= KEPT:
            del kept[next(iter(kept))]
        kept[key] = make()
    return kept[key]


def _is_history(path: Path) -> bool:
    try:
        return path.is_file() and bool(history.read(path).entries)
    except (UsageError, OSError):
        return False


def _of_gates(path: Path) -> Answer:
    found = trend_page.page_of(history.read(path))
    sections = tuple(section for section in found.sections if section.id != OTAVA)
    html = page.render(replace(found, sections=sections))
    return Answer(html.encode(errors="replace"), policy=pages.OWN)


# ---------------------------------------------------------------- The sections of a run's page


def _settings(store: Store) -> list[Section]:
    rows = tuple((name, shown(printable(value), LONGEST)) for name, value in side.plan_of(store).items())
    table = Table(("setting", "value"), rows, f"{len(rows)} settings", folded=True)
    readable = unless_missing(lambda: store.read_as(SPEC, RunSpec))
    text = () if readable else ("Its spec.json is missing or can't be read by this version.",)
    return [Section("settings", "Settings", text=text, tables=(table,))]


def _history(store: Store) -> Section:
    lines = in_progress.tail(store.path / HISTORY)[-LINES:]
    rows = tuple(
        (local_time.local(clock(each.at_ms), each.at_ms) if each.at_ms else "", each.kind, each.facts) for each in lines
    )
    text = () if rows else ("It has no history yet.",)
    table = Table(("time", "what", "facts"), rows)
    return Section("history", "The end of its history", text=text, tables=(table,))


def _files(place: str, folder: Path) -> Section:
    found = sorted((Path(each.path).relative_to(folder), each.size_bytes) for each in islice(files(folder), FILES))
    rows = tuple(
        (
            Link(printable(str(name)), pages.file_address(place, str(name))),
            size_in_words(size),
            KNOWN.get(str(name), ""),
        )
        for name, size in found
        if not any(part.startswith(".") for part in name.parts)
    )
    return Section("files", "Files", tables=(Table(("file", "size", "holds"), rows),))
