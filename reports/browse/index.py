"""The list of a served folder: one entry for each run, experiment, copied page and foreign folder below it.

An entry is read from the files of its folder. It is read again only if one of them has changed, so that a folder with
thousands of runs is listed quickly. A folder whose files can't be read is listed as what it is, and breaks nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.folder import FILE as EXPERIMENT
from harness.judging import verdict_file
from harness.measuring.cost import engine_s_per_million
from harness.measuring.measure import RECOVERY
from harness.measuring.measurement import Measurement, Recovery
from harness.measuring.objective import headline_p99_ms
from harness.model import HarnessError, Outcome, RunSpec, UsageError
from harness.rundir import markers
from harness.rundir.missing_evidence import MissingEvidence, unless_missing
from harness.rundir.store import HISTORY, OWNER, Store, made_ms
from harness.terminal.command_end import summary
from harness.util import local_time
from harness.util.texts import many, printable, shown
from reports import listing, saved
from reports.browse import in_progress
from reports.browse.places import Served
from reports.outage import outage_of

RUN, PAGE, OTHER = "run", "page", "other"
NOT_READ, FOREIGN = "not read", "not ours"
SPEC, MEASUREMENT = "spec.json", "measurement.json"
# An entry is made from these files, and they are looked at to see whether it is still true.
READ = (OWNER, EXPERIMENT, verdict_file.FILE, HISTORY, SPEC, MEASUREMENT, RECOVERY, saved.FILE)
LONGEST = 400  # characters of a sentence or of a foreign text
DEPTH = 4  # of the search for engines and scenarios in the settings of an experiment

Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class Figures:
    """The measured values of a run that a trend shows. None: not measured, or withheld."""

    p99_ms: float | None = None
    processed_per_s: float | None = None
    cpu_s_per_million: float | None = None


@dataclass(frozen=True)
class Entry:
    """One folder in the list."""

    place: str
    kind: str  # run, page, other, or the command that makes such an experiment
    state: str
    sentence: str = ""
    made_ms: int | None = None
    engines: tuple[str, ...] = ()
    sink: str = ""
    scenarios: tuple[str, ...] = ()
    fault: str = ""
    series: str = ""  # equal for runs that differ in their seed alone
    figures: Figures = Figures()
    text: str = ""  # further words by which it is found
    has_page: bool = False

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2]

    @property
    def is_experiment(self) -> bool:
        return self.kind not in (RUN, PAGE, OTHER)

    @property
    def made(self) -> str:
        """The reader's time."""
        return "" if self.made_ms is None else local_time.minute(self.made_ms)


class Index:
    """The entries of all served folders. Several readers may ask at once."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.read = 0  # how many folders were read so far, for tests of the cache
        self._known: dict[str, tuple[Signature, Entry]] = {}
        self._lock = threading.Lock()

    def entries(self, experiment: str = "") -> list[Entry]:
        """Return all entries, or those of the runs of an experiment; the newest first."""
        with self._lock:
            found = [entry for place in self._places(experiment) if (entry := self._entry(place))]
        return sorted(found, key=lambda entry: (entry.made_ms or 0, entry.name), reverse=True)

    def entry(self, place: str) -> Entry | None:
        """Return the entry of one place."""
        if place in self.served.roots or not self.served.path(place):
            return None
        with self._lock:
            return self._entry(place)

    def _places(self, experiment: str) -> Iterator[str]:
        if experiment:
            yield from self.served.below(f"{experiment}/runs")
            return
        for name in self.served.roots:
            root = self.served.path(name)
            inside = f"{name}/runs" if root and markers.is_one(root, EXPERIMENT) else name
            yield from self.served.below(inside)

    def _entry(self, place: str) -> Entry | None:
        """Return None for a folder that was removed meanwhile."""
        path = self.served.path(place)
        if path is None:
            return Entry(place, OTHER, NOT_READ, "it is gone, or leads out of the served folder")
        if not path.is_dir():
            return None
        if why := self.served.unreadable(place, path):
            return Entry(place, OTHER, NOT_READ, why)
        signature = _signature(path)
        known = self._known.get(place)
        if known and known[0] == signature:
            return known[1]
        self.read += 1
        entry = read(place, path)
        if entry.state != listing.RUNNING:  # its state changes without a file that changes: its process ends
            self._known[place] = (signature, entry)
        return entry


def read(place: str, path: Path) -> Entry:
    """Read the entry of a folder. Whatever lies in it, this returns one."""
    has_page = (path / saved.FILE).is_file()
    try:
        if markers.is_one(path, OWNER):
            entry = _run(place, Store(path))
        elif markers.is_one(path, EXPERIMENT):
            entry = _experiment(place, path)
        elif saved.is_copy(path):
            entry = Entry(place, PAGE, PAGE, "a page of streamgauge without the files it was made from")
        else:
            return Entry(place, OTHER, FOREIGN, _foreign(path))
    except Exception as error:  # noqa: BLE001 - a foreign or broken folder may hold anything
        known = isinstance(error, MissingEvidence | UsageError | HarnessError)
        sentence = str(error) if known else f"its files can't be read: {summary(error)}"
        entry = Entry(place, RUN, listing.TORN, sentence)
    return replace(entry, sentence=shown(printable(entry.sentence), LONGEST), made_ms=made_ms(path), has_page=has_page)


def _foreign(path: Path) -> str:
    return str(markers.refusal(path, *markers.CALLED)).removesuffix(f" {markers.ADVICE}").removesuffix(".")


def _run(place: str, store: Store) -> Entry:
    listed = listing.run_of(store)
    spec: RunSpec | None = unless_missing(lambda: store.read_as(SPEC, RunSpec))
    sentence = listed.sentence
    if listed.state == listing.RUNNING:
        sentence = in_progress.read(store, spec, now_ms()).sentence
    entry = Entry(place, RUN, listed.state, sentence)
    if spec is None:
        return entry
    return replace(
        entry,
        engines=(spec.engine,),
        sink=spec.sink,
        scenarios=(spec.title,),
        fault=spec.fault.text,
        series=series_of(spec),
        text=f"{spec.workload} {spec.disorder_name}",
        figures=_figures(store) if has_speed(listed) else Figures(),
    )


def has_speed(listed: listing.Listed) -> bool:
    """Check if figures of speed may be shown: not for wrong counts, but for right ones that are too slow."""
    return listed.state == Outcome.PASS or (listed.state == Outcome.FAIL and listed.sentence.startswith("slow: "))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def series_of(spec: RunSpec) -> str:
    """Describe a run without its seed: runs with the same description form a series over time."""
    tape = spec.tape
    peak_per_s = max((max(each.start_per_s, each.end_per_s) for each in tape.profile), default=0.0)
    words = [
        f"{spec.title} on {spec.engine}/{spec.sink}",
        f"{peak_per_s:,.0f}/s for {tape.load_ms / 1000:g} s",
        f"disorder {spec.disorder_name}",
        f"fault {spec.fault.text}",
    ]
    if spec.cores:
        words.append(f"cores {spec.cores}")
    return shown(printable(", ".join(words)), LONGEST)


def _figures(store: Store) -> Figures:
    """Read the figures of a run. Those that a fault caused are withheld, as they are in its report."""
    if not store.has(MEASUREMENT):
        return Figures()
    measured: Measurement | None = unless_missing(lambda: store.read_as(MEASUREMENT, Measurement | None))
    if measured is None:
        return Figures()
    recovery: tuple[Recovery, ...] = ()
    if store.has(RECOVERY):
        recovery = unless_missing(lambda: store.read_as(RECOVERY, tuple[Recovery, ...])) or ()
    covered = outage_of(recovery, measured.load_s).covers(0.99)
    return Figures(
        None if covered else headline_p99_ms(measured),
        measured.processed_per_s,
        None if measured.cost_withheld else engine_s_per_million(measured.cost),
    )


def _experiment(place: str, path: Path) -> Entry:
    listed = listing.experiment_of(path)
    head = msgspec.json.decode((path / EXPERIMENT).read_bytes())
    sentence = listed.sentence or (_done(head) if listed.state == listing.RUNNING else "")
    settings = {name: value for name, value in head.items() if name != "environment"}
    return Entry(
        place,
        listed.kind,
        listed.state,
        sentence,
        engines=tuple(sorted(set(_named(settings, ("engine", "engines", "baseline")))))[:20],
        scenarios=tuple(sorted(set(_named(settings, ("scenario",)))))[:20],
        text=shown(printable(str(head.get("asked", ""))), LONGEST),
    )


def _done(head: Mapping[str, Any]) -> str:
    """Describe how far an experiment with a list of cases is; "" for one without."""
    wanted, done = head.get("wanted"), head.get("done")
    if not isinstance(wanted, list) or not isinstance(done, list):
        return ""
    made = [each.get("case") for each in done if isinstance(each, Mapping)]  # a case may be made again
    return f"{sum(each in made for each in wanted)} of {many(len(wanted), 'case')} done"


def _named(value: Any, keys: tuple[str, ...], depth: int = DEPTH) -> Iterator[str]:
    """Yield the texts with these keys. Each kind of experiment stores its settings in another place."""
    if depth and isinstance(value, Mapping):
        for key, each in value.items():
            if key in keys:
                yield from (text for text in (each if isinstance(each, list) else [each]) if _is_name(text))
            else:
                yield from _named(each, keys, depth - 1)
    elif depth and isinstance(value, list):
        for each in value:
            yield from _named(each, keys, depth - 1)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) < 100


def _signature(path: Path) -> Signature:
    found = []
    for name in READ:
        with suppress(OSError):
            stat = (path / name).stat()
            found.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)
