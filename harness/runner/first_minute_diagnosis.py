"""Explains results that hold no expected cell: the most likely reason, and the manifest lines that would fit.

Pure: its input is the results, the manifest and the expected cells. A job's first run mostly fails here: its keys, its
windows or its numbers are not those in its manifest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from harness.engines import template
from harness.engines.template import OPENS, Named
from harness.model import EngineManifest
from harness.results.redis_scan import ELSEWHERE, HASH, NO_RESULT, ORPHAN, OUR_KEYS, STRING, VANISHED, Row, matches
from harness.results.registry import SOURCES
from harness.util.integers import parse_int64
from harness.util.texts import many, shown

BESIDE = ("campaigns", "updated:*", "sums:*")  # keys beside the counts that are no counts
HOUR_MS = 3_600_000
MOST_HOURS = 14  # between a local clock and UTC

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
NUMBER = re.compile(r"(?<!\d)(?P<whole>\d{10,19})(?P<point>\.\d+)?(?!\d)")
DATE = re.compile(r"\d{4}-\d\d-\d\d([T _]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?")
# Number of digits of a current time -> its unit, and that unit in milliseconds.
UNITS = {
    10: ("seconds", Fraction(1000)),
    13: ("milliseconds", Fraction(1)),
    16: ("microseconds", Fraction(1, 1000)),
    19: ("nanoseconds", Fraction(1, 1_000_000)),
}


@dataclass(frozen=True)
class Wanted:
    """The results that a run expects, and facts for a diagnosis."""

    manifest: EngineManifest
    bookkeeping: Sequence[str]
    parts_of_key: Mapping[str, Mapping[str, str]]  # each key of the question, and its parts by name
    ads: Collection[str]
    windows: Collection[int]  # their starts in epoch milliseconds
    window_ms: int  # their length; 0 if they have no common length
    count: int  # events in each of these cells
    elsewhere: Mapping[int, int] = field(default_factory=dict)  # keys in other databases of the same Redis
    done: int = 0  # records, by the job's progress
    record: str = ""  # an event that it had to count, as in the log
    closed: bool = False  # later events have closed their windows
    partitions: int = 0  # of the topic
    number: str = OPENS  # the meaning of a cell's number; "" if it has none
    prefix: str = ""  # of all keys

    @cached_property
    def keys(self) -> Sequence[str]:
        return list(self.parts_of_key)

    @cached_property
    def parts(self) -> list[Mapping[str, str]]:
        return [each for each in self.parts_of_key.values() if each]

    @cached_property
    def named(self) -> Named:
        return Named(self.parts_of_key)


@dataclass(frozen=True)
class Diagnosis:
    """One sentence without its full stop, and lines for the manifest; both empty if there is no finding."""

    sentence: str = ""
    lines: tuple[str, ...] = ()
    sure: bool = False  # results exist that the manifest does not describe: waiting is useless


@dataclass(frozen=True)
class _Time:
    """The meaning of a number that names a window."""

    unit: str
    place: str  # "start" | "end" | a description

    @property
    def readable(self) -> bool:
        """Return whether a manifest can express it."""
        return self.unit == "milliseconds" and self.place in ("start", "end")


@dataclass(frozen=True)
class _Shape:
    """A row with {campaign} and {window} in their places, and the meaning of its window's name."""

    key: str
    field: str
    kind: str
    time: _Time | None
    could_be_count: bool  # judged by its value

    def misfit(self, wanted: Wanted) -> str:
        """Return why no template of a manifest fits it, or ""."""
        if self.kind not in (HASH, STRING):
            return f"it is a {self.kind}"
        return template.mistake(self.key, self.field) or template.misfit(
            self.key, self.field, wanted.keys, wanted.parts, wanted.number
        )


def explain(rows: Sequence[Row], wanted: Wanted) -> Diagnosis:
    """Return the reason that explains most rows."""
    ours = (OUR_KEYS, *BESIDE, *wanted.bookkeeping)
    found = [row for row in rows if not matches(row.key, ours)]
    if not found:
        return Diagnosis(_nothing(wanted))
    if any(row.kind == ELSEWHERE for row in found):
        return _of_our_own(next(row for row in found if row.kind == ELSEWHERE), wanted)
    cells = [row for row in found if row.kind == HASH and row.key in wanted.parts_of_key]
    return _of_cells(cells, found, wanted) if cells else _of_others(found, wanted)


def _of_our_own(row: Row, wanted: Wanted) -> Diagnosis:
    line = 'results = "redis:compact"'
    wrote = f"the job wrote a hash named by the campaign, {row.key!r} with fields such as {row.field!r}"
    return Diagnosis(
        f"{wrote}, but the manifest expects {_looked_for(wanted)}. Add this line to the manifest: {line}",
        (line,),
        sure=True,
    )


def _nothing(wanted: Wanted) -> str:
    store = SOURCES[wanted.manifest.source]
    if store.service != "redis":
        return f"{store.when_empty}; {_when_closed(wanted)}"
    if wanted.elsewhere:
        where = " and ".join(
            f"database {number} holds {many(keys, 'key')}" for number, keys in wanted.elsewhere.items()
        )
        return (
            f"the job wrote nothing to the Redis database in its config, but {where}. Connect to the complete "
            f"address under `redis` in the config, including the number at its end"
        )
    if wanted.prefix:
        return (
            f"the job wrote nothing to Redis below the prefix {wanted.prefix!r}. It must put `redis_prefix` of its "
            f"config before every key that it writes or reads. Or {_when_closed(wanted)}"
        )
    if wanted.done >= wanted.count:
        done = f"the job reports {many(wanted.done, 'record')} as done, but wrote nothing to Redis"
        return f"{done}: {_when_closed(wanted)}; or it does not parse them as events. The first one is {wanted.record}"
    return (
        "the job wrote nothing to Redis. Check that it reads all partitions of `topic` in its config from the "
        "beginning "
        '(a consumer group of its own that starts at the end needs group = "NAME"), and that it writes to the '
        f"address under `redis` there. Or {_when_closed(wanted)}"
    )


def _when_closed(wanted: Wanted) -> str:
    """Give advice for a job whose results come when a window closes."""
    if not wanted.closed:
        return "if it writes a result when its window closes, its sink needs final = true"
    return (
        f"if it writes results when windows close, its watermark is held back, because later events have closed the "
        f"window. The cause may be a source task without a partition (a parallelism above the {wanted.partitions} "
        f"partitions of the topic) or a lateness above `watermark_ms` in its config"
    )


def _of_cells(cells: Sequence[Row], found: Sequence[Row], wanted: Wanted) -> Diagnosis:
    """The keys are found: check windows and counts."""
    if yahoo := _yahoo(cells, found, wanted):
        return yahoo
    right = _Time("milliseconds", wanted.manifest.window_key)
    times = {row: _time(_written(row, wanted), wanted) for row in cells}
    if right not in times.values():
        row = max(cells, key=lambda row: times[row] is not None)
        return _wrong_window(_written(row, wanted), times[row], wanted)
    row = next(row for row in cells if times[row] == right)
    if wanted.manifest.source == "redis:yahoo" and row.value.startswith("no "):
        line = 'results = "redis:compact"'
        return Diagnosis(
            f"the fields of {row.key!r} refer to no hash with seen_count. If they are counts, the manifest needs "
            f"{line}",
            (line,),
        )
    if (count := parse_int64(row.value)) is None:
        return Diagnosis(
            f"the counts are not whole numbers: {shown(row.value)!r} was written for window {row.field!r} of campaign "
            f"{row.key!r}; write {_as_whole(row.value)}"
        )
    if 0 < count < wanted.count:
        return Diagnosis(
            f"the job counted {row.value} of {many(wanted.count, 'event')}, which are spread over all partitions, "
            f"one in each. It must read all partitions from the beginning"
        )
    return Diagnosis()


def _yahoo(cells: Sequence[Row], found: Sequence[Row], wanted: Wanted) -> Diagnosis | None:
    """Detect fields that lead to a hash with the count, as in the original benchmark."""
    led_to = {row.value for row in cells}
    if wanted.manifest.source == "redis:yahoo" or not any(r.key in led_to and r.field == "seen_count" for r in found):
        return None
    line = 'results = "redis:yahoo"'
    return Diagnosis(f"the job writes the schema of the original benchmark: the manifest needs {line}", (line,))


def _written(row: Row, wanted: Wanted) -> str:
    """Return the field as the job wrote it: an end was translated into a start."""
    start = parse_int64(row.field)
    return row.field if wanted.manifest.window_key == "start" or start is None else str(start + wanted.window_ms)


def _wrong_window(written: str, time: _Time | None, wanted: Wanted) -> Diagnosis:
    said = f"the job names a window {written!r}"
    if time == _Time("milliseconds", "end"):
        line = 'window_key = "end"'
        return Diagnosis(f"{said}, which is its end: the manifest needs {line}", (line,), sure=True)
    if time == _Time("milliseconds", "start"):
        return Diagnosis(f'{said}, which is its start: remove window_key = "end" from the manifest', sure=True)
    if time is None:
        looked_for = f"windows such as {min(wanted.windows)}, their start in epoch milliseconds, are expected"
        return Diagnosis(f"{said}, but no event of the load belongs to such a window; {looked_for}")
    return Diagnosis(f"{said}: {_told(time, wanted)}", sure=True)


def _told(time: _Time, wanted: Wanted) -> str:
    """Describe the meaning of a number, and the expected one."""
    place = {"start": "its start", "end": "its end"}.get(time.place, time.place)
    unit = f" in {time.unit}" if time.unit else ""
    return f"that is {place}{unit}, but its start in epoch milliseconds is expected, such as {min(wanted.windows)}"


def _of_others(found: Sequence[Row], wanted: Wanted) -> Diagnosis:
    """No row fits the pattern: describe the rows, and a pattern that would fit."""
    shapes = [_shape(row, wanted) for row in found]
    often = Counter(shapes)
    misfits = {shape: shape.misfit(wanted) for shape in often}
    best = max(
        often, key=lambda shape: (not misfits[shape], shape.time is not None, shape.could_be_count, often[shape])
    )
    row = found[shapes.index(best)]
    wrote = f"{_wrote(row, wanted)}, but the manifest expects {_looked_for(wanted)}"
    if misfits[best] or SOURCES[wanted.manifest.source].prints:
        is_record = wanted.manifest.source == "kafka" and row.kind == NO_RESULT
        names_window = best.time is not None and (best.kind == HASH or not wanted.closed)
        return Diagnosis(wrote + _why_not(best, row, wanted, misfits[best]), sure=is_record or names_window)
    # Any hash must hold results. Strings may be the job's own until windows close.
    is_sure = best.kind == HASH or not wanted.closed
    if best.time and not best.time.readable:
        return Diagnosis(f"{wrote}; besides, {_told(best.time, wanted)}", _lines(best), is_sure)
    return Diagnosis(wrote, _lines(best), is_sure)


def _wrote(row: Row, wanted: Wanted) -> str:
    source = wanted.manifest.source
    if prints := SOURCES[source].prints:
        if row.kind == HASH:
            return f"the results are named {row.key!r}, {row.field!r}, {row.value!r}"
        return f"{prints} {shown(row.value if source == 'kafka' else repr(row.value))}"
    inside = f" with fields such as {row.field!r}" if row.field else ""
    return f"the job wrote keys such as {row.key!r} ({_kind_of(row)}{inside})"


def _kind_of(row: Row) -> str:
    if row.kind == NO_RESULT:  # the reader of the results has described it
        return row.value
    others = {VANISHED: "a key that vanished while it was read", ORPHAN: "a hash that no campaign refers to"}
    return others.get(row.kind, f"a {row.kind}")


def _looked_for(wanted: Wanted) -> str:
    manifest = wanted.manifest
    if manifest.source == "kafka" and wanted.parts:
        return f"{SOURCES['kafka'].looks_for}, or with {_by_name(wanted)}"
    if manifest.source != "redis:template":
        return SOURCES[manifest.source].looks_for
    if manifest.field:
        return f'hashes by key = "{manifest.key}" with fields by field = "{manifest.field}"'
    return f'strings by key = "{manifest.key}"'


def _by_name(wanted: Wanted) -> str:
    texts = [f"`{name}`" for name in wanted.parts[0] if name != template.VALUE]
    names = template.numbers_of(wanted.number, has_length=bool(wanted.window_ms))
    windows = [" or ".join(f"`{name}`" for name in names)] if names else []
    values = [f"`{value}`" for value in dict.fromkeys(each[template.VALUE] for each in wanted.parts)]
    return ", ".join([*texts, *windows, *values])


def _why_not(shape: _Shape, row: Row, wanted: Wanted, misfit: str) -> str:
    """Explain a mistake that no manifest can fix."""
    text = f"{row.key} {row.field} {row.value}"
    ids = UUID.findall(text)
    if any(name in wanted.ads for name in ids):
        return "; that is the id of an ad. The Redis key of that name holds its campaign"
    if not SOURCES[wanted.manifest.source].prints and row.kind not in (HASH, STRING, NO_RESULT, VANISHED, ORPHAN):
        return f'; counts are not read from a {row.kind}, but a command can print them: results = "command"'
    if any(name.lower() in wanted.parts_of_key and name not in wanted.parts_of_key for name in ids):
        return "; the id of the campaign must be written in lower case, as in the event"
    if SOURCES[wanted.manifest.source].prints:
        return ""
    if wanted.parts:
        return (
            f"; as a pattern it is {_pattern(shape)}, and {misfit}"
            if template.names_of(shape.key + shape.field)
            else ""
        )
    return "" if "{campaign}" in shape.key + shape.field else "; it contains no id of a campaign"


def _pattern(shape: _Shape) -> str:
    return " and ".join(f'{name} = "{text}"' for name, text in (("key", shape.key), ("field", shape.field)) if text)


def _lines(shape: _Shape) -> tuple[str, ...]:
    lines = ['results = "redis:template"', f'key = "{shape.key}"']
    lines += [f'field = "{shape.field}"'] if shape.kind == HASH else []
    return (*lines, 'window_key = "end"') if shape.time and shape.time.place == "end" else tuple(lines)


def _shape(row: Row, wanted: Wanted) -> _Shape:
    times: list[_Time] = []

    used: set[str] = set()

    def named(text: str) -> str:
        text = UUID.sub("*", wanted.named.within(text, used))
        return DATE.sub(_noting(times, wanted), NUMBER.sub(_noting(times, wanted), text))

    key, inner = named(row.key), named(row.field)
    value_is_time = bool(NUMBER.fullmatch(row.value)) and _time(row.value, wanted) is not None
    could_be_count = not row.value or (parse_int64(row.value) is not None and not value_is_time)
    return _Shape(key, inner, row.kind, times[0] if times else None, could_be_count)


def _noting(times: list[_Time], wanted: Wanted) -> Callable[[re.Match[str]], str]:
    """Replace the name of a window by {window}, and note its meaning."""

    def put(found: re.Match[str]) -> str:
        if (time := _time(found[0], wanted)) is None:
            return found[0]
        times.append(time)
        return "{window}"

    return put


def _time(text: str, wanted: Wanted) -> _Time | None:
    """Return the meaning and unit of a text that names an expected window, or None."""
    if (number := NUMBER.fullmatch(text)) is None:
        return _Time("", "a date") if DATE.fullmatch(text) else None
    if len(number["whole"]) not in UNITS:
        return None
    unit, factor = UNITS[len(number["whole"])]
    place = _place(round(Fraction(text) * factor), wanted)
    return _Time(f"{unit} with a point" if number["point"] else unit, place) if place else None


def _place(time_ms: int, wanted: Wanted) -> str:
    """Return where a moment lies in an expected window, or ""."""
    length = wanted.window_ms
    ends: tuple[tuple[str, int], ...] = (("end", length), ("its last millisecond", length - 1)) if length else ()
    for name, offset in (("start", 0), *ends):
        if time_ms - offset in wanted.windows:
            return name
    if any(start < time_ms < start + length for start in wanted.windows):
        return (
            f"not a multiple of the window length of {length} ms (`window_ms` in its config), but a time within "
            f"the window"
        )
    for hours in range(-MOST_HOURS, MOST_HOURS + 1):
        if time_ms - hours * HOUR_MS in wanted.windows:
            return f"its start on a clock {hours:+d} h away from UTC"
    return ""


def _as_whole(value: str) -> str:
    try:
        return str(round(float(value))) if float(value) == round(float(value)) else "a whole number"
    except (ValueError, OverflowError):
        return "a whole number"
