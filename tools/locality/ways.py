"""The ways that a record can take from one operator to the next, and what was measured of each. Pure.

The machine's speed changes from minute to minute, so each way is compared with the loopback socket of the same round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple, Protocol

import msgspec

from harness.model import HarnessError
from harness.util.texts import three_digits

SIZES = (64, 128, 256, 512, 1024, 2048, 4096)  # bytes of a record
TITLE, COLUMN = 23, 8  # characters of a table's first column, and of the others
LEAST, LONGEST = 0.001, 1_000_000  # of what a table shows; longer numbers have no commas


@dataclass(frozen=True)
class Way:
    """One way. Its program reports where both sides ran, because operators elsewhere would measure another way."""

    name: str
    title: str
    place: str
    share: float = 1.0  # of the usual time; what has to plan each query needs more


ONE_THREAD, TWO_THREADS, TWO_PROCESSES = "one thread", "two threads", "two processes"
LOOPBACK = Way("loopback", "loopback socket", TWO_PROCESSES)
KAFKA = Way("kafka", "Kafka", TWO_PROCESSES)
JAVA = (
    Way("call", "function call", ONE_THREAD),
    Way("queue", "queue in a process", TWO_THREADS),
    Way("ipc", "IPC (Unix socket)", TWO_PROCESSES),
    LOOPBACK,
    KAFKA,
)
FLINK = (
    Way("reused", "Flink: chained, reused", ONE_THREAD),
    Way("chained", "Flink: chained", ONE_THREAD),
    Way("unchained", "Flink: unchained", TWO_THREADS),
    Way("apart", "Flink: two TaskManagers", TWO_PROCESSES),
)
SPARK = (
    Way("stage", "Spark: no shuffle", "one stage", 2.0),
    Way("shuffle", "Spark: shuffle", "two stages", 2.0),
)
GROUPS = {"Java": JAVA, "Flink": (LOOPBACK, *FLINK), "Spark": (LOOPBACK, *SPARK)}  # measured in turns
WAYS = (*JAVA, *FLINK, *SPARK)

# Apache Apex, 2017: bytes per second by the bytes of a record. The loopback socket is its default.
PUBLISHED = {
    "Apex: same thread": (
        2_480_432_448,
        3_662_684_672,
        5_218_227_968,
        4_416_738_304,
        3_423_519_744,
        4_050_688_000,
        3_884_101_632,
    ),
    "Apex: same container": (
        204_748_032,
        395_023_360,
        671_409_664,
        1_255_749_632,
        2_022_868_992,
        3_508_013_056,
        3_732_725_760,
    ),
    "Apex: loopback": (
        59_176_512,
        89_803_904,
        137_019_648,
        156_255_744,
        167_139_328,
        182_349_824,
        255_229_952,
    ),
}


class Totals(NamedTuple):
    """The records that one side has seen: their number, their bytes, and the sum of the numbers in them."""

    records: int
    size_bytes: int
    number_sum: int


class Answer(msgspec.Struct, frozen=True):
    """The answer of a program about one hop."""

    sent: Totals
    received: Totals
    took_s: float
    place: str


class Hops(Protocol):
    """The programs that send and receive records."""

    def measure(self, way: Way, size: int, time_ms: int) -> Answer:
        """Send records of this size for so long."""

    def cpu_s(self, way: Way) -> float:
        """Return the CPU time so far of all processes that this way's records pass."""


class Turn(NamedTuple):
    """One measurement."""

    group: str
    way: Way
    size: int
    round: int
    per_s: float  # records
    cpu_s_per_million: float


@dataclass(frozen=True)
class Spread:
    """The median of several rounds, with the smallest and the largest."""

    low: float
    mid: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(min(values), median(values), max(values))

    @property
    def percent(self) -> float:
        """Return the width as a percentage of the median."""
        return 100 * (self.high - self.low) / self.mid


@dataclass(frozen=True)
class Row:
    """One way with records of one size."""

    way: str
    title: str
    record_bytes: int
    events_per_s: Spread
    bytes_per_s: Spread
    ratio: Spread  # of its bytes per second to those of the loopback socket in the same round
    cpu_s_per_million: Spread  # events
    cpu_ratio: Spread  # of that to the loopback socket's in the same round


@dataclass(frozen=True)
class Found:
    """The results."""

    rounds: int
    time_ms: int  # of a round's way
    rows: tuple[Row, ...]
    missing: tuple[str, ...] = ()  # what could not be measured, and why


def checked(way: Way, size: int, answer: Answer) -> Answer:
    """Refuse an answer whose records did not arrive, or took another way than they should."""
    sent, received = answer.sent, answer.received
    if not sent.records or sent.size_bytes != sent.records * size:
        raise HarnessError(f"{way.title}, records of {size} bytes: should have sent some, and sent {_told(sent)}.")
    if sent != received:
        raise HarnessError(
            f"{way.title}, records of {size} bytes: what arrived is not what was sent. Sent: {_told(sent)}. Received: "
            f"{_told(received)}. No rate is given for records that were lost or changed."
        )
    if answer.place != way.place:
        raise HarnessError(f"{way.title} should take records over {way.place}, and took them over {answer.place}.")
    return answer


def _told(totals: Totals) -> str:
    return f"{totals.records:,} records, {totals.size_bytes:,} bytes, sum of their numbers {totals.number_sum:,}"


def turns(group: str, sizes: Sequence[int], rounds: int, time_ms: int, hops: Hops) -> Iterator[Turn]:
    """Measure the ways of a group in turns. The first round warms up and is left out; the direction alternates."""
    for size in sizes:
        for number in range(rounds + 1):
            for way in GROUPS[group][:: 1 if number % 2 else -1]:
                begin_s = hops.cpu_s(way)
                answer = checked(way, size, hops.measure(way, size, round(time_ms * way.share)))
                used_s, records = hops.cpu_s(way) - begin_s, answer.received.records
                if number:
                    yield Turn(group, way, size, number, records / answer.took_s, used_s * 1e6 / records)


def rows(measured: Sequence[Turn]) -> tuple[Row, ...]:
    """Summarise all turns: a row for each way and size."""
    beside = {(turn.group, turn.size, turn.round): turn for turn in measured if turn.way == LOOPBACK}
    found: dict[tuple[Way, int], list[Turn]] = {}
    for turn in measured:
        found.setdefault((turn.way, turn.size), []).append(turn)
    ordered = sorted(found.items(), key=lambda each: (WAYS.index(each[0][0]), each[0][1]))
    return tuple(
        _row(way, size, [(turn, beside[turn.group, turn.size, turn.round]) for turn in of])
        for (way, size), of in ordered
    )


def _row(way: Way, size: int, pairs: Sequence[tuple[Turn, Turn]]) -> Row:
    """Summarise the turns of a way, each with that of the loopback socket in its round."""
    return Row(
        way.name,
        way.title,
        size,
        Spread.of([turn.per_s for turn, _ in pairs]),
        Spread.of([turn.per_s * size for turn, _ in pairs]),
        Spread.of([turn.per_s / beside.per_s for turn, beside in pairs]),
        Spread.of([turn.cpu_s_per_million for turn, _ in pairs]),
        Spread.of([turn.cpu_s_per_million / beside.cpu_s_per_million for turn, beside in pairs]),
    )


def published_ratios() -> dict[str, dict[int, float]]:
    """Return the ratios of the published table to its loopback socket."""
    loopback = PUBLISHED["Apex: loopback"]
    return {
        title: {size: value / base for size, value, base in zip(SIZES, values, loopback, strict=True)}
        for title, values in PUBLISHED.items()
        if values != loopback
    }


def lines(found: Found) -> Iterator[str]:
    """Yield the results as tables of at most 80 characters."""
    sizes = sorted({row.record_bytes for row in found.rows})
    published = {
        title: {size: value / 1e6 for size, value in zip(SIZES, values, strict=True)}
        for title, values in PUBLISHED.items()
    }
    yield from _table("MB/s", sizes, {**_by_title(found, lambda row: row.bytes_per_s.mid / 1e6), **published})
    yield ""
    yield from _table("thousand events/s", sizes, _by_title(found, lambda row: row.events_per_s.mid / 1e3))
    yield ""
    ratios = {**_by_title(found, lambda row: row.ratio.mid), **published_ratios()}
    yield from _table("x loopback socket", sizes, ratios)
    yield ""
    yield from _table("spread of ratio, %", sizes, _by_title(found, lambda row: row.ratio.percent))
    yield ""
    yield from _table("CPU-s per M events", sizes, _by_title(found, lambda row: row.cpu_s_per_million.mid))
    yield ""
    yield from _table("CPU, x loopback", sizes, _by_title(found, lambda row: row.cpu_ratio.mid))
    yield ""
    yield from _table("spread of ratio, %", sizes, _by_title(found, lambda row: row.cpu_ratio.percent))
    yield ""
    yield f"Columns: bytes of a record. Medians of {found.rounds} rounds of {found.time_ms} ms, of Spark twice that."
    yield "Spread: the largest ratio less the smallest, in percent of the median."
    yield from found.missing


def _by_title(found: Found, value: Callable[[Row], float]) -> dict[str, dict[int, float]]:
    by_title: dict[str, dict[int, float]] = {}
    for row in found.rows:
        by_title.setdefault(row.title, {})[row.record_bytes] = value(row)
    return by_title


def _table(name: str, sizes: Sequence[int], values: dict[str, dict[int, float]]) -> Iterator[str]:
    yield f"{name:<{TITLE}}{''.join(f'{size:>{COLUMN},}' for size in sizes)}"
    for title, by_size in values.items():
        yield f"{title:<{TITLE}}{''.join(f'{_short(by_size[size]):>{COLUMN}}' for size in sizes)}"


def _short(value: float) -> str:
    if 0 < value < LEAST:
        return f"<{LEAST}"
    return three_digits(value) if value < LONGEST else f"{value:.0f}"
