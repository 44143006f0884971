"""The same run a few times: one verdict, medians over rounds, percentiles of all samples as one heap."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

from harness.config import plan
from harness.drivers import one_run
from harness.engines import fake
from harness.experiments.repeat import Round, answer, repeat, specs
from harness.install import environment
from harness.measuring.stats import quantiles
from harness.model import Exit, Outcome, UsageError
from reports import rounds as reports_rounds
from tests.program.calls import invoked

FAST = ["run", "--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]


def a_round(seed, outcome=Outcome.PASS, withheld="", **figures):
    return Round(seed, f"runs/{seed}", outcome, f"sentence {seed}", figures, withheld)


def samples(*values, way="probes"):
    return pa.table({"way": [way] * len(values), "corrected_ms": pa.array(values, pa.float64())})


def spec_of(**keys):
    return plan.resolve("test", {"engine": "fake", **keys}, {}, lambda *_: fake.MANIFEST)[0]


def test_each_round_has_the_next_seed_and_nothing_else_changes():
    spec = spec_of(seed=7)

    three = specs(spec, 3)

    assert [each.tape.seed for each in three] == [7, 8, 9]
    assert three[0] == spec
    assert len({(each.engine, each.tape.profile, each.tape.disorder) for each in three}) == 1


def test_what_is_done_is_kept_at_once():
    kept = []

    def break_off(spec):
        if spec.tape.seed == 3:
            raise KeyboardInterrupt
        return a_round(spec.tape.seed)

    with pytest.raises(KeyboardInterrupt):
        repeat(spec_of(seed=1), 5, break_off, lambda done: kept.append([each.seed for each in done]))

    assert kept == [[1], [1, 2]]


def test_a_median_has_an_interval_over_rounds():
    done = answer([a_round(s, cost_s=v) for s, v in enumerate((10.0, 12.0, 11.0, 30.0, 11.5))], [], seed=1)

    found = done.intervals["cost_s"]
    assert done.outcome is Outcome.PASS
    assert (found.median, found.rounds) == (11.5, 5)
    assert found.low is not None
    assert found.high is not None
    assert 10.0 <= found.low <= 11.5 <= found.high <= 30.0


def test_percentiles_are_those_of_all_samples_and_the_never_seen_count():
    first, second = samples(1.0, 2.0, 3.0), samples(100.0, None)

    done = answer([a_round(1), a_round(2)], [first, second], seed=1)

    assert done.percentiles["probes"] == quantiles([1, 2, 3, 100], censored=1)


@pytest.mark.parametrize("worst", [Outcome.FAIL, Outcome.UNKNOWN])
def test_one_bad_round_is_the_verdict_and_takes_all_figures(worst):
    rounds = [a_round(1, cost_s=1.0), a_round(2, worst), a_round(3, cost_s=1.0)]

    done = answer(rounds, [samples(1.0)], seed=1)

    assert done.outcome is worst
    assert done.sentence == f"seed 2 is {worst.value}: sentence 2"
    assert not done.intervals
    assert not done.percentiles


def test_a_round_without_figures_is_named_and_left_out():
    rounds = [a_round(1, cost_s=1.0), a_round(2, withheld="the load certificate is void"), a_round(3, cost_s=3.0)]

    done = answer(rounds, [], seed=1)

    assert done.intervals["cost_s"].rounds == 2
    assert done.sentence == "right in all 3 rounds; without figures: seed 2 (the load certificate is void)"


def test_one_measured_round_shows_no_interval():
    done = answer([a_round(1, cost_s=1.0)], [], seed=1)

    header, rows = next(iter(reports_rounds.tables(done)))
    assert dict(zip(header, rows[0], strict=True))["95 % interval"] == "-"


@pytest.fixture
def call(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", dict)
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)  # drawing takes longer than the runs
    return lambda *arguments: invoked(*FAST, *arguments)


def test_rounds_lie_in_one_experiment_and_json_holds_them_all(call, tmp_path):
    done = call("--repeat", "2", "--json")

    told = json.loads(done.stdout)
    (experiment,) = (tmp_path / "runs").iterdir()
    assert done.exit_code == told["exit"] == Exit.PASS
    assert told["run"] == str(experiment)
    assert [each["verdict"] for each in told["rounds"]] == ["PASS", "PASS"]
    assert len({each["run"] for each in told["rounds"]} & {str(path) for path in (experiment / "runs").iterdir()}) == 2
    assert told["intervals"]["probes_p50_ms"]["rounds"] == 2
    assert told["percentiles"]["probes"]["count"] > 0
    assert [each["seed"] for each in json.loads((experiment / "experiment.json").read_text())["rounds"]] == [1, 2]
    suite = ET.parse(experiment / "junit.xml").getroot()[0]
    assert [case.get("name") for case in suite.iter("testcase")] == ["seed 1", "seed 2"]
    assert all(float(case.attrib["time"]) > 0 for case in suite.iter("testcase"))
    assert "--repeat 2\n" in (experiment / "summary.md").read_text()


def test_wrong_rounds_fail_and_no_speed_is_printed(call):
    done = call("--repeat", "2", "--sink", "increment")

    assert done.exit_code == Exit.FAIL
    assert done.stdout.startswith("FAIL  2 rounds of ad-impressions on fake/increment: seed 1 is FAIL: duplicated")
    assert "_ms" not in done.stdout
    assert "_per_s" not in done.stdout


def test_the_scenario_may_ask_for_rounds_too_and_the_flag_wins():
    assert plan.rounds_of("test", {"repeat": 3}, {}) == 3
    assert plan.rounds_of("test", {"repeat": 3}, {"repeat": "5"}) == 5
    assert plan.rounds_of("test", {}, {}) == 1


@pytest.mark.parametrize("value", ["0", "1.5", "many"])
def test_a_number_of_rounds_that_cannot_be_is_refused(value):
    with pytest.raises(UsageError, match="repeat = "):
        plan.rounds_of("test", {}, {"repeat": value})


def test_rounds_on_one_existing_redis_need_reset():
    with pytest.raises(UsageError, match="--reset"):
        plan.rounds_of("test", {}, {"repeat": 2, "redis": "redis://somewhere:6379/1"})

    assert plan.rounds_of("test", {}, {"repeat": 2, "redis": "redis://somewhere:6379/1", "reset": True}) == 2
