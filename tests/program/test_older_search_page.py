"""The page of a search: the interval that it draws, what it withholds, and that it says so when there is nothing."""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from harness.commands.search import search
from harness.experiments.folder import FILE, Folder
from harness.experiments.searching.older_search import Held, Settings, Stage, Trial
from harness.experiments.searching.search import OF_ONE_LOAD
from harness.model import SCHEMA_VERSION, Outcome, UsageError
from reports.figures import style, throughput
from reports.figures.throughput import Knee, Range
from reports.older import search_page, searched
from reports.page import Link, render
from reports.sections import reproduce
from tests.program import pages

HEAD = {"schema": SCHEMA_VERSION}


def stored(path, trials, settings=pages.TRIALS_OF_BEFORE, spec=None):
    """The directory of a search, as the command leaves it."""
    folder = Folder(path)
    environment = {"python": "3.11", "packages": {"numpy": "2.4"}}
    folder.save("search", spec=spec or pages.search_spec(), settings=settings, environment=environment, trials=trials)
    return folder


def page(folder):
    return search_page.page_of(searched.read(folder))


def section(made, name):
    return next(section for section in made.sections if section.id == name)


def numbers(made):
    return [number.value for number in made.numbers]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """With a real drawing: fixtures of a module are made before those that keep a test from drawing."""
    folder = stored(tmp_path_factory.mktemp("search"), pages.SEARCHED)
    search_page.write(folder)
    return folder


def test_the_interval_is_said_drawn_and_written(written):
    text = (written.path / "report.html").read_text()

    assert "Between 60,000 (held) and 66,000 (failed) events/s." in text
    assert "60k to 66k/s: the highest that holds" in text, "the drawing on a desk"
    assert "objective for p99: 10 s" in text
    assert {path.name for path in (written.path / "figures").iterdir()} == {
        f"throughput.{kind}" for kind in ("png", "svg", "csv")
    }
    assert (written.path / "figures" / "throughput.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO((written.path / "figures" / "throughput.csv").read_text())))
    assert [(row["offered_per_s"], row["held"]) for row in rows] == [
        ("30000.0", "yes"),
        ("60000.0", "yes"),
        ("66000.0", "no"),
        ("90000.0", "no"),
    ]


def test_a_ci_job_reads_one_case_and_the_page_says_what_comes_next(written):
    suite = ET.parse(written.path / "junit.xml").getroot()[0]
    (case,) = suite.iter("testcase")
    properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}

    assert (case.get("classname"), case.get("name"), len(case.findall("failure"))) == (
        "streamgauge.calm.fake.absolute",
        "highest sustainable rate",
        0,
    )
    assert properties["command"].startswith("./streamgauge search")
    assert "Between 60,000 (held)" in (written.path / "summary.md").read_text()
    made = page(written)
    assert [row[0] for row in section(made, "next").tables[0].rows][-1] == "whether it stays right under faults"
    text = (written.path / "report.html").read_text()
    links = re.findall(r'<a href="([^"#]+)"', text)
    assert "figures/throughput.csv" in links
    assert [link for link in links if not (written.path / link).is_file()] == []


def test_three_numbers_come_first(tmp_path):
    made = page(stored(tmp_path, pages.SEARCHED))

    assert made.outcome is Outcome.PASS
    assert numbers(made) == ["60,000", "66,000", "41"]
    notes = [number.note for number in made.numbers]
    assert notes[0] == "confirmed by a fresh run"
    assert "10.0% wide" in notes[1]
    assert "median of 3 runs (40 to 44)" in notes[2]


def test_several_trials_at_one_rate_are_a_band(tmp_path):
    rungs = {rung.offered_per_s: rung for rung in searched.read(stored(tmp_path, pages.SEARCHED)).rungs}

    assert rungs[60_000.0].p99_ms == Range(2_000.0, 2_400.0, 3_000.0)
    assert rungs[60_000.0].p50_ms == Range(500.0, 500.0, 500.0)
    assert rungs[30_000.0].p99_ms == Range(900.0, 900.0, 900.0)


def test_one_failure_outweighs_a_success(tmp_path):
    again = replace(pages.SEARCHED[0], stage=Stage.LADDER, held=Held.NO, reason="it got slower")
    read = searched.read(stored(tmp_path, [*pages.SEARCHED, again], Settings()))

    assert [rung.held for rung in read.rungs if rung.offered_per_s == again.rate_per_s] == [False]
    assert any("On the ladder a rate failed" in fact for fact in search_page.page_of(read).facts)


def test_a_rung_beyond_the_interval_that_held_is_shown_as_it_was(tmp_path):
    beyond = pages.trial(72_000.0, stage=Stage.LADDER, p99_ms=9_000.0)
    read = searched.read(stored(tmp_path, [*pages.SEARCHED, beyond]))

    assert [rung.held for rung in read.rungs if rung.offered_per_s == beyond.rate_per_s] == [True]
    assert read.knee == Knee(60_000.0, 66_000.0)


def test_figures_that_are_withheld_are_nowhere_and_the_zone_still_is(tmp_path):
    """A failed trial whose counts were wrong has no point, but its rate marks where the interval ends."""
    wrong = pages.trial(66_000.0, Held.NO, reason="the counts are FAIL")
    read = searched.read(stored(tmp_path, [pages.trial(60_000.0, p99_ms=2_000.0), wrong]))
    made = search_page.page_of(read)

    assert read.knee == Knee(60_000.0, 66_000.0)
    assert [(rung.offered_per_s, rung.p99_ms, rung.achieved_per_s) for rung in read.rungs][-1] == (66_000.0, None, None)
    (trials, reasons) = section(made, "trials").tables
    assert trials.rows[1][3:7] == ("failed", "-", "-", "-")
    assert reasons.rows == (("2", "66,000", "the counts are FAIL"),)
    assert "could not be measured: 1." in section(made, "throughput").text[-1]


@pytest.mark.parametrize(("trials", "side"), [(pages.SEARCHED, "right"), (pages.SLOW, "left")])
def test_the_interval_is_named_on_the_side_with_room(tmp_path, trials, side):
    read, sheet = searched.read(stored(tmp_path, trials)), style.Sheet(Figure(), style.NARROW_PX)
    throughput.draw(read.rungs, read.knee, 10_000.0, sheet)

    (name,) = [text for text in sheet.figure.axes[0].texts if " to " in text.get_text()]
    assert name.get_horizontalalignment() == side


def test_a_limited_generator_gives_at_least(tmp_path):
    limited = pages.trial(80_000.0, Held.LIMITED, reason="sent late")
    read = searched.read(stored(tmp_path, [pages.trial(60_000.0, p99_ms=2_000.0), limited]))
    made = search_page.page_of(read)

    assert made.outcome is Outcome.UNKNOWN
    assert made.sentence == "At least 60,000 events/s, generator-limited."
    assert read.knee == Knee(60_000.0, None)
    assert [rung.offered_per_s for rung in read.rungs] == [60_000.0]
    assert numbers(made)[1] == "none"
    assert made.numbers[1].note == "the load generator was the limit"


def test_a_limit_within_the_interval_is_said(tmp_path):
    limited = pages.trial(63_000.0, Held.LIMITED, reason="sent late")
    made = page(stored(tmp_path, [*pages.SEARCHED, limited]))

    assert any(fact.endswith("not the engine: 63,000/s.") for fact in made.facts)


def test_a_search_that_was_broken_off_blames_no_generator(tmp_path):
    read = searched.read(stored(tmp_path, [pages.trial(20_000.0, p99_ms=900.0)]))
    made = search_page.page_of(read)

    assert made.sentence == "At least 20,000 events/s: no rate failed, and no higher one was tried."
    assert read.knee is None
    assert any(fact.startswith("The search is not finished") for fact in made.facts)
    assert "generator" not in made.numbers[1].note


def test_a_warm_up_is_said_to_lower_what_was_processed(tmp_path):
    for settings in (pages.TRIALS_OF_BEFORE, replace(pages.TRIALS_OF_BEFORE, warm_up_ms=0)):
        text = section(page(stored(tmp_path, pages.SEARCHED, settings)), "throughput").text
        assert any("whole load" in sentence for sentence in text) is bool(settings.warm_up_ms)


def test_no_rate_held(tmp_path):
    made = page(stored(tmp_path, [pages.trial(20_000.0, Held.NO, reason="slow"), pages.trial(10_000.0, Held.NO)]))

    assert made.outcome is Outcome.UNKNOWN
    assert made.sentence == "No rate held; the lowest that failed is 10,000/s."
    assert numbers(made) == ["none", "10,000", ""]
    assert made.numbers[0].note == "no trial held"
    assert section(made, "throughput").missing == ("no trial has a figure that may be shown.",)


def grown(rate_per_s, held, slope, bound, stage=Stage.BISECT):
    trial = pages.trial(rate_per_s, held, stage=stage, p99_ms=900.0)
    return replace(trial, slopes={"latency": slope}, bounds={"latency": bound})


def test_open_runs_that_show_it_together_confirm_nothing(tmp_path):
    runs = [grown(10_000.0, Held.OPEN, -0.001, 0.011), grown(10_000.0, Held.OPEN, 0.0, 0.011, Stage.CONFIRM)]
    read = searched.read(stored(tmp_path, [*runs, pages.trial(11_400.0, Held.NO, p99_ms=900.0)]))
    made = search_page.page_of(read)

    assert numbers(made)[:2] == ["10,000", "11,400"]
    assert made.numbers[0].note == "shown by 2 runs together"
    assert [rung.held for rung in read.rungs] == [True, False]


def test_an_open_run_confirms_what_another_has_shown(tmp_path):
    runs = [grown(10_000.0, Held.YES, -0.02, -0.01), grown(10_000.0, Held.OPEN, 0.0, 0.011, Stage.CONFIRM)]

    assert page(stored(tmp_path, runs)).numbers[0].note == "confirmed by a fresh run"


def test_what_a_slow_machine_left_open_confirms_nothing(tmp_path):
    runs = [grown(10_000.0, Held.YES, -0.02, -0.01), grown(10_000.0, Held.OPEN, 0.0, 0.011, Stage.CONFIRM)]
    runs = [replace(run, load_cpu_s_per_million=cpu_s) for run, cpu_s in zip(runs, (3.0, 4.0), strict=True)]

    assert page(stored(tmp_path, runs)).numbers[0].note == "not confirmed by a fresh run"


def test_a_rate_that_stays_open_is_said_to_count_as_failed(tmp_path):
    read = searched.read(stored(tmp_path, [grown(10_000.0, Held.OPEN, 0.008, 0.03) for _ in range(3)]))
    made = search_page.page_of(read)

    assert made.sentence == "No rate held; the lowest that failed is 10,000/s."
    assert "No run grew at 10,000/s, but all together could not exclude it: counted as failed." in made.facts
    assert [rung.held for rung in read.rungs] == [False]


def test_a_search_of_before_slopes_were_kept_is_read(tmp_path):
    folder = stored(tmp_path, pages.SEARCHED)
    kept = json.loads((tmp_path / FILE).read_text())
    for trial in kept["trials"]:
        del trial["slopes"], trial["bounds"]
    (tmp_path / FILE).write_text(json.dumps(kept))

    assert numbers(page(folder))[:2] == ["60,000", "66,000"]


def test_a_search_without_trials_still_has_a_page(tmp_path):
    folder = stored(tmp_path, [])
    made = search_page.write(folder)

    assert made.sentence.startswith("No rate was tried")
    assert numbers(made) == ["", "", ""]
    assert section(made, "trials").text == ("None was made.",)
    assert "None was made." in (tmp_path / "report.html").read_text()
    assert list((tmp_path / "figures").iterdir()) == []


def test_an_estimate_is_neither_a_rung_nor_an_answer(tmp_path):
    """Its rate rose, so it was not made at any."""
    estimate = pages.trial(61_987.6, Held.ESTIMATE, stage=Stage.RAMP, reason="it fell behind", p99_ms=1.0)
    read = searched.read(stored(tmp_path, [estimate, *pages.SEARCHED]))
    made = search_page.page_of(read)

    assert 61_987.6 not in [rung.offered_per_s for rung in read.rungs]
    assert numbers(made) == ["60,000", "66,000", "41"]
    assert section(made, "trials").tables[0].rows[0][1:4] == ("ramp", "about 62,000", "estimate")
    assert "Trials: 7 in 18 minutes (1 estimate, 4 held, 2 failed)." in made.facts


def test_only_an_estimate(tmp_path):
    estimate = pages.trial(62_000.0, Held.ESTIMATE, stage=Stage.RAMP)
    made = page(stored(tmp_path, [estimate]))

    assert made.sentence.startswith("No rate was tried")
    assert len(section(made, "trials").tables[0].rows) == 1


@pytest.mark.parametrize(
    ("rung", "held", "said"),
    [
        ({"rate_per_s": 30_000.0, "p99_ms": 900.0}, True, "too short to tell"),
        ({"rate_per_s": 72_000.0, "p99_ms": 9_000.0}, False, "too short to tell"),
        ({"rate_per_s": 30_000.0, "p99_ms": 10_001.0}, False, "failed"),
        ({"rate_per_s": 30_000.0, "p99_ms": None}, False, "failed"),
    ],
)
def test_a_rung_too_short_for_a_proof_is_not_called_a_failure(tmp_path, rung, held, said):
    """Unless more speaks against it: its latency, or figures that were withheld."""
    short = pages.trial(held=Held.NO, stage=Stage.LADDER, reason="not steady: too little load", **rung)
    trials = [trial for trial in pages.SEARCHED if trial.rate_per_s != short.rate_per_s]
    for settings, expected in ((pages.TRIALS_OF_BEFORE, (held, said)), (Settings(), (False, "failed"))):
        read = searched.read(stored(tmp_path, [*trials, short], settings))
        made = search_page.page_of(read)
        told = section(made, "trials").tables[0].rows[-1][3]

        (drawn,) = [each.held for each in read.rungs if each.offered_per_s == short.rate_per_s]
        assert (drawn, told) == expected
        doubted = any("On the ladder a rate failed" in fact for fact in made.facts)
        assert doubted is (told == "failed" and short.rate_per_s < 60_000)


def test_every_trial_is_listed_with_its_run_wherever_the_search_lies_now(tmp_path):
    rows = section(page(stored(tmp_path, pages.SEARCHED)), "trials").tables[0].rows

    run = Link("20261121-120000-calm-fake", "runs/20261121-120000-calm-fake/report.html")
    assert [row[0] for row in rows] == [str(number) for number in range(1, len(pages.SEARCHED) + 1)]
    assert rows[0] == ("1", "bisect", "30,000", "held", "500 ms", "900 ms", "44", "-", run)


def test_what_a_slow_machine_spoiled_is_said_so(tmp_path):
    fast = Trial(Stage.BISECT, 100_000.0, Held.YES, "p99 900 ms", "runs/a", load_cpu_s_per_million=3.2)
    slow = Trial(Stage.BISECT, 110_000.0, Held.NO, "not steady", "runs/b", load_cpu_s_per_million=5.0)
    rows = section(page(stored(tmp_path, [fast, slow])), "trials").tables[0].rows

    assert [row[3] for row in rows] == ["held", "the machine was slow"]
    assert [row[7] for row in rows] == ["3.2", "5"]


@pytest.mark.parametrize(
    ("settings", "flags", "command"),
    [
        (pages.TRIALS_OF_BEFORE, {}, "--seed 1 --objective-p99-ms 10000"),
        (
            Settings(objective_p99_ms=5_000.0),
            {"seed": "7", "campaigns": "50"},
            "--seed 7 --campaigns 50 --objective-p99-ms 5000",
        ),
        # The search chooses rates and lengths itself, and has no flags for them.
        (pages.TRIALS_OF_BEFORE, {"duration": "30s", "rate": "500"}, "--seed 1 --objective-p99-ms 10000"),
    ],
)
def test_the_command_that_made_it(tmp_path, settings, flags, command):
    made = section(page(stored(tmp_path, [], settings, pages.search_spec(**flags))), "reproduce")

    assert made.missing == ()
    assert ["living engine" in text for text in made.text] == [True]
    assert made.code == (f"./streamgauge search calm --engine fake {command}",)


def test_the_command_takes_every_flag_of_its_own(tmp_path):
    """What a run can be told and a search can't must not be in it, or it ends in a sentence on usage."""
    assert set(reproduce.FLAGS) - set(OF_ONE_LOAD) <= set(inspect.signature(search).parameters)


def test_an_engine_that_is_gone_is_named(tmp_path):
    made = section(page(stored(tmp_path, [], spec=replace(pages.search_spec(), engine="gone"))), "reproduce")

    assert "gone" in made.missing[0]


def test_a_password_is_not_on_the_page(tmp_path):
    made = page(stored(tmp_path, [], spec=replace(pages.search_spec(), redis="redis://me:geheim@db:6379/0")))

    assert "geheim" not in render(made)
    assert any("not kept" in text for text in section(made, "reproduce").text)


def test_versions_and_settings_are_there(tmp_path):
    text = render(page(stored(tmp_path, pages.SEARCHED)))

    for wanted in ("numpy", "2.4", "width", "0.15", "watermark_ms"):
        assert f">{wanted}</td>" in text


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), "has no experiment.json"),
        (lambda file: file.write_bytes(file.read_bytes()[:200]), "is torn"),
        (
            lambda file: file.write_text(json.dumps({"schema": SCHEMA_VERSION, "kind": "repeat"})),
            "a search was asked for",
        ),
        (lambda file: file.write_text(json.dumps({"schema": SCHEMA_VERSION, "kind": "search"})), "holds no spec"),
        (lambda file: file.write_text(file.read_text().replace('"rate_per_s"', '"rate"')), "in its trials"),
    ],
)
def test_a_damaged_experiment_is_named(tmp_path, damage, said):
    folder = stored(tmp_path, pages.SEARCHED)
    damage(tmp_path / FILE)

    with pytest.raises(UsageError, match=said) as refused:
        search_page.write(folder)
    assert str(tmp_path) in str(refused.value)
    assert not (tmp_path / "report.html").exists()
