"""Every command takes somebody's own question with a job of it, or says in one sentence why not and starts nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.drivers import chaos as drive_chaos
from harness.drivers import compare as drive_compare
from harness.experiments import chaos, compare
from harness.model import Exit

PAYMENTS = Path(__file__).resolve().parents[3] / "examples" / "payments"
OWN = str(PAYMENTS)
ASKED = ("--workload", OWN)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["run", *ASKED], "The engine spark has no job for the workload payments"),
        (["search", *ASKED], "The engine spark has no job for the workload payments"),
        (["compare", "spark", *ASKED], "The engine spark has no job for the workload payments"),
        (["chaos", *ASKED], "The engine spark has no job for the workload payments"),
        (["chaos", *ASKED, "--engine", OWN], "name faults with --fault"),
        (["gate", "--base", OWN, "--head", "spark", *ASKED], "The engine spark has no job for the workload"),
        (["gate", "--base", OWN, "--head", OWN], "its job is for the workload payments"),
        (["run", "--engine", OWN], "its job is for the workload payments"),
        (["run", "--engine", OWN, *ASKED, "--window", "5s"], "no meaning for the workload payments"),
        (["run", "--engine", OWN, *ASKED, "--campaigns", "5"], "no meaning for the workload payments"),
        (["tape", *ASKED, "--campaigns", "5"], "no meaning for the workload payments"),
        (["selftest", *ASKED], "No such option: --workload"),
        (["bench", *ASKED], "No such option: --workload"),
    ],
)
def test_what_does_not_work_is_said_in_a_sentence_and_nothing_is_started(call_here, tmp_path, words, answer):
    code, told, _ = call_here(*words, "--json")

    assert code == Exit.USAGE
    assert answer in json.loads(told)["error"]
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ("sum(amount)", "summ(amount)", "can't be run by DuckDB"),
        ("sum(amount)", "sum(CAST(merchant AS INT))", "can't be run by DuckDB"),
        ("GROUP BY merchant, opens", "GROUP BY merchant, opens, amount", "twice; group by all keys"),
        ("event, merchant", "event, NULLIF(merchant, 'shop-1') AS merchant", "gives NULL as merchant"),
        ("AS BIGINT", "AS DOUBLE", "gives cents as DOUBLE"),
        ("AS cents", "AS money", "merchant, opens, payments, cents, and no others"),
        ("FROM events", "FROM read_csv('/etc/passwd')", "reaches for a file or the network"),
        ("count(*)", "count(*) + CAST(round(random() * 9) AS BIGINT)", "two answers"),
        ("uuid", "guid", "event.fields.card.kind = 'guid'"),
        ('"payments"\n', '"page_visits"\n', "an id of your own"),
    ],
)
def test_a_declaration_that_cannot_judge_starts_no_run(call_here, tmp_path, before, after, answer):
    own = tmp_path / "own"
    own.mkdir()
    text = (PAYMENTS / "workload.toml").read_text()
    assert before in text
    (own / "workload.toml").write_text(text.replace(before, after, 1))

    code, told, _ = call_here("run", "--workload", "own", "--engine", OWN, "--json")

    assert code == Exit.USAGE
    assert "own/workload.toml: " in json.loads(told)["error"]
    assert answer in json.loads(told)["error"]
    assert [*tmp_path.iterdir()] == [own]


def test_jobs_of_an_own_question_are_compared_without_the_reference_which_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.engines.environments.prepare", lambda *_: None)
    engines = [OWN, f"{OWN}/fixed"]

    _, asked = drive_compare.begin(engines, compare.QUICK, {"workload": OWN}, tmp_path)

    assert [*asked["engines"]] == engines


def test_a_guarantee_of_a_job_of_an_own_question_can_be_asked_for(tmp_path):
    fault = "checkpoint-delete-commit@offset=50%"
    asked = drive_chaos.ChaosSelection(engines=(OWN,), faults=(fault,))

    place, _ = drive_chaos.begin(chaos.read_tier("smoke"), asked, {"workload": OWN}, tmp_path)

    wanted = json.loads((place.path / "experiment.json").read_text())["wanted"]
    assert {(each["engine"], each["fault"]) for each in wanted} == {(OWN, fault)}
