"""A baseline from an earlier job: another machine cancels out, both jobs' errors count, and what can't be compared with
is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from math import hypot
from pathlib import Path

import pytest

from harness.engines import fake
from harness.experiments.gating import baseline, gate, history
from harness.experiments.gating.baseline import Baseline
from harness.experiments.gating.gate import ANY, BASE, SIDES, Answer, Effect, Gated, Judged, Spread, Stored
from harness.measuring.stats import Ratio
from harness.model import Outcome, UsageError
from reports import gated
from reports.exports import gate as gate_exports
from reports.exports.history import of_gate
from tests.program import pages
from tests.quick.experiments.test_gate import measured
from tests.quick.histories import MACHINE, OTHER_CPU, entry, figure

RIGHT = Judged(Outcome.PASS, "all counted", "runs/x")
SLOWER = 11.0  # the head takes so much more than the reference engine
BURST = entry().round_events


def job(seed, machine=1.0, head=0.0, starts=12):
    """The rounds of one: how slow its machine is, and how much slower its head than it was."""
    made = measured(starts, seed, head=(1 + SLOWER) * (1 + head) - 1)
    return [replace(each, cpu_s=each.cpu_s * machine) for each in made]


def recorded(rounds):
    """As Stored, of a job that compared nothing."""
    found = gate.effects(rounds, ANY, 2)
    return Stored("2026-03-01 04:30 UTC", {each.metric: each.head for each in found})


def compared(rounds, stored, threshold=0.10):
    return gate.effects(rounds, threshold, 2, stored=stored)


# ---------------------------------------------------------------- What is compared


def test_a_slower_machine_cancels_out():
    cost, *_ = compared(job(2, machine=2.3), recorded(job(1)))

    assert cost.answer is Answer.OK
    assert cost.head.estimate == pytest.approx(1, abs=0.02)


def test_a_head_that_is_slower_than_it_was_is_found_on_another_machine():
    cost, *_ = compared(job(2, machine=0.6, head=0.25), recorded(job(1)))

    assert cost.answer is Answer.REGRESSED
    assert cost.head.estimate == pytest.approx(1.25, abs=0.03)


def test_the_errors_of_both_jobs_are_in_the_answer():
    then, now = recorded(job(1)), gate.effects(job(2), ANY, 2)[0]
    cost, *_ = compared(job(2), then)

    assert cost.head.error == pytest.approx(hypot(then.ratios["cost"].error, now.head.error))
    assert cost.head.low < now.head.low / then.ratios["cost"].estimate
    assert cost.head.high > now.head.high / then.ratios["cost"].estimate
    assert cost.detectable > now.detectable


def test_what_no_start_can_tell_is_told_so():
    rough = replace(recorded(job(1)).ratios["cost"], error=0.2)
    cost, *_ = compared(job(2), Stored("then", {"cost": rough}))

    assert cost.answer is Answer.INCONCLUSIVE
    assert cost.starts_needed is None
    assert "the baseline itself can detect no less" in cost.reason


def test_the_starts_that_are_needed_make_up_for_the_error_that_none_of_them_takes_away():
    ratio = Ratio(1.0, 0.9, 1.1, 0.03)
    own = Effect("cost", "", 0.05, ratio, ratio, (1.0,) * 10, None, Spread(0.1, 0.01, 0.0), 0.98)

    assert (own.starts_needed, replace(own, stored_error=0.01).starts_needed) == (41, 63)
    assert replace(own, stored_error=0.016).starts_needed is None


def test_only_what_was_measured_then_is_compared_now():
    then = recorded(job(1))
    assert set(then.ratios) > {"cost"}
    without = replace(then, ratios={"cost": then.ratios["cost"]})

    assert [each.metric for each in compared(job(2), without)] == ["cost"]
    assert compared(job(2), replace(then, ratios={})) == ()


def test_what_is_only_measured_is_never_too_slow():
    found = gate.effects(job(1, head=3.0), ANY, 2)

    assert {each.answer for each in found} == {Answer.OK}
    assert gate.in_words(found[0]).startswith("cost 4")
    assert " times [" in gate.in_words(found[0])


def test_a_changed_machine_is_told_in_the_answer():
    then = recorded(job(1))
    found = compared(job(2), then)
    sides = dict.fromkeys(SIDES, RIGHT)

    changed = Gated(sides, found, 40, stored=replace(then, changes=(f"cpu A -> {OTHER_CPU}",)))

    assert changed.sentence.endswith(f"; and since the baseline was measured: cpu A -> {OTHER_CPU}")
    assert "since the baseline" not in Gated(sides, found, 40, stored=then).sentence


def test_what_has_changed_since_then_is_what_decides_series():
    found = Baseline(Path("baseline.json"), entry(0, figure()))
    versions = entry().head.versions

    assert found.stored().changes == ()
    assert found.stored(MACHINE, versions).changes == ()
    assert found.stored(MACHINE | {"kernel": "7"}, versions).changes == ()
    changes = found.stored(MACHINE | {"cpu": OTHER_CPU}, {"pyspark": "4.2.0"}).changes
    assert [each.partition(" ")[0] for each in changes] == ["cpu", "pyspark"]


# ---------------------------------------------------------------- As a file


@pytest.fixture
def file(tmp_path):
    return tmp_path / "baseline.json"


def of_reference(**changes):
    return entry(0, replace(figure(), ratio=12.0), base=replace(entry().base, named="reference"), **changes)


def test_what_was_saved_is_what_is_compared_with(file):
    baseline.save(file, of_reference())

    found = baseline.read(str(file), {}, 0)

    assert found.burst_events == BURST
    assert found.stored().ratios["cost"].estimate == 12.0
    assert found.stored().ratios["cost"].error == figure().error
    assert not list(file.parent.glob(".*")), "nothing half-made"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "There is no baseline"),
        (b"{}", "it has schema None"),
        (b"", "it is empty"),
        (history.encoded(of_reference())[:200], "it is cut off"),
        (b'{"x": 1}\n', "it has schema None"),
        (history.encoded(of_reference()).replace(b'"schema":1', b'"schema":2'), "was written in schema 2"),
        (history.encoded(of_reference()) + history.encoded(of_reference(rounds=9)), "is a history of gates and no"),
        (history.encoded(entry()), "is a history of gates and no baseline"),
        (history.encoded(of_reference(metrics=())), "lacks the cost, which is decisive; it has no metric at all"),
        (history.encoded(of_reference(metrics=(figure("memory"),))), "decisive; it has memory"),
        (history.encoded(of_reference(metrics=(replace(figure(), declined="steal"),))), "lacks the cost"),
        (history.encoded(of_reference(metrics=(replace(figure(), ratio=0.0),))), "lacks the cost"),
        (history.encoded(of_reference(flags={"disorder": "storm"})), "was measured with --disorder storm, and"),
    ],
)
def test_what_can_not_be_compared_with_is_refused_with_what_to_do(content, told, file):
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(UsageError) as refused:
        baseline.read(str(file), {}, 0)

    assert told in str(refused.value)
    assert "--save-baseline" in str(refused.value)
    assert "--history" not in str(refused.value)


def test_another_burst_is_refused_and_none_takes_that_of_the_baseline(file):
    baseline.save(file, of_reference())

    with pytest.raises(UsageError, match="bursts of 100,000 events, not 5,000: leave --burst out"):
        baseline.read(str(file), {}, 5000)
    for burst_events in (0, BURST):
        assert baseline.read(str(file), {"seed": 7}, burst_events).burst_events == BURST
    baseline.save(file, of_reference(burst_events=BURST + 1))
    assert baseline.read(str(file), {}, BURST + 1).burst_events == BURST, "whole stretches of it"


def test_a_baseline_of_another_job_is_refused():
    found = Baseline(Path("baseline.json"), of_reference(engine="count/absolute"))
    mine = replace(fake.MANIFEST, id="count@2")

    found.refuse_other(mine, "absolute")
    found.refuse_other(mine, "")
    for head, sink in ((mine, "increment"), (replace(mine, id="other"), "")):
        with pytest.raises(UsageError, match="is of count/absolute, and the head is"):
            found.refuse_other(head, sink)


def test_a_place_that_can_not_be_written_is_told_and_keeps_what_it_has(tmp_path):
    (tmp_path / "baseline.json").mkdir()

    with pytest.raises(UsageError, match="can't be written"):
        baseline.save(tmp_path / "baseline.json", of_reference())


# ---------------------------------------------------------------- In reports


def test_a_gate_by_a_baseline_says_how_weak_that_is(tmp_path):
    then = replace(recorded(job(1)), changes=("java 17 -> 21",))
    folder = pages.gate(tmp_path, job(2), asked={"base": "baseline.json"})
    found = replace(folder.load("found", Gated), effects=compared(job(2), then), stored=then)
    record = replace(gated.read(folder), found=found, commits={BASE: "a" * 40})

    gate_exports.save(record)
    summary = (tmp_path / "summary.md").read_text()
    line = of_gate(record)

    assert "java 17 -> 21" in summary
    assert "`reference`" in summary, "which is what ran as the base"
    assert any("weaker than a base" in each for each in gated.notes(found))
    assert (line.base.named, line.base.commit, line.head.named) == ("baseline.json", "a" * 40, "c0ffee")
    assert line.metrics[0].base is None, "what the base took was not measured here"
    assert "--base baseline.json" in gate_exports.command(record)


def test_a_measured_baseline_is_told_in_times_and_can_be_typed_again(tmp_path):
    asked = {"base": "reference", "threshold": ANY, "saves": "baseline.json"}
    folder = pages.gate(tmp_path, job(1), asked=asked)
    record = gated.read(folder)

    gate_exports.save(record)

    assert " times (" in (tmp_path / "junit.xml").read_text()
    assert "threshold_ratio" not in (tmp_path / "metrics.prom").read_text()
    assert gate_exports.command(record) == (
        "./streamgauge gate --head c0ffee --engine jobs/count --save-baseline baseline.json --budget 10"
    )
    assert of_gate(record).metrics[0].ratio == pytest.approx(1 + SLOWER, rel=0.03)
    assert of_gate(record).head.verdict is Outcome.PASS
