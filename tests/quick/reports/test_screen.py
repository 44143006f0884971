"""What a person and a CI job read of a measured run: all figures, each with how it was measured, and it still fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config import plan
from harness.engines import fake
from harness.measuring.measurement import (
    Commit,
    Cost,
    Growth,
    GrowthStep,
    Lack,
    Latency,
    Measurement,
    Quantiles,
    Quantity,
    Recovery,
    Steady,
)
from harness.model import Backfill, Certificate, CheckResult, Outcome, Verdict, Witness
from harness.terminal import console
from reports import screen
from reports.exports import markdown
from reports.result import Result

COMMIT = Commit(1.0, 9, 50_000_000, 16_000_000, 7, None)
STEP = GrowthStep(9, 1, 50_000_000, 16_000_000, 7, None)
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


def result(measurement, recovery=()):
    spec, _ = plan.resolve("ad-impressions", {"engine": "fake"}, {}, lambda *_: fake.MANIFEST)
    certificate = Certificate(True, (), 1, 12_345_678, 12_345_678, 12_345_678, {"p99.9": 12.3}, 100)
    verdict = Verdict(Outcome.PASS, "counted right " * 40, 0, CHECKED, {})
    return Result(Path("runs/somewhere"), spec, verdict, certificate, measurement, recovery, {})


def line(lines, head):
    (found,) = [each for each in lines if each.startswith(f"  {head} ")]
    return found


LONG = " ".join(f"word{number}" for number in range(60))


def failed(*checks):
    """A run that is FAIL by these checks, and by no other."""
    shown, names = result(None), {check.name for check in checks}
    others = (CheckResult(name, Outcome.PASS, "as it shall be") for name in CHECKS if name not in names)
    verdict = replace(shown.verdict, outcome=Outcome.FAIL, sentence="it is wrong", checks=(*checks, *others))
    return replace(shown, verdict=verdict)


def wrong(name, *witnesses):
    return CheckResult(name, Outcome.FAIL, "it is wrong", name, 1, "engine", witnesses)


def words_of(lines):
    return " ".join(lines).split()


def test_a_state_that_was_looked_into_and_one_that_grew_have_a_line_each():
    looked = result(replace(MEASURED, growth=Growth((COMMIT,), (STEP,))))
    looked = replace(looked, spec=replace(looked.spec, states=2))
    right = CheckResult("state", Outcome.PASS, "9 cells in 2 states match the log")
    looked = replace(looked, verdict=replace(looked.verdict, checks=(*CHECKED, right)))

    assert line(screen.lines(looked), "state") == "  state    9 cells in 2 states match the log"
    assert line(screen.lines(looked), "growth") == (
        "  growth   9 cells, 50 MB with 16 MB of memory; a commit took 7 ms in the end"
    )


def test_the_ordinary_screen_fits_a_terminal_of_80_by_24():
    sentences = {
        "fault": "kill@c3:batch=3 landed in batch 3, which was replayed: SIGKILL to process group 22612 (exit code -9),"
        " and nothing of it is left; batch 3 stood at c3, planned and not committed, when it died; after the restart"
        " batch 3 was committed with the same plan",
        "late": "0 events dropped as late, at most 0 allowed",
    }
    checks = tuple(CheckResult(name, Outcome.PASS, sentences.get(name, "as it shall be")) for name in CHECKS)
    steady = Steady(False, None, 30.0, "not steady: after 15 s of warm-up only 15 s of load are left, and 20 s are"
                    " needed to tell", {}, {})  # fmt: skip
    passed = result(replace(MEASURED, steady=steady))
    verdict = replace(passed.verdict, sentence="100,923 events counted right in 1,334 cells", checks=checks)

    lines = screen.lines(replace(passed, verdict=verdict))

    assert len(lines) <= 23
    assert max(map(len, lines)) <= 79
    assert lines[-1] == "  runs/somewhere"


@pytest.mark.parametrize("check", ["fault", "late"])
def test_no_sentence_is_cut_however_long(check):
    """In a verdict, in a check that is shown though it is right, in why speed is withheld, in what is not steady."""
    shown = result(replace(MEASURED, steady=Steady(False, None, 1.0, f"not steady: {LONG} steady-end of it", {}, {})))
    checks = tuple(replace(each, sentence=f"{LONG} {check}-end") if each.name == check else each for each in CHECKED)
    verdict = replace(shown.verdict, sentence=f"{LONG} verdict-end", checks=checks)

    lines = screen.lines(replace(shown, verdict=verdict))

    assert {"verdict-end", f"{check}-end", "steady-end"} <= set(words_of(lines))
    assert " ..." not in "".join(lines)
    assert max(map(len, lines)) <= 79


def test_quiet_leaves_the_verdict_and_the_path_of_the_run():
    shown = screen.lines(failed(wrong("lost", Witness("cell 1", "1", "2", "+1"))))

    kept = console.verdict_only(shown)

    assert kept == [*shown[: shown.index("")], "  runs/somewhere"]
    assert kept[0] == "FAIL  it is wrong"
    assert len(kept) <= 3


def test_no_fact_of_a_witness_is_cut():
    place = "/var/lib/" + "very-long-folder/" * 8 + "impressions.db"
    cell = "campaign 50 (11d61a22), window 13:13:20 UTC (+0 s) of a topic with a long name"

    lines = screen.lines(failed(wrong("lost", Witness(cell, "1600", "1598", f"{LONG} there is no file {place}"))))

    assert f"{cell}: expected 1600, seen 1598" in " ".join(words_of(lines))
    assert any(place in line for line in lines), "a path is one piece, so that it can be copied"
    assert {f"word{number}" for number in range(60)} <= set(words_of(lines))


def test_a_certificate_that_is_void_says_all_its_reasons():
    void = Certificate(False, tuple(f"{LONG} reason{n}" for n in range(5)), 1, 1, 1, 1, {"p99.9": 1.0}, 100)

    shown = " ".join(screen.lines(replace(result(None), certificate=void)))

    assert all(f"reason{n}" in shown for n in range(5))


def test_of_many_witnesses_as_many_are_shown_as_there_is_room_for_and_the_others_are_counted():
    three = [Witness(f"cell {n}", "1", "2", f"+1; batch {n} touched it") for n in range(5)]
    every = [wrong(name, *three) for name in ("lost", "duplicated", "phantom", "masked")]

    one, many = (" ".join(screen.lines(failed(*checks))) for checks in (every[:1], every))

    assert "cell 2" in one
    assert "and 2 more such witnesses in verdict.json and report.html" in one
    assert many.count("cell 0: expected 1, seen 2") == 4, "of each check one is shown in any case"
    assert "and 4 more such witnesses" in many


def test_what_was_odd_about_an_engine_is_said_also_when_all_is_right():
    note = "it did not end within 30 s of SIGTERM and was killed"

    lines = screen.lines(replace(result(MEASURED), notes=(note, "1 line of progress.jsonl could not be read")))

    assert line(lines, "engine") == f"  engine   {note}; 1 line of"
    assert not [each for each in screen.lines(result(MEASURED)) if each.startswith("  engine ")]


def test_what_a_run_was_asked_for_beside_its_counts_is_shown_though_it_is_right():
    """States, a batch over the same input, or both."""
    beside = tuple(CheckResult(name, Outcome.PASS, f"{name} is right") for name in ("state", "backfill"))
    plain = result(MEASURED)
    shown = replace(plain, verdict=replace(plain.verdict, checks=(*CHECKED, *beside)))
    batch = Backfill("spark-batch", "", 1000, 1.0, 2.0)

    def told(states, backfill):
        asked = replace(shown, spec=replace(shown.spec, states=states), backfill=backfill)
        return [name for name in ("state", "backfill") if f"  {name:<9}{name} is right" in screen.lines(asked)]

    assert told(0, None) == []
    assert told(10, None) == ["state"]
    assert told(0, batch) == ["backfill"]
    assert told(10, batch) == ["state", "backfill"]


def test_every_figure_says_how_it_was_measured():
    lines = screen.lines(result(MEASURED))

    assert line(lines, "latency") == "  latency  p50 1,234 ms, p99 98,765 ms, by probes (12,345,678)"
    assert line(lines, "cost") == "  cost     2,469 CPU-s of the engine per million events at 1,234,567/s, kafka"
    assert line(lines, "steady").startswith("  steady   no from 1234 s to 5678 s of the load: it grew")


def test_a_cost_that_was_not_seen_is_withheld_with_the_reason():
    lines = screen.lines(result(replace(MEASURED, cost=(), cost_withheld="only the driver was seen")))

    assert line(lines, "cost") == "  cost     withheld: only the driver was seen"


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


def killed(struck_s, output_s, caught_up):
    return Recovery(
        "kill@batch=3", struck_s, struck_s + 0.1, 600.0, {"first_output_s": Quantity(output_s), **caught_up}
    )


def test_no_latency_is_printed_whose_median_is_the_fault():
    lines = screen.lines(result(replace(MEASURED, load_s=30), (killed(3.0, 14.2, {"catch_up_s": Quantity(17.5)}),)))

    assert line(lines, "recovery") == "  recovery first output 14.2 s, caught up 17.5 s after kill@batch=3 struck"
    assert line(lines, "latency").startswith("  latency  withheld: for 18 s of the load's 30 s")
    assert not any("p50" in each for each in lines)


def test_a_short_outage_withholds_the_tail_alone():
    lines = screen.lines(result(MEASURED, (killed(30.0, 14.2, {"catch_up_s": Quantity(17.5)}),)))

    assert line(lines, "latency").startswith("  latency  p50 1,234 ms, p99 withheld: for 18 s of the load's 600 s")


def test_who_had_not_caught_up_when_the_load_ended_was_behind_until_then():
    unknown = Quantity(None, "the load ended", lack=Lack.UNKNOWN)
    lines = screen.lines(result(replace(MEASURED, load_s=30), (killed(3.0, 14.2, {"catch_up_s": unknown}),)))

    assert "caught up not known" in line(lines, "recovery")
    assert line(lines, "latency").startswith("  latency  withheld: for 27 s of the load's 30 s")


def test_a_fault_that_interrupted_nothing_changes_no_word():
    fast = killed(30.0, 0.2, {"catch_up_s": Quantity(0.3)})

    assert screen.lines(result(MEASURED, (fast,))) == screen.lines(result(MEASURED))


def test_where_nobody_looked_the_latency_is_said_not_to_be_known():
    lines = screen.lines(result(replace(MEASURED, latency=())))

    assert line(lines, "latency") == "  latency  not known: the results were not polled during the run"


def test_a_latency_that_polled_sums_do_not_show_is_not_blamed_on_missing_polls():
    run = result(replace(MEASURED, latency=()))
    run = replace(run, verdict=replace(run.verdict, looked="every 51 ms"))

    assert line(screen.lines(run), "latency").startswith("  latency  not known: the polled values do not show when an")


def test_the_last_lines_of_an_engine_come_in_their_order_and_the_run_after_them():
    said = tuple(Witness("logs/engine-2.log", "goes on", "crashed", f"line {number} {LONG}") for number in range(5))

    lines = screen.lines(failed(wrong("engine", *said)))

    at = lines.index("    its last words, from logs/engine-2.log of the run:")
    assert " ".join(lines[at + 1 : -2]).split() == " ".join(witness.detail for witness in said).split()
    assert lines[-2:] == ["", "  runs/somewhere"]


def test_lines_for_a_manifest_stand_by_themselves_so_that_they_can_be_copied():
    advice = (
        Witness("manifest.toml", "these lines", "others", line) for line in ('key = "v:{campaign}"', 'field = "x"')
    )

    lines = screen.lines(failed(wrong("engine", *advice, Witness("logs/engine-1.log", "goes on", "stuck", "waiting"))))

    assert lines[-7:-2] == [
        "    lines for its manifest.toml:",
        '      key = "v:{campaign}"',
        '      field = "x"',
        "    its last words, from logs/engine-1.log of the run:",
        "      waiting",
    ]


def test_the_last_words_in_a_run_of_an_older_version_have_no_log_of_their_own():
    lines = screen.lines(failed(wrong("engine", Witness("engine", "goes on", "stuck", "last words"))))

    assert lines[-4:] == ["    its last words, from logs/ of the run:", "      last words", "", "  runs/somewhere"]


def test_markdown_has_a_row_for_each_figure():
    text = markdown.as_text(result(MEASURED))

    assert "| latency, rank-matched | p50 1,234 ms, p99 98,765 ms, max 98,765 ms (the tail is a lower bound) |" in text
    assert "| cost, kafka | 1,234.56 CPU-s per million events at 1,234,567/s, at most 12,346 MiB |" in text
    assert "The run is not steady" in text
