"""The page of a run: what stands on it, what must not, and that it is made from whatever is left of a run."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import unquote

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from generators.disorder import PRESETS
from harness.cli import app
from harness.cli.run import run
from harness.config import plan
from harness.config.scenario_keys import KEYS
from harness.drivers import one_run
from harness.engines import fake
from harness.install import environment
from harness.judging import log_audit, verdict_file
from harness.judging.stored_run import StoredRun
from harness.model import CheckResult, Outcome, RunSpec, UsageError
from harness.rundir.store import Store
from harness.selftest import cheat
from harness.selftest.by_hand import changed
from harness.util.text_tables import left_out, markdown
from reports import command_flags, run_page
from reports.evidence import Evidence
from reports.page import Table, render
from reports.sections import SECTIONS, cells, next_step, reproduce, timeline
from tests.program import pages
from tests.program.runner.test_run import fake_run
from tests.quick import cases
from workloads.declared import declaration
from workloads.jobs.progress_log import tell_settings

FAST = ["--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]


def make(folder, *arguments) -> Store:
    """A run of the fake engine with figures of our own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "describe", lambda: {"python": "3.11", "packages": {"numpy": "2.4"}})
        patch.setattr(one_run, "write_page", lambda *_: None)
        CliRunner().invoke(app.app, ["run", *FAST, *arguments, "--out", str(folder)], catch_exceptions=False)
    (path,) = folder.iterdir()
    store = Store.open(path)
    store.write_table("timeline.parquet", pages.timeline())
    store.write_table("latency.parquet", pages.latency())
    store.write_json("measurement.json", pages.MEASURED)  # also where it must not be shown
    return store


@pytest.fixture(scope="module")
def good_run(tmp_path_factory):
    return make(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def bad_run(tmp_path_factory):
    return make(tmp_path_factory.mktemp("bad"), "--sink", "increment")


def written(store) -> dict[str, bytes]:
    """All files of a page."""
    run_page.write(store)
    return {path.name: path.read_bytes() for path in [store.path / "report.html", *store.path.glob("figures/*")]}


@pytest.fixture(scope="module")
def drawn_good(good_run):
    """With real drawings: fixtures of a module are made before those that keep a test from drawing."""
    return written(good_run)


@pytest.fixture(scope="module")
def drawn_bad(bad_run):
    return written(bad_run)


@pytest.fixture
def good(good_run, tmp_path):
    return Store(shutil.copytree(good_run.path, tmp_path / "run"))


@pytest.fixture
def bad(bad_run, tmp_path):
    return Store(shutil.copytree(bad_run.path, tmp_path / "run"))


def with_digests(store) -> None:
    """As if the run had left its files so."""
    verdict = verdict_file.last(store)
    cheat.recompute_all(store)
    verdict_file.keep(store, verdict)


def html_of(store) -> str:
    return render(run_page.page_of(Evidence(store)))


def ids_of(store) -> list[str]:
    return [section.id for section in run_page.page_of(Evidence(store)).sections]


def test_a_good_run_shows_its_verdict_three_numbers_and_every_section(good):
    page = run_page.write(good)

    assert page.outcome is Outcome.PASS
    assert [number.value for number in page.numbers] == ["kill", "", "101", "41,234"]
    assert page.numbers[1].note.startswith("withheld: for 12 s of the load's")
    assert [section.missing for section in page.sections] == [()] * len(page.sections)
    unlike = {"wrong", "seam", "seam-output", "backfill", "times", "backlog", "bursts", "growth", "state", "company"}
    unlike |= {"table-files", "window-state"}
    assert ids_of(good) == [maker.id for maker in SECTIONS if maker.id not in unlike]
    html = (good.path / "report.html").read_text()
    assert html.index("PASS") < html.index("41,234") < html.index('id="timeline"')


def test_the_page_is_one_file_that_asks_for_nothing(drawn_good):
    html = drawn_good["report.html"].decode()

    assert "<script" not in html
    fetched = re.findall(r'(?:src|<link[^>]*href|xlink:href)="([^"]*)"|url\(([^)]*)\)|@import', html)
    assert all(re.match(r"#|data:", one or two) for one, two in fetched)


class Ids(HTMLParser):
    """All ids of a page, and what refers to them."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.wanted = [], set(re.findall(r"url\(#([^)]+)\)", text))
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name.endswith("href") and value.startswith("#"):
                self.wanted.add(value[1:])


def test_no_id_is_used_twice_and_each_reference_leads_somewhere(drawn_good):
    found = Ids(drawn_good["report.html"].decode())

    assert len(found.ids) > 1000
    assert len(found.ids) == len(set(found.ids))
    assert found.wanted <= set(found.ids)


def speeds(page_text: str) -> list[str]:
    """Everything by which the invented measurement could give itself away."""
    secrets = ("2.08 s", "41,234", "9,412", "CPU seconds per million", "CPU per million", "3.3 MiB", "over after")
    return [secret for secret in secrets if secret in page_text]


def test_no_speed_stands_on_the_page_of_wrong_answers(drawn_bad):
    html = drawn_bad["report.html"].decode()

    assert "Speed is withheld:</strong> no speed for a run that is FAIL" in html
    assert speeds(html) == []
    assert not {"latency", "cost"} & set(re.findall(r'<section id="(\w+)"', html))
    assert "processed" not in html
    drawings = {f"{name}.{kind}" for name in ("cells", "timeline", "recovery", "lateness") for kind in ("png", "svg")}
    assert set(drawn_bad) == {"report.html", "cells.csv", "timeline.csv", *drawings}
    head, *rows = drawn_bad["timeline.csv"].decode().splitlines()
    assert head == "second,offered_per_s,sent_per_s"
    assert len(rows) == 30, "how long the engine worked after the load would tell its speed"


def struck(store) -> None:
    """A fault three seconds into the load, healed eight seconds later, and its batch again a second after that."""
    evidence = Evidence(store)
    (fault,) = evidence.faults
    at_ms, landed_ms, healed_ms = (evidence.epoch_ms + ms for ms in (3_000, 3_400, 11_000))
    store.tell("fault", report=replace(fault, at_ms=at_ms, landed_ms=landed_ms, healed_ms=healed_ms))
    line = {"at": evidence.epoch_ms + 12_000, "batch": fault.batch, "rows": 1, "offsets": {"0": 1}}
    (store.path / "progress.jsonl").write_text(json.dumps(line) + "\n")
    with_digests(store)


def test_each_fault_is_a_band_from_its_strike_until_it_was_healed(good):
    struck(good)
    bands = [(band.from_s, band.landed_s, band.to_s, band.label) for band in timeline.bands_of(Evidence(good))]

    assert (3.0, 3.4, 11.0, "kill@c3:batch=3 landed after 0.4 s, over after 8.0 s") in bands
    assert (12.0, None, 12.0, "batch 3 again") in bands


def test_how_long_a_fault_lasted_is_not_told_of_wrong_answers(bad):
    struck(bad)

    assert {band.to_s - band.from_s for band in timeline.bands_of(Evidence(bad))} == {0.0}
    assert not [band for band in timeline.bands_of(Evidence(bad)) if "again" in band.label]


def test_a_void_certificate_hides_the_speed_of_right_answers(good):
    lines = (good.path / "history.jsonl").read_text()
    void = lines.replace('"valid":true,"reasons":[]', '"valid":false,"reasons":["p99.9 of lag is 4,000 ms"]')
    (good.path / "history.jsonl").write_text(void)
    with_digests(good)
    html = html_of(good)

    assert "Speed is withheld:</strong> the load certificate is void" in html
    assert "The load certificate is void: p99.9 of lag is 4,000 ms." in html
    assert speeds(html) == []


def test_the_speed_of_a_good_run_would_have_been_seen(drawn_good):
    assert set(speeds(drawn_good["report.html"].decode())) >= {"2.08 s", "41,234", "CPU seconds per million", "3.3 MiB"}
    pictures = {name for name in drawn_good if name.endswith(".png")}
    assert pictures == {f"{name}.png" for name in ("cells", "timeline", "recovery", "latency", "cost", "lateness")}


def test_what_a_million_events_cost_is_told_with_the_rate_at_which_they_came(drawn_good):
    html = drawn_good["report.html"].decode()

    assert "the engine with its workers, at 9,999/s; everything else took" in html
    assert "CPU seconds per million events at 9,999/s: " in html
    head, *rows = drawn_good["cost.csv"].decode().splitlines()
    assert head.endswith(",offered_per_s")
    assert rows
    assert all(row.endswith(",9998.6") for row in rows)


def test_drawings_that_became_withheld_are_taken_away(good):
    run_page.write(good)
    assert (good.path / "figures" / "latency.png").exists()

    verdict = Evidence(good).verdict
    verdict_file.keep(good, replace(verdict, checks=(CheckResult("lost", Outcome.FAIL, "one"),)))
    run_page.write(good)
    assert not list(good.path.glob("figures/latency.*")) + list(good.path.glob("figures/cost.*"))


def test_a_missed_objective_fails_the_run_and_shows_its_speed(good):
    verdict = Evidence(good).verdict
    slow = CheckResult("objective", Outcome.FAIL, "p99 of latency is 2,081 ms", word="slow", blame="engine")
    verdict_file.keep(good, replace(verdict, outcome=Outcome.FAIL, checks=(*verdict.checks, slow)))
    page = run_page.page_of(Evidence(good))

    assert (page.outcome, page.withheld) == (Outcome.FAIL, "")
    assert page.sections[0].id == "wrong"


FILES = (
    *("spec.json", "plan.json", "environment.json", "verdict.json", "measurement.json", "history.jsonl"),
    *("log.parquet", "sends.parquet", "observed.parquet", "expected.parquet", "timeline.parquet", "latency.parquet"),
)


@pytest.mark.parametrize("torn", [False, True], ids=["missing", "torn"])
@pytest.mark.parametrize("name", FILES)
def test_the_page_is_made_and_names_what_is_missing(good, name, torn):
    content = (good.path / name).read_bytes()
    (good.path / name).unlink()
    if torn:
        (good.path / name).write_bytes(content[: len(content) // 2])
    html = html_of(good)

    told = " ".join(
        re.findall(r'<strong>(?:Missing|Speed is withheld):</strong>(.*?)</p>|class="sentence">(.*?)</p>', html)[0]
    )
    missing = " ".join(re.findall(r"<strong>Missing:</strong>(.*?)</p>", html))
    if name == "history.jsonl":
        assert "history" in told + missing or "certificate" in told + missing
    else:
        assert name in told + missing
    assert "<h1>" in html


def test_a_run_of_which_nothing_is_left_has_a_page(tmp_path):
    store = Store.create(tmp_path, "empty")
    html = html_of(store)

    assert "This run is not judged" in html
    assert "UNKNOWN" in html


def test_the_page_of_a_run_that_broke_off_says_why_and_what_to_do(good, monkeypatch):
    (good.path / "verdict.json").unlink()
    monkeypatch.setattr(Store, "alive", lambda _: False)
    good.tell("ended early", how="interrupted", why="Ctrl-C")
    html = html_of(good)

    assert "Ctrl-C; `streamgauge recheck` judges the recorded part." in html
    assert f"./streamgauge recheck {next_step.place_of(good.path)}" in html


@pytest.mark.parametrize(
    ("check", "word", "flags"), [("engine", "starved", "--patience 3"), ("fault", "not landed", "--fault none")]
)
def test_the_page_of_an_undecided_run_names_what_would_decide_it(good, check, word, flags):
    verdict = Evidence(good).verdict
    undecided = CheckResult(check, Outcome.UNKNOWN, "nothing says it", word=word)
    checks = tuple(undecided if each.name == check else each for each in verdict.checks)
    verdict_file.keep(good, replace(verdict, outcome=Outcome.UNKNOWN, checks=checks))

    first, *_ = next_step.section(Evidence(good)).tables[0].rows
    assert str(first[1]).endswith(flags)


def test_report_makes_the_page_says_what_is_missing_and_refuses_the_future(good, monkeypatch):
    monkeypatch.setattr(Store, "alive", lambda _: False)
    (good.path / "sends.parquet").unlink()
    done = CliRunner().invoke(app.app, ["report", str(good.path)], catch_exceptions=False)

    assert done.exit_code == 0
    assert "report.html" in done.stdout
    assert "sends.parquet" in done.stdout
    good.write_json("owner.json", {"schema": 99})
    with pytest.raises(UsageError, match="schema 99"):
        CliRunner().invoke(app.app, ["report", str(good.path)], catch_exceptions=False)


def test_tape_and_log_are_compared_again_only_where_the_verdict_had_not_found_them_alike(bad, monkeypatch):
    compare = Mock(wraps=log_audit.compare)
    monkeypatch.setattr(log_audit, "compare", compare)
    by_verdict = Evidence(bad).case
    compare.assert_not_called()

    verdict = Evidence(bad).verdict
    verdict_file.keep(bad, replace(verdict, checks=tuple(c for c in verdict.checks if c.name != "log")))
    by_files = Evidence(bad).case
    compare.assert_called_once()
    assert by_verdict.audit == by_files.audit
    assert by_verdict.differences == by_files.differences != []


def test_witnesses_and_names_of_others_are_texts_and_never_markup(bad):
    verdict = Evidence(bad).verdict
    evil = "<img src=x onerror=alert(1)>"
    checks = tuple(replace(check, sentence=check.sentence + evil) for check in verdict.checks)
    verdict_file.keep(bad, replace(verdict, sentence=evil, checks=checks))
    html = html_of(bad)

    assert evil not in html
    assert "&lt;img" in html


def test_a_section_that_breaks_is_said_in_its_place_and_the_rest_stays(good, monkeypatch):
    def breaks(evidence):
        raise ZeroDivisionError

    broken = replace(SECTIONS[1], make=breaks)
    monkeypatch.setattr("reports.sections.SECTIONS", (broken, *SECTIONS[2:]))
    page = run_page.page_of(Evidence(good))

    assert "ZeroDivisionError" in page.sections[0].missing[0]
    assert {section.missing for section in page.sections[1:]} == {()}


def test_a_pass_after_a_kill_says_so_first_of_all(good):
    number, *_ = run_page.page_of(Evidence(good)).numbers

    assert (number.label, number.value) == ("right, in spite of", "kill")
    assert re.fullmatch(r"kill@c3:batch=\d+ struck \d+\.\d s into the load, output again \d+\.\d s later", number.note)


def test_the_fault_of_a_wrong_run_stands_in_its_tile_and_no_speed_beside_it(bad):
    numbers = run_page.page_of(Evidence(bad)).numbers

    assert [(number.label, number.value) for number in numbers] == [("landed fault", "kill")]
    assert "output again" not in numbers[0].note


def test_a_run_without_a_fault_has_no_such_tile(tmp_path):
    _, store, _ = fake_run(tmp_path, fault="none")

    assert "kill" not in [number.value for number in run_page.page_of(Evidence(store)).numbers]


class Links(HTMLParser):
    """Where each link leads, and the id of each section."""

    def __init__(self, text):
        super().__init__()
        self.to, self.sections = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "a":
            self.to.append(values["href"])
        if tag == "section":
            self.sections.append(values["id"])


def test_the_contents_lead_to_every_section_and_each_file_that_is_named_is_there(good):
    run_page.write(good)
    links = Links((good.path / "report.html").read_text())
    anchors = [link[1:] for link in links.to if link.startswith("#")]
    named = [unquote(link) for link in links.to if not link.startswith("#")]

    assert anchors == [each for each in links.sections if each not in ("verdict", "numbers")]
    assert {"verdict.json", "samples.parquet", "junit.xml", "figures/latency.csv", "figures/cells.png"} <= set(named)
    assert [name for name in named if not (good.path / name).is_file()] == []
    there = {path.name for path in good.path.iterdir() if path.is_file()} - {"report.html", "owner.json"}
    assert there - set(named) <= {"engine_settings.json", "twin.json"}


def test_what_is_not_beside_a_page_is_text_and_no_link(good, tmp_path):
    """A published page is a copy: `report` takes its dead links away and leaves the rest as it is."""
    run_page.write(good)
    copy = tmp_path / "published"
    copy.mkdir()
    (copy / "report.html").write_bytes((good.path / "report.html").read_bytes())
    (copy / "junit.xml").write_bytes(b"")
    done = CliRunner().invoke(app.app, ["report", str(copy)])

    assert done.exit_code == 0, done.output
    text = (copy / "report.html").read_text()
    assert [link for link in Links(text).to if not link.startswith("#")] == ["junit.xml"]
    assert "verdict.json" in text


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_next_step_follows_from_the_outcome_and_can_be_typed(good, outcome):
    verdict_file.keep(good, replace(Evidence(good).verdict, outcome=outcome))
    steps = next_step.section(Evidence(good)).tables[0].rows
    told = {
        Outcome.PASS: ["chaos", "search"],
        Outcome.FAIL: ["run", "run", "replay"],
        Outcome.UNKNOWN: ["doctor", "recheck", "replay"],
    }[outcome]

    words = [shlex.split(str(command)) for _, command in steps]
    assert [word[:2] for word in words] == [["./streamgauge", name] for name in told]
    known: Any = typer.main.get_command(app.app)
    for _, name, *arguments in words:
        known.commands[name].make_context(name, list(arguments), resilient_parsing=False)


def test_a_run_without_a_fault_is_asked_to_meet_one(tmp_path):
    _, store, _ = fake_run(tmp_path, fault="none")
    first, *_ = next_step.section(Evidence(store)).tables[0].rows

    assert "--fault kill@offset=50%" in str(first[1])


def test_commands_name_no_path_of_the_machine():
    assert next_step.place_of(Path("/home/me/experiments/20260101-000000-chaos")) == "experiments/20260101-000000-chaos"
    assert next_step.place_of(Path("/a/experiments/x/runs/y")) == "experiments/x/runs/y"
    assert next_step.place_of(Path("/a/runs/y")) == "runs/y"
    assert next_step.place_of(Path("/a/elsewhere/y")) == "y"


def test_a_column_of_which_nothing_is_known_is_left_out():
    table = Table(("engine", "a", "b"), (("spark", "-", "1"), ("flink", "", "")))

    assert (table.shown.columns, table.shown.rows) == (("engine", "b"), (("spark", "1"), ("flink", "")))
    assert left_out(table.columns, table.rows) == ["a"]
    assert list(markdown(("x", "y"), [("a|b", "")])) == ["| x |", "| --- |", "| a\\|b |"]


def test_cells_are_named_as_the_checks_name_them():
    honest = cases.case()
    (first, *rest) = sorted(honest.observed.counts)
    counts = dict(honest.observed.counts)
    counts[first] -= 1
    counts[rest[0]] += 2
    counts[first + 3_600_000] = 5
    wrong = replace(honest, observed=replace(honest.observed, counts=type(honest.observed.counts)(counts)))

    assert cells.grid_of(honest).marks == ()
    assert {(mark.kind, mark.label.split(" ")[0]) for mark in cells.grid_of(wrong).marks} == {
        ("lost", "-1"),
        ("duplicated", "+2"),
        ("phantom", "+5"),
    }
    stuck = replace(wrong, engine=replace(wrong.engine, state="stuck"))
    assert {mark.kind for mark in cells.grid_of(stuck).marks} == {"unseen", "duplicated", "phantom"}


def test_events_that_were_dropped_are_marked_and_their_cells_stay_right():
    honest = cases.case()
    dropped = honest.dropped.copy()
    dropped[:2] = True
    grid = cells.grid_of(changed(honest, dropped=dropped))

    assert {mark.kind for mark in grid.marks} == {"late-dropped"}
    assert grid.present.sum() == len(honest.expectation.may)


def _resolve(flags, scenario="calm"):
    keys, asked = plan.read_scenario(scenario)[1], {"engine": "fake", **flags}
    return plan.resolve(scenario, keys, asked, reproduce.beside(fake.MANIFEST))[0]


def test_a_run_from_before_a_setting_was_there_is_reproduced_as_it_was(good):
    now = StoredRun(good)
    usual = {each.name for each in fields(RunSpec) if getattr(now.spec, each.name) == each.default}
    wanted = reproduce.recipe_of(now.spec, now.manifest)
    told = json.loads((good.path / "spec.json").read_text())
    good.write_json("spec.json", {key: value for key, value in told.items() if key not in usual})

    then = StoredRun(good)
    assert "seam" not in vars(then.spec)
    assert reproduce.recipe_of(then.spec, then.manifest) == wanted


def test_what_reproduces_a_run_is_as_short_as_can_be():
    spec = _resolve({"engine": "fake", "rate": "500", "fault": "kill@c3:batch=3"}, "ad-impressions")

    assert reproduce.recipe_of(spec, fake.MANIFEST).texts() == (
        "./streamgauge run ad-impressions --engine fake --rate 500 --seed 1",
    )


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("reset", True, ["--reset"]),
        ("reset", False, ["--no-reset"]),
        ("conf", ["a=b", "c=d"], ["--conf", "a=b", "--conf", "c=d"]),
        ("conf", {"a": "b"}, ["--conf", "a=b"]),
        ("objective_p99_ms", 5.0, ["--objective-p99-ms", "5"]),
    ],
)
def test_a_flag_is_told_as_it_is_typed(key, value, words):
    assert command_flags.flag(key, value) == words


def test_keys_that_are_no_flags_give_a_scenario_file():
    spec = replace(_resolve({"engine": "fake", "seed": 7}), lag_budget_ms=5.0)
    file, command = reproduce.recipe_of(spec, fake.MANIFEST).texts()

    assert "lag_budget_ms = 5" in file.splitlines()
    assert "seed = 7" in file.splitlines()
    assert command == "./streamgauge run calm.toml"


def test_what_can_not_be_told_again_is_named(tmp_path):
    written = declaration.write_new(tmp_path)
    spec = _resolve({"engine": "fake", "workload": str(tmp_path)})
    written.write_text(f"{written.read_text()}# edited since the run\n")
    recipe = reproduce.recipe_of(spec, fake.MANIFEST)

    assert reproduce.differences(recipe.resolve(fake.MANIFEST), spec) == ["declaration"]


def test_a_declared_workload_is_named_by_its_folder(tmp_path):
    declaration.write_new(tmp_path / "orders")
    spec = _resolve({"engine": "fake", "workload": str(tmp_path / "orders")})
    recipe = reproduce.recipe_of(spec, fake.MANIFEST)

    assert recipe.resolve(fake.MANIFEST) == spec
    assert f"--workload {tmp_path / 'orders'}" in recipe.texts()[0]


@settings(max_examples=25, deadline=None)
@given(
    scenario=st.sampled_from(sorted(plan.scenarios())),
    flags=st.fixed_dictionaries(
        {},
        optional={
            "rate": st.integers(1, 10**6).map(str),
            "duration": st.integers(10_000, 10**6).map("{}ms".format),
            "seed": st.integers(0, 2**63 - 1).map(str),
            "campaigns": st.integers(1, 10**4).map(str),
            "watermark": st.integers(20, 90).map("{}s".format),
            "disorder": st.sampled_from(sorted(PRESETS)),
            "sink": st.sampled_from([claim.name for claim in fake.MANIFEST.sinks]),
            "fault": st.sampled_from(["none", "kill@c1:batch=7", "kill@offset=25%"]),
            "conf": st.just(["misbehave=drop:5"]),
        },
    ),
)
def test_what_reproduces_a_run_resolves_to_the_same_run(scenario, flags):
    try:
        spec = _resolve({"engine": "fake", **flags}, scenario)
    except UsageError:
        return
    recipe = reproduce.recipe_of(spec, fake.MANIFEST)

    assert recipe.resolve(fake.MANIFEST) == spec


def test_the_flags_of_run_are_known_to_what_reproduces_it():
    accepted = set(inspect.signature(run).parameters)

    assert set(reproduce.IN_FILES) == set(KEYS) - accepted


def test_shares_that_nobody_knows_are_not_told_as_none_at_all(good):
    said = "of the cells never reached their final value"
    assert said in html_of(good)

    good.write_json("measurement.json", replace(pages.MEASURED, never_final_share=None, dipped_share=None))

    assert said not in html_of(good)


def test_what_the_job_sets_by_itself_stands_on_the_fairness_card(good):
    assert "The job does not report its own settings." in html_of(good)

    tell_settings(str(good.path / "progress.jsonl"), {"spark.sql.shuffle.partitions": "2"})
    shown = html_of(good)
    assert "spark.sql.shuffle.partitions" in shown
    assert "does not report its own settings" not in shown

    (good.path / "engine_settings.json").write_text('{"spark.sql.shuffle')
    shown = html_of(good)
    assert "own settings are not known." in shown
    assert "Machine and versions" in shown
