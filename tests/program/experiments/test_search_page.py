"""The page of a search: the curve that it draws, the interval, each rate, and what is not known."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from harness.experiments.curve import kept as plateaus
from harness.experiments.curve.plateau import Why
from harness.experiments.folder import FILE, Folder
from harness.experiments.searching.searched import read
from harness.model import Outcome, UsageError
from harness.rundir.store import Store
from reports import curve, search_page
from reports.page import render
from tests.program import pages


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = pages.a_search(tmp_path_factory.mktemp("search"), pages.curve())
    return place, search_page.write(place)


def section(page, name):
    return next(each for each in page.sections if each.id == name)


def test_the_interval_comes_first_in_events_and_as_a_share_of_the_reference(written):
    place, page = written
    found = read(place).found

    assert page.outcome is Outcome.PASS
    assert found.low_per_s
    assert found.high_per_s
    assert found.low_per_s < 87_880 < found.high_per_s, "where 1,212 ms by what is left of it is ten seconds"
    assert page.sentence.startswith("p99 crosses 10,000 ms between ")
    assert page.numbers[0].unit == "events/s"
    assert "reference" in page.numbers[0].note
    assert read(place).shares == (found.low_per_s / 400_000, found.high_per_s / 400_000)


def test_what_an_event_costs_is_told_with_its_rate(written):
    _, page = written
    cost = page.numbers[2]

    assert cost.label == "CPU per million events"
    assert cost.note.startswith("the engine at ")


def test_each_rate_has_its_row_and_its_reason(written):
    _, page = written
    rates, reasons = section(page, "rates").tables

    assert [row[0] for row in rates.rows][:2] == ["10,000", "30,000"]
    assert {row[1] for row in rates.rows} >= {"held", "open"}
    assert [row[0] for row in reasons.rows] == [row[0] for row in rates.rows]


def test_what_was_offered_early_and_late_is_shown_side_by_side(written):
    _, page = written
    (table,) = section(page, "drift").tables

    assert [(row[0], row[1], row[2]) for row in table.rows] == [("1", "400 s", "50,000"), ("1", "600 s", "50,000")]


def test_a_burst_is_told_and_has_no_row_among_the_rates(tmp_path):
    burst, after = (pages.plateau(rate, Why.PULSE, n, 200_000.0) for n, rate in ((11, 180_000.0), (12, 90_000.0)))
    burst = replace(burst, backlog=np.linspace(60_000, 1_000_000, 20))
    after = replace(after, backlog=np.linspace(1_000_000, 0, 20))
    place = pages.a_search(tmp_path, [*pages.curve(), burst, after])
    page = search_page.write(place)
    (told,) = [fact for fact in page.facts if fact.startswith("A burst")]
    (pulse,) = curve.as_object(read(place))["pulses"]

    assert "20 s at 180,000/s, on 90,000/s: worked off" in told
    assert pulse["done_per_s"] > 90_000
    assert "180,000" not in {row[0] for row in section(page, "rates").tables[0].rows}


def test_the_numbers_of_the_drawing_lie_beside_it(written):
    place, _ = written
    rows = list(csv.DictReader(io.StringIO((place.path / "figures" / "throughput.csv").read_text())))
    rungs = [rung for rung in curve.rungs(read(place)) if rung.p99_ms]

    assert (place.path / "figures" / "throughput.png").exists()
    assert [float(row["offered_per_s"]) for row in rows] == [rung.offered_per_s for rung in rungs]
    assert float(rows[3]["p99_ms_mid"]) == pytest.approx(rungs[3].p99_ms and rungs[3].p99_ms.mid, rel=1e-4)
    assert all(row["p999_ms_mid"] == "" for row in rows if row["visits"] == "1")


def test_a_band_is_of_blocks_and_a_single_block_has_none(written):
    place, _ = written
    bands = {rung.offered_per_s: rung.p99_ms for rung in curve.rungs(read(place)) if rung.p99_ms}

    assert bands[10_000.0].low == bands[10_000.0].mid == bands[10_000.0].high
    assert bands[90_000.0].low < bands[90_000.0].high


def test_a_search_that_was_broken_off_is_not_headed_pass(tmp_path):
    place = pages.a_search(tmp_path, pages.curve())
    kept = json.loads((tmp_path / FILE).read_text())
    kept["lives"][0]["whole"] = False
    (tmp_path / FILE).write_text(json.dumps(kept))
    page = search_page.page_of(read(place))

    assert page.outcome is Outcome.UNKNOWN
    assert page.sentence.startswith("Not finished, 0 of 1 life: p99 crosses")
    assert any("search --resume" in row[1] for row in section(page, "next").tables[0].rows)


def test_a_plateau_without_a_certificate_counts_for_nothing_and_is_told(tmp_path):
    late = [
        replace(each, unsound="one event in a thousand was sent 300 ms or more after it was due")
        if each.plateau.rate_per_s > 85_000
        else each
        for each in pages.curve()
    ]
    searched = read(pages.a_search(tmp_path, late))
    page = search_page.page_of(searched)

    assert max(searched.visits) == 70_000
    assert searched.found.outcome is Outcome.UNKNOWN
    assert "50,000 events/s sustained; the generator was the limit at 90,000/s" in searched.found.sentence
    assert any("load check failed" in fact for fact in page.facts)


def test_lives_are_taken_together_and_lie_far_apart(tmp_path):
    place = pages.a_search(tmp_path, [each for each in pages.curve() if each.plateau.why.value == "level"])
    again = Store(tmp_path / "runs" / "again")
    again.path.mkdir()
    plateaus.save(again, [each for each in pages.curve() if each.plateau.why.value == "level"])
    told = json.loads((tmp_path / FILE).read_text())
    told["lives"].append({**told["lives"][0], "run": "runs/again"})
    (tmp_path / FILE).write_text(json.dumps(told))
    labels = {label.rate_per_s: label for label in read(place).labels}

    assert (labels[50_000.0].held.value, labels[50_000.0].visits) == ("held", 2)


def test_without_a_right_life_there_is_no_figure(tmp_path):
    place = pages.a_search(tmp_path, [])
    page = search_page.write(place)

    assert page.outcome is Outcome.UNKNOWN
    assert section(page, "throughput").missing
    assert [number.value for number in page.numbers] == ["", "none", ""]


def test_the_lateness_is_told_that_each_life_had(written):
    _, page = written
    told = dict(section(page, "fairness").tables[2].rows)

    assert told["watermark_ms"] == "45,000", "one and a half objectives and three windows"


def test_it_says_how_to_do_it_again(written):
    _, page = written

    assert section(page, "reproduce").code[-1].endswith("--quick")
    assert section(page, "reproduce").code[-1].startswith("./streamgauge search calm --engine fake")
    assert ">2.4</td>" in render(page)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), "has no experiment.json"),
        (lambda file: file.write_bytes(file.read_bytes()[:200]), "is torn"),
        (lambda file: file.write_text(file.read_text().replace('"whole"', '"wohl"')), "in its lives"),
    ],
)
def test_a_damaged_experiment_is_named(tmp_path, damage, said):
    place = pages.a_search(tmp_path, pages.curve())
    damage(tmp_path / FILE)

    with pytest.raises(UsageError, match=said):
        search_page.write(Folder(place.path))
