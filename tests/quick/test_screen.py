"""What a person and a CI job read of a measured run: all figures, each with how it was measured, and it still fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness import plan
from harness.engines import fake
from harness.measurement import Cost, Latency, Measurement, Quantiles, Steady
from harness.model import Certificate, CheckResult, Outcome, Verdict, Witness
from reports import screen
from reports.exports import markdown
from reports.load import Result

PARTS = ("engine", "python workers", "kafka", "redis", "generator", "harness")
CHECKS = (
    "vacuity",
    "fault",
    "log",
    "oracle",
    "engine",
    "lost",
    "duplicated",
    "phantom",
    "readable",
    "late",
    "unaccounted",
    "masked",
    "non-monotonic",
    "early",
    "stale",
    "objective",
)


CHECKED = tuple(CheckResult(name, Outcome.PASS, "a sentence " * 30) for name in CHECKS)


def quantiles(p50=1234.5, p99=98_765.4, censored=0):
    return Quantiles(12_345_678, censored, None, p50, p50, p99, p99, p99)


def latency(way, **changes):
    return replace(Latency(way, quantiles(), quantiles(), "exact"), **changes)


MEASURED = Measurement(
    events=12_345_678,
    offered_per_s=1_234_567,
    processed_per_s=1_234_567,
    catch_up_per_s=9_876_543,
    load_s=600,
    ready_s=20,
    drain_s=1234.5,
    latency=(latency("probes"), latency("rank-matched", tail_is_lower_bound=True)),
    never_final_share=0,
    dipped_share=0,
    cost=tuple(Cost(part, 1234.5, 123.4, 12_345.6, 1234.56) for part in PARTS),
    checkpoint_bytes=1,
    gc_s=1.0,
    steady=Steady(
        False, 1234.0, 5678.0, "not steady from 1234 s to 5678 s of the load: " + "it grew and " * 30, {}, {}
    ),
    observer=None,
)


def result(measurement):
    spec, _ = plan.resolve("ad-impressions", {"engine": "fake"}, {}, lambda _: fake.MANIFEST)
    certificate = Certificate(True, (), 1, 12_345_678, 12_345_678, 12_345_678, {"p99.9": 12.3}, 100)
    verdict = Verdict(Outcome.PASS, "counted right " * 40, 0, CHECKED, {})
    return Result(Path("runs/somewhere"), spec, verdict, certificate, measurement, (), {})


def line(lines, head):
    (found,) = [each for each in lines if each.startswith(f"  {head} ")]
    return found


def test_the_longest_screen_fits():
    lines = screen.lines(result(MEASURED))

    assert len(lines) <= 23
    assert max(map(len, lines)) <= 79
    assert lines[-1] == "  runs/somewhere"


def test_every_figure_says_how_it_was_measured():
    lines = screen.lines(result(MEASURED))

    assert line(lines, "latency") == "  latency  p50 1,234 ms, p99 98,765 ms, by probes (12,345,678)"
    assert line(lines, "cost").startswith("  cost     2.47e+03 CPU-s of the engine per million events, kafka 1.23e+03")
    assert line(lines, "steady").startswith("  steady   no from 1234 s to 5678 s of the load: it grew")


def test_without_probes_all_events_are_matched_and_the_tail_says_what_it_is():
    lines = screen.lines(result(replace(MEASURED, latency=MEASURED.latency[1:])))

    assert "p99 98,765 ms, a lower bound, rank-matched" in line(lines, "latency")


def test_what_was_never_seen_is_said():
    unseen = latency("probes", corrected=quantiles(p99=None, censored=7))

    lines = screen.lines(result(replace(MEASURED, latency=(unseen,))))

    assert line(lines, "latency").endswith("p99 never, by probes (12,345,678), 7 never seen")


def test_a_run_that_is_steady_says_since_when():
    steady = Steady(True, 7.0, 60.0, "steady from 7 s to 60 s of the load", {}, {})

    assert line(screen.lines(result(replace(MEASURED, steady=steady))), "steady").endswith(
        "yes from 7 s to 60 s of the load"
    )


@pytest.mark.parametrize("render", [lambda r: "\n".join(screen.lines(r)), markdown.as_text])
def test_without_a_measurement_no_figure_of_speed_is_shown(render):
    void = Certificate(False, ("too slow",), 1, 1, 1, 1, {"p99.9": 1.0}, 100)

    shown = render(replace(result(None), certificate=void))

    assert "withheld: the load certificate is void" in shown
    assert "offered" not in shown
    assert "CPU-s" not in shown


def test_where_nobody_looked_the_latency_is_said_not_to_be_known():
    lines = screen.lines(result(replace(MEASURED, latency=())))

    assert line(lines, "latency") == "  latency  not known: nobody looked at the results while the run went on"


def test_the_last_lines_of_an_engine_come_in_their_order_and_the_run_after_them():
    said = tuple(Witness("engine", "goes on", "crashed", f"line {number}") for number in range(5))
    failed = CheckResult("engine", Outcome.FAIL, "it ended", "crashed", 1, "engine", said)
    shown = result(None)
    verdict = replace(shown.verdict, outcome=Outcome.FAIL, checks=(*CHECKED[:4], failed, *CHECKED[5:]))

    lines = screen.lines(replace(shown, verdict=verdict))

    assert lines[-6:] == ["      line 1", "      line 2", "      line 3", "      line 4", "", "  runs/somewhere"]


def test_markdown_has_a_row_for_each_figure():
    text = markdown.as_text(result(MEASURED))

    assert "| latency, rank-matched | p50 1,234 ms, p99 98,765 ms, max 98,765 ms (the tail is a lower bound) |" in text
    assert "| cost, kafka | 1,234.56 CPU-s per million events, at most 12,346 MiB |" in text
    assert "The run is not steady" in text
