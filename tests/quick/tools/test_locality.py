"""What a hop costs: which turns are measured, what they are compared with, and which answers are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.cli.bench import bench
from harness.model import HarnessError, UsageError
from tools.locality import page, ways
from tools.locality.ways import FLINK, GROUPS, JAVA, LOOPBACK, PUBLISHED, SIZES, Answer, Found, Totals, Turn, Way

CALL, QUEUE = JAVA[0], JAVA[1]
SENT = Totals(1_000, 64_000, 499_500)


def sound(way: Way = CALL, sent: Totals = SENT, received: Totals = SENT, place: str = "") -> Answer:
    return Answer(sent, received, 0.5, place or way.place)


def test_what_arrived_as_it_was_sent_is_taken():
    assert ways.checked(CALL, 64, sound()) == sound()


@pytest.mark.parametrize(
    ("received", "what"),
    [
        (Totals(999, 63_936, 499_000), "a lost record"),
        (Totals(1_001, 64_064, 499_501), "a record twice"),
        (Totals(1_000, 63_999, 499_500), "a record that is cut"),
        (Totals(1_000, 64_000, 499_501), "one lost, and another one twice"),
    ],
)
def test_no_rate_is_given_if(received, what):
    with pytest.raises(HarnessError, match=r"function call, records of 64 bytes: what arrived .* No rate") as refused:
        ways.checked(CALL, 64, sound(received=received))

    assert f"{received.number_sum:,}" in str(refused.value), what


def test_nor_if_nothing_or_another_size_was_sent():
    for sent in (Totals(0, 0, 0), Totals(1_000, 65_000, 499_500)):
        with pytest.raises(HarnessError, match="should have sent some"):
            ways.checked(CALL, 64, sound(sent=sent, received=sent))


def test_operators_that_ran_elsewhere_have_measured_something_else():
    unchained = FLINK[2]

    with pytest.raises(HarnessError, match=r"Flink: unchained should take records over two threads, and .* one thread"):
        ways.checked(unchained, 64, sound(place=ways.ONE_THREAD))


class Steady:
    """Ways that take no time to start, 100 records a second, and half a CPU."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self._cpu_s = 0.0

    def measure(self, way, size, time_ms):
        self.asked.append((way.name, size, time_ms))
        self._cpu_s += 0.05
        totals = Totals(10, 10 * size, 45)
        return Answer(totals, totals, 0.1, way.place)

    def cpu_s(self, _way):
        return self._cpu_s


def test_ways_are_measured_in_turns_and_the_first_round_is_left_out():
    hops = Steady()

    found = [*ways.turns("Spark", [64, 128], 2, 300, hops)]

    names = [way.name for way in GROUPS["Spark"]]
    assert [name for name, size, _ in hops.asked if size == 64] == [*names[::-1], *names, *names[::-1]]
    assert {(name, ms) for name, _, ms in hops.asked} == {("loopback", 300), ("stage", 600), ("shuffle", 600)}
    assert len(found) == 2 * 2 * len(names)
    assert {turn.per_s for turn in found} == {100.0}
    assert {round(turn.cpu_s_per_million) for turn in found} == {5_000}


def test_a_ratio_is_to_the_socket_of_the_same_round_and_group():
    measured = [
        Turn("Java", LOOPBACK, 64, 1, 100.0, 10),
        Turn("Java", CALL, 64, 1, 1_000.0, 1),
        # In the second round the machine was half as fast.
        Turn("Java", LOOPBACK, 64, 2, 50.0, 20),
        Turn("Java", CALL, 64, 2, 500.0, 2),
        Turn("Flink", LOOPBACK, 64, 1, 10.0, 100),
        Turn("Flink", FLINK[0], 64, 1, 20.0, 50),
    ]

    call, loopback, flink = ways.rows(measured)

    assert (call.way, call.ratio.low, call.ratio.high) == ("call", 10.0, 10.0)
    assert (call.events_per_s.mid, call.bytes_per_s.mid) == (750.0, 48_000.0)
    assert (call.cpu_ratio.low, call.cpu_ratio.high) == pytest.approx((0.1, 0.1))
    assert (loopback.way, loopback.ratio.mid, loopback.events_per_s.low) == ("loopback", 1.0, 10.0)
    assert (flink.way, flink.ratio.mid) == ("reused", 2.0)


def test_the_published_ratios_are_those_of_the_talk():
    assert {len(values) for values in PUBLISHED.values()} == {len(SIZES)}

    ratios = ways.published_ratios()

    assert [round(ratios["Apex: same thread"][size], 1) for size in (64, 4096)] == [41.9, 15.2]
    assert [round(ratios["Apex: same container"][size], 1) for size in (64, 4096)] == [3.5, 14.6]


@pytest.fixture
def found() -> Found:
    rates = {CALL: 70e6, QUEUE: 5e6, LOOPBACK: 123.4, FLINK[3]: 0.1}
    groups = {CALL: "Java", QUEUE: "Java", LOOPBACK: "Java", FLINK[3]: "Java"}
    turns = [Turn(groups[way], way, size, 1, rate, 1e6 / rate) for way, rate in rates.items() for size in SIZES]
    return Found(1, 300, ways.rows(turns))


def test_the_tables_fit_a_terminal(found):
    shown = [*ways.lines(replace(found, missing=("Flink is not among them.",)))]

    assert max(map(len, shown)) < 80
    assert shown[-1] == "Flink is not among them."
    assert [line.split()[-7:] for line in shown if line.startswith("loopback socket")][2] == ["1"] * 7
    assert sum(line.startswith("Apex: same thread") for line in shown) == 2, "in bytes per second, and as a ratio"


def test_a_figure_that_is_not_there_is_not_drawn(found):
    drawn = page.drawing(found)

    assert "function call" in drawn.wide
    assert "Apex: same thread" in drawn.wide
    assert "Spark: shuffle" not in drawn.wide


def test_search_and_locality_are_different_measurements():
    with pytest.raises(UsageError, match="Give one of them"):
        bench(search=True, locality=True)


def test_the_page_shows_what_was_measured():
    """`python -m tools.locality.page` writes it."""
    text = page.PAGE.read_text(encoding="utf-8")

    assert page.current(text, page.measured()) == text
    assert "CPU-s per M events" in text
