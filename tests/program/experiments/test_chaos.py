"""Chaos: what is planned, which class a run is of, what a cell of the card says, and whole experiments on the fake."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from harness.drivers import chaos as drive_chaos
from harness.drivers import one_run, replay
from harness.engines import fake
from harness.engines import manifest as manifests
from harness.experiments import chaos
from harness.experiments.chaos import ChaosCase, Ran, Rows, Seen, Wrong, classified
from harness.experiments.folder import Folder
from harness.experiments.upgrade import Word
from harness.faults import evidence, registry
from harness.install import environment
from harness.judging.stored_run import StoredRun
from harness.measuring.measurement import Lack, Quantity, Recovery
from harness.model import CheckResult, Exit, FaultReport, FaultSpec, HarnessError, Outcome, UsageError, Verdict
from reports import chaos_page
from reports.card import of as card_of
from reports.figures import guarantee
from reports.page import render
from tests.program.calls import breaks_off, invoked, kept, only

KINDS = registry.FAULTS
TEST_ENGINES = Path(__file__).parents[2] / "engines"
LANDED = FaultReport(FaultSpec("kill@c3:batch=3", "kill"), True, True, "seen", at_ms=1)
NOTHING = Wrong()
MISSED = replace(LANDED, landed=False)
ABSENT = replace(LANDED, landed=False, reachable=False)
SINKS = {"spark": ("absolute", "increment"), "reference": ("transaction",)}


def verdict(*, engine="PASS", fault="PASS", **failed: int) -> Verdict:
    """The named checks fail with their counts."""
    checks = [CheckResult(name, Outcome.FAIL, name, word=name, count=count) for name, count in failed.items()]
    checks += [CheckResult("engine", Outcome(engine), "engine"), CheckResult("fault", Outcome(fault), "fault")]
    outcome = Outcome.worst([check.outcome for check in checks])
    return Verdict(outcome, "a sentence", 0, tuple(checks), {})


@pytest.mark.parametrize(
    ("failed", "seen"),
    [
        ({}, Seen.EXACTLY_ONCE),
        ({"duplicated": 3}, Seen.AT_LEAST_ONCE),
        ({"phantom": 1}, Seen.AT_LEAST_ONCE),
        ({"lost": 3}, Seen.AT_MOST_ONCE),
        ({"lost": 3, "duplicated": 1}, Seen.NONE),
        ({"masked": 1}, Seen.NONE),
        ({"readable": 0}, Seen.NONE),
        ({"ambiguous": 1}, Seen.NONE),
        ({"stopped": 1}, Seen.NONE),
        ({"late": 7}, Seen.EXACTLY_ONCE),  # a bound of its own, which is no guarantee of the sink's
    ],
)
def test_the_class_of_a_run_follows_from_its_counts(failed, seen):
    assert classified(verdict(**failed), [LANDED], "drained", planned=True)[0] is seen


@pytest.mark.parametrize(
    ("found", "state", "seen"),
    [
        (verdict(engine="FAIL"), "crashed", Seen.STOPPED),
        (verdict(engine="FAIL", fault="UNKNOWN"), "crashed", Seen.STOPPED),  # it never healed, for it never came back
        (verdict(engine="FAIL", duplicated=2), "crashed", Seen.AT_LEAST_ONCE),
        (verdict(engine="FAIL"), "stuck", Seen.STUCK),
        (verdict(fault="UNKNOWN"), "drained", Seen.UNKNOWN),
    ],
)
def test_an_engine_that_is_gone_is_of_its_own_class(found, state, seen):
    assert classified(found, [LANDED], state, planned=True)[0] is seen


@pytest.mark.parametrize(
    ("failed", "claim", "words"),
    [
        ({"duplicated": 3}, "at-least-once", "within the declared guarantee at-least-once"),
        ({"duplicated": 3}, "exactly-once", "breaks the declared guarantee exactly-once"),
        ({"lost": 3}, "at-least-once", "breaks the declared guarantee at-least-once"),
        ({"lost": 3}, "at-most-once", "within the declared guarantee at-most-once"),
        ({"lost": 3, "duplicated": 1}, "none", "within the declared guarantee none"),
        ({"late": 7}, "exactly-once", ""),
        ({}, "exactly-once", ""),
    ],
)
def test_a_fail_says_whether_the_sink_declares_as_much(failed, claim, words):
    found = replace(verdict(**failed), outcome=Outcome.FAIL if failed else Outcome.PASS)

    assert chaos.against_claim(found, [LANDED], "drained", claim, planned=True) == words


def test_what_could_have_been_late_and_was_lost_is_lost():
    late = CheckResult("late", Outcome.FAIL, "", "lost", 7)

    assert chaos.wrong_of(Verdict(Outcome.FAIL, "", 0, (late,), {})) == Wrong(lost=7)


def test_without_a_fault_that_landed_nothing_is_known():
    assert classified(verdict(lost=1), [MISSED], "drained", planned=True)[0] is Seen.UNKNOWN
    assert classified(verdict(fault="UNKNOWN"), [ABSENT], "drained", planned=True)[0] is Seen.NOT_POSSIBLE
    assert classified(verdict(), [], "drained", planned=False)[0] is Seen.EXACTLY_ONCE


def cell(*runs: Ran, claim="exactly-once") -> chaos.Cell:
    (only,) = chaos.card(runs, {("spark", "absolute"): claim}).cells
    return only


def ran(seen: Seen, run="runs/1", wrong=NOTHING, fault="kill@c3:batch=3", recovery=()) -> Ran:
    return Ran(ChaosCase("spark", "absolute", fault, 1), seen, f"it was {seen}", run, wrong, (), recovery)


def test_over_its_runs_a_cell_adds_up_what_was_wrong():
    lost = ran(Seen.AT_MOST_ONCE, "runs/2", Wrong(lost=1))
    doubled = ran(Seen.AT_LEAST_ONCE, "runs/3", Wrong(duplicated=1))
    right = ran(Seen.EXACTLY_ONCE)

    assert cell(right, right).seen is Seen.EXACTLY_ONCE
    assert cell(right, lost).seen is Seen.AT_MOST_ONCE
    assert cell(right, lost).witness == "runs/2"
    assert cell(doubled, lost).seen is Seen.NONE
    assert cell(right, ran(Seen.STOPPED)).seen is Seen.STOPPED
    assert cell(right, ran(Seen.UNKNOWN)).seen is Seen.EXACTLY_ONCE
    assert cell(ran(Seen.UNKNOWN), ran(Seen.NOT_POSSIBLE)).seen is Seen.UNKNOWN
    assert cell(right, ran(Seen.STUCK)).seen is Seen.STUCK


@pytest.mark.parametrize(
    ("claim", "kept"),
    [
        ("exactly-once", {Seen.EXACTLY_ONCE, Seen.STOPPED}),
        ("at-least-once", {Seen.EXACTLY_ONCE, Seen.AT_LEAST_ONCE, Seen.STOPPED}),
        ("at-most-once", {Seen.EXACTLY_ONCE, Seen.AT_MOST_ONCE, Seen.STOPPED}),
        ("none", {Seen.EXACTLY_ONCE, Seen.AT_LEAST_ONCE, Seen.AT_MOST_ONCE, Seen.NONE, Seen.STOPPED}),
    ],
)
def test_which_classes_keep_a_claim(claim, kept):
    wrong = {Seen.AT_LEAST_ONCE: Wrong(duplicated=1), Seen.AT_MOST_ONCE: Wrong(lost=1), Seen.NONE: Wrong(1, 1)}
    for seen in Seen:
        found = cell(ran(seen, wrong=wrong.get(seen, NOTHING)), claim=claim).kept
        assert found is (None if seen in chaos.UNDECIDED else seen in kept), seen


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        ([Seen.EXACTLY_ONCE, Seen.STOPPED, Seen.NOT_POSSIBLE], Outcome.PASS),
        ([Seen.EXACTLY_ONCE, Seen.UNKNOWN], Outcome.UNKNOWN),
        ([Seen.STUCK, Seen.UNKNOWN], Outcome.FAIL),
        ([Seen.NOT_POSSIBLE], Outcome.UNKNOWN),
        ([], Outcome.UNKNOWN),
    ],
)
def test_a_card_is_as_bad_as_its_worst_cell(seen, outcome):
    done = [ran(each, fault=f"kill@batch>={number}") for number, each in enumerate(seen)]

    assert chaos.card(done, {("spark", "absolute"): "exactly-once"}).outcome is outcome


def recovered(**values: float | None) -> tuple[Recovery, ...]:
    return (Recovery("kill", 1.0, 1.0, 9.0, {name: Quantity(value, "a note") for name, value in values.items()}),)


def test_figures_are_the_middle_of_the_runs_and_unreached_where_one_was():
    runs = [
        ran(Seen.EXACTLY_ONCE, recovery=recovered(detect_s=s, catch_up_s=c)) for s, c in ((1, 2), (5, None), (2, 3))
    ]
    figures = cell(*runs).recovery

    assert figures["detect_s"].value == 2
    assert figures["catch_up_s"].value is None
    assert cell(ran(Seen.EXACTLY_ONCE, recovery=(*recovered(detect_s=1), *recovered(detect_s=4)))).recovery[
        "detect_s"
    ] == Quantity(4, "a note"), "of a plan of several faults the worst"


def test_cases_are_crossed_in_the_order_written_and_none_twice():
    rows = [Rows("spark", ("kill@c3", "kill@c2")), Rows("spark", ("kill@c3",)), Rows("reference", ("kill@now",))]

    found = [(case.engine, case.sink, case.fault) for case in chaos.crossed(rows, SINKS, KINDS)]

    assert found == [
        ("spark", "absolute", "kill@c3"),
        ("spark", "absolute", "kill@c2"),
        ("spark", "increment", "kill@c3"),
        ("spark", "increment", "kill@c2"),
        ("reference", "transaction", "kill@now"),
    ]


def test_every_fault_has_a_usual_moment_that_can_be_written():
    cases = chaos.crossed([Rows("reference", ("every",))], SINKS, KINDS)

    assert [registry.parse(case.fault).action for case in cases] == list(KINDS)


def test_pairs_are_drawn_from_the_seed_and_can_be_written():
    cases = chaos.crossed([Rows("spark", ("kill@c3",))], SINKS, KINDS)

    first, again, other = (chaos.drawn(cases, 8, seed, KINDS) for seed in (1, 1, 2))

    assert first == again != other
    assert all(len(registry.parse(case.fault).steps) == 2 for case in first)


def test_each_seed_has_its_twin_before_its_faults():
    cases = [ChaosCase("spark", "absolute", fault, 0) for fault in ("kill@c3", "kill@c2")]

    found = [(case.fault, case.seed) for case in chaos.runs_of(cases, 5, 2, twins=True)]

    assert found == [("none", 5), ("kill@c3", 5), ("none", 6), ("kill@c3", 6), ("kill@c2", 5), ("kill@c2", 6)]
    assert all(case.fault != "none" for case in chaos.runs_of(cases, 5, 2, twins=False))


@pytest.mark.parametrize("name", chaos.tiers())
def test_the_shipped_tiers_can_be_planned(name):
    tier = chaos.read_tier(name)
    sinks = {row.engine: [claim.name for claim in manifests.load(row.engine).sinks] for row in tier.cases}
    cases = chaos.crossed(tier.cases, sinks, KINDS)

    for case in cases:
        assert case.sink in sinks[case.engine]
        assert registry.parse(case.fault).planned
    assert name != "pr" or len(cases) <= 15


def test_what_is_no_tier_is_told_what_is(tmp_path):
    with pytest.raises(UsageError, match="nearest: 'nightly'"):
        chaos.read_tier("nigtly")
    (tmp_path / "mine.toml").write_text("[[cases]]\nengine = 'spark'\nfaults = 'kill@c3'\n")
    with pytest.raises(UsageError, match="can't be read"):
        chaos.read_tier(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize(
    ("line", "near"), [("twin = true", "twins"), ("\n[[cases]]\nengine = 'fake'\nsink = ['x']", "sinks")]
)
def test_a_key_of_a_tier_that_nobody_reads_is_refused(tmp_path, line, near):
    mine = tmp_path / "mine.toml"
    whole = "[[cases]]\nengine = 'fake'\nfaults = ['kill@c3']\n"
    mine.write_text(f"{line}\nfaults = ['kill@c3']\n" if "cases" in line else f"{line}\n{whole}")

    with pytest.raises(UsageError, match=f"unknown key .* \\(nearest: '{near}'\\)"):
        chaos.read_tier(str(mine))


MINE = "mine.toml"
FAST = ["--rate", "200", "--duration", "12s", "--window", "4s", "--campaigns", "5"]


@pytest.fixture
def third_breaks_off(monkeypatch) -> list[object]:
    return breaks_off(monkeypatch, 3)


@pytest.fixture
def call(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", dict)
    monkeypatch.setattr(one_run, "write_page", lambda place, _: place.write_bytes("report.html", b""))
    rows = "[[cases]]\nengine = 'fake'\nsinks = ['absolute', 'increment']\nfaults = ['kill@c3:batch=3']\n"
    (tmp_path / MINE).write_text(f"# two\ntwins = true\n{rows}")
    return invoked


def test_a_whole_experiment_ends_in_the_card_in_all_its_forms(call, tmp_path):
    done = call("chaos", "--tier", MINE, *FAST)
    path = only(tmp_path / "experiments")

    assert done.exit_code == Exit.PASS, done.stdout
    assert max(map(len, done.stdout.splitlines())) < 80 or str(path) in done.stdout
    told = json.loads((path / "card.json").read_text())
    found = {(cell["sink"], cell["fault"]): cell for cell in told["cells"]}
    assert {key: cell["seen"] for key, cell in found.items()} == {
        ("absolute", "none"): "exactly once",
        ("absolute", "kill@c3:batch=3"): "exactly once",
        ("increment", "none"): "exactly once",
        ("increment", "kill@c3:batch=3"): "at least once",
    }
    killed = found["absolute", "kill@c3:batch=3"]
    assert killed["recovery"]["longest_silence_s"]["over_twin"] is not None
    assert (path / killed["witness"] / "recovery.json").is_file()
    text = (path / "card.md").read_text()
    assert f"[{(path / killed['witness']).name}]({killed['witness']}/summary.md)" in text
    html = (path / "report.html").read_text()
    assert f'href="{killed["witness"]}/report.html"' in html
    assert "<h1>Guarantee card</h1>" in html


def test_what_a_sink_claims_is_said_by_the_job_of_the_question(tmp_path):
    case = ChaosCase("spark-tws", "kafka", "kill@offset=50%", 1)
    settings = {"keys": {}, "flags": {"workload": "enrichment"}}
    Folder(tmp_path).save("chaos", settings=settings, done=[Ran(case, Seen.EXACTLY_ONCE, "all counted")])

    (cell,) = card_of(Folder(tmp_path)).cells

    assert cell.claim == manifests.load("spark-tws", "enrichment").sink("kafka").guarantee


def test_the_page_of_a_chaos_says_when_where_and_how_and_shows_it(call, tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "describe", lambda: {"machine": "a PDP-11", "packages": {"numpy": "2.4"}})
    call("chaos", "--tier", MINE, *FAST, "--seed", "7")
    path = only(tmp_path / "experiments")
    page = chaos_page.page_of(chaos_page.read(Folder(path)))
    tables = {section.id: section.tables for section in page.sections}

    assert re.search(r"seed 7, .*rate 200.*, 20\d\d-\d\d-\d\d \d\d:\d\d", page.subtitle)
    assert [picture.name for picture in page.pictures] == ["card"]
    assert ("machine", "a PDP-11") in tables["fairness"][0].rows
    assert [row[1] for row in tables["runs"][0].rows] == ["none", "kill@c3:batch=3"] * 2
    (command,) = next(section.code for section in page.sections if section.id == "reproduce")
    assert command.startswith(f"./streamgauge chaos --tier {MINE} ")
    monkeypatch.setattr(drive_chaos, "drive", lambda place, settings: chaos.card([], {}))
    call("chaos", *shlex.split(command)[2:])
    (again,) = {*path.parent.iterdir()} - {path}
    for asked in ("settings", "wanted"):
        assert Folder(again).load(asked, object) == Folder(path).load(asked, object)
    html = (path / "report.html").read_text()
    links = [link for link in re.findall(r'href="([^"#][^"]*)"', html) if not link.startswith("data:")]
    assert [link for link in links if not (path / link).exists()] == []
    assert {"junit.xml", "summary.md", "card.md", "experiment.json"} <= set(links)


def test_the_sections_of_engines_that_are_paths_can_be_linked_to(tmp_path):
    elsewhere = replace(ran(Seen.NONE), case=ChaosCase("my jobs/a b", "absolute", "none", 1))
    cells = chaos.card([elsewhere], {("my jobs/a b", "absolute"): "none"})
    settings = {"scenario": "calm", "keys": {}, "flags": {}}
    found = chaos_page.Chaos(Folder(tmp_path), cells, settings, {}, (elsewhere.case,), (elsewhere,))

    assert "on-my-jobs-a-b-absolute" in [section.id for section in chaos_page.page_of(found).sections]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("change-job@t>=12s", "the same job"),
        ("change-job(stop=clean)@offset>=40%", "stop=clean"),
        ("change-job(to=spark@4.1.3)@t>=12s", "to=spark@4.1.3"),
        ("change-job(counts=click, means=carry)@c3:batch=6", "counts=click, means=carry@c3:batch=6"),
        ("change-job(stop=clean, conf=a.b.c.Name=x.y.Class+d.e.f=1)@t>=12s", "stop=clean, c.Name=y.Class + e.f=1"),
        ("change-partitions(to=4)@t>=12s", "change-partitions(to=4)"),
    ],
)
def test_a_change_has_a_short_name_in_the_picture(change, name):
    assert chaos_page.named(change) == name


def test_changes_of_several_engines_are_drawn_as_one_table_by_their_words(tmp_path):
    told = [
        replace(ran(Seen.EXACTLY_ONCE), case=ChaosCase(engine, "absolute", f"change-job@{moment}", 1), came=came)
        for engine, moment, came in (("spark", "t>=12s", "right"), ("flink", "offset>=40%", "refused"))
    ]
    card = chaos.card(told, {(each.case.engine, "absolute"): "none" for each in told})
    settings = {"scenario": "calm", "keys": {}, "flags": {}}
    found = chaos_page.Chaos(Folder(tmp_path), card, settings, {}, tuple(each.case for each in told), tuple(told))
    (section,) = (each for each in chaos_page.page_of(found).sections if each.id == "changes")

    assert section.picture is not None
    assert section.picture.alt == "spark/absolute, the same job: right; flink/absolute, the same job: refused"
    assert set(Word) < set(guarantee.LOOKS)


def test_a_chaos_that_was_broken_off_has_a_page_that_says_what_is_missing(call, tmp_path, third_breaks_off):
    call("chaos", "--tier", MINE, *FAST)
    path = only(tmp_path / "experiments")
    done = call("report", path)

    assert done.exit_code == 0, done.output
    html = (path / "report.html").read_text()
    assert "2 of 4 runs are missing" in html
    assert f"./streamgauge chaos --resume experiments/{path.name}" in html
    suite = ET.parse(path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("errors")) == ("4", "2")


def test_a_chaos_is_told_to_a_ci_job(call, tmp_path):
    asked = ["--engine", "fake", "--sink", "absolute", "--fault", "kill@c3:batch=3", "--conf", "misbehave=drop:50"]
    call("chaos", "--tier", MINE, *FAST, *asked, "--fault", "kill-executor@now")
    path = only(tmp_path / "experiments")
    suite = ET.parse(path / "junit.xml").getroot()[0]
    found = {case.get("name"): case for case in suite.iter("testcase")}

    assert {case.get("classname") for case in found.values()} == {"streamgauge.calm.fake.absolute"}
    assert list(found) == ["none, seed 1", "kill@c3:batch=3, seed 1", "kill-executor@now, seed 1"]
    assert [case[0].tag for case in found.values()] == ["failure", "failure", "skipped"]
    times_s = [float(case.attrib["time"]) for case in found.values()]
    assert (times_s[0] > 0, times_s[-1]) == (True, 0)
    assert float(suite.attrib["time"]) == pytest.approx(sum(times_s))
    assert datetime.fromisoformat(suite.attrib["timestamp"])
    assert [suite.get(each) for each in ("tests", "failures", "errors", "skipped")] == ["3", "2", "0", "1"]
    properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
    assert properties["command"].startswith("./streamgauge chaos")
    summary = (path / "summary.md").read_text()
    assert summary.startswith("## streamgauge chaos: FAIL\n")
    assert "| `kill@c3:batch=3, seed 1` | streamgauge.calm.fake.absolute | FAIL |" in summary
    runs = re.findall(r"`(runs/[^`]*)`", summary)
    assert len(runs) == 2
    assert [run for run in runs if not (path / run / "report.html").is_file()] == []
    assert "](" not in summary, "a link would lead nowhere from the page of a CI job"


def test_a_cell_below_its_claim_fails_and_is_named_with_its_witness(call, tmp_path):
    asked = ["--engine", "fake", "--sink", "absolute", "--fault", "kill@c3:batch=3", "--conf", "misbehave=drop:50"]
    done = call("chaos", "--tier", MINE, *FAST, *asked)

    assert done.exit_code == Exit.FAIL
    assert "at most once !" in done.stdout
    (broken,) = (json.loads((only(tmp_path / "experiments") / "card.json").read_text())["cells"][1],)
    assert broken["witness"] in done.stdout


def test_what_is_not_possible_is_not_run_and_decides_nothing(call, tmp_path):
    done = call(
        "chaos", "--tier", MINE, *FAST, "--engine", "fake", "--sink", "absolute", "--fault", "kill-executor@now"
    )

    told = json.loads((only(tmp_path / "experiments") / "card.json").read_text())
    (impossible,) = (cell for cell in told["cells"] if cell["fault"] == "kill-executor@now")
    assert (impossible["seen"], impossible["runs"], impossible["witness"]) == ("n/a", 0, "")
    assert impossible["sentence"]
    assert done.exit_code == Exit.PASS


def test_a_fault_under_which_the_harness_breaks_is_unknown_and_the_others_go_on(call, monkeypatch):
    whole, runs = one_run.drive, []

    def second_breaks(*arguments, **others):
        runs.append(arguments)
        if len(runs) == 2:
            raise HarnessError("the machine went away.")
        return whole(*arguments, **others)

    monkeypatch.setattr(one_run, "drive", second_breaks)
    done = call("chaos", "--tier", MINE, *FAST, "--json")

    told = json.loads(done.stdout)
    assert done.exit_code == told["exit"] == Exit.UNKNOWN
    assert [cell["seen"] for cell in told["cells"]] == ["exactly once", "unknown", "exactly once", "at least once"]
    assert "the machine went away" in told["cells"][1]["sentence"]
    again = json.loads(call("chaos", "--resume", told["experiment"], "--json").stdout)
    assert sorted(cell["seen"] for cell in again["cells"]) == ["at least once", *["exactly once"] * 3]
    assert len(runs) == 5, "only the broken one was tried again"


def test_an_experiment_that_was_broken_off_goes_on_where_it_was(call, tmp_path, third_breaks_off):
    call("chaos", "--tier", MINE, *FAST)
    path = only(tmp_path / "experiments")
    assert len(kept(path)["done"]) == 2
    done = call("chaos", "--resume", path)

    assert done.exit_code == Exit.PASS
    assert len(third_breaks_off) == 5, "the broken one was made again, and no other"


def test_a_password_of_redis_reaches_every_run_and_no_file(call, tmp_path, redis_claims):
    address = "redis://:geheim@host:6379/1"
    call("chaos", "--tier", MINE, *FAST, "--sink", "absolute", "--redis", address, "--reset")
    path = only(tmp_path / "experiments")

    assert set(redis_claims) == {address}
    assert "redis://***@host:6379/1" in (path / "report.html").read_text()
    assert not [each for each in path.rglob("*") if each.is_file() and b"geheim" in each.read_bytes()]
    with pytest.raises(UsageError, match="are not stored"):
        call("chaos", "--resume", path)


def test_one_database_for_many_cases_has_to_be_one_that_may_be_emptied(call, tmp_path):
    with pytest.raises(UsageError, match=r"runs share one existing Redis .* --reset"):
        call("chaos", "--tier", MINE, *FAST, "--redis", "redis://host:6379/1")

    assert not (tmp_path / "experiments").exists()


def test_a_password_of_redis_in_a_tier_is_in_no_file_either(call, tmp_path, monkeypatch):
    monkeypatch.setattr(one_run, "check_external", lambda _: None)
    monkeypatch.setattr(one_run, "claim_external", lambda *_: [])
    keys = "[keys]\nredis = 'redis://:geheim@host:6379/1'\nreset = true\n"
    (tmp_path / MINE).write_text((tmp_path / MINE).read_text() + keys)
    call("chaos", "--tier", MINE, *FAST, "--sink", "absolute")

    path = only(tmp_path / "experiments")
    assert not [each for each in path.rglob("*") if each.is_file() and b"geheim" in each.read_bytes()]


def test_rounds_take_the_next_seeds_each_with_its_twin(call, tmp_path):
    call("chaos", "--tier", MINE, *FAST, "--sink", "absolute", "--repeat", "2", "--seed", "7")

    done = kept(only(tmp_path / "experiments"))["done"]
    assert [(each["case"]["fault"], each["case"]["seed"]) for each in done] == [
        ("none", 7),
        ("kill@c3:batch=3", 7),
        ("none", 8),
        ("kill@c3:batch=3", 8),
    ]


def test_mistakes_are_told_before_anything_is_run(call, tmp_path):
    for arguments in (["--fault", "kil@c3"], ["--sink", "nowhere"], ["--rate", "-5"]):
        with pytest.raises(UsageError):
            call("chaos", "--tier", MINE, *arguments)
    assert not (tmp_path / "experiments").exists()


def test_the_list_of_faults_has_a_line_for_each_and_shows_its_evidence(call):
    shown, told = call("chaos", "--list").stdout, json.loads(call("chaos", "--list", "--json").stdout)

    assert [line.split()[0] for line in shown.splitlines()[1:-1]] == list(KINDS)  # in a pipe no cell is wrapped
    assert [each["name"] for each in told["faults"]] == list(KINDS)
    for each in told["faults"]:
        assert each["what"]
        assert each["correct"]


def test_every_fault_of_the_catalogue_was_seen_landing(call):
    seen = evidence.by_kind()

    assert [name for name in KINDS if name not in seen] == []
    assert "not yet" not in call("chaos", "--list").stdout


def evidence_lines():
    return [json.loads(line) for line in evidence.FILE.read_text(encoding="utf-8").splitlines()]


def test_each_line_of_the_committed_evidence_is_of_a_fault_that_landed_and_healed():
    for line in evidence_lines():
        assert set(line) == set(evidence.Evidence.__dataclass_fields__), line
        assert registry.parse(line["fault"]).action == line["kind"]
        assert line["proof"], line
        assert not re.search(r"did not land|n/a|not seen to be undone", line["proof"]), line
        assert line["healed"], line
        assert (line["outcome"], bool(line["words"])) in (("PASS", False), ("FAIL", True)), line


def test_no_evidence_is_committed_twice():
    lines = [(line["fault"], line["engine"], line["sink"]) for line in evidence_lines()]
    assert sorted(set(lines)) == sorted(lines)


def test_the_engines_of_the_evidence_have_the_sinks_that_are_named():
    for line in evidence_lines():
        of_the_tests = TEST_ENGINES / line["engine"]
        manifest = manifests.load(str(of_the_tests) if of_the_tests.is_dir() else line["engine"])
        assert line["sink"] in [claim.name for claim in manifest.sinks], line["fault"]


def test_torn_evidence_is_named_by_its_line(tmp_path):
    (tmp_path / "e.jsonl").write_text('{"fault": "x"\n')
    with pytest.raises(HarnessError, match="line 1"):
        evidence.by_kind(tmp_path / "e.jsonl")


def test_texts_of_a_card_are_texts_and_never_markup(tmp_path):
    evil = "<img src=x>"
    card = chaos.card([replace(ran(Seen.NONE), sentence=evil)], {("spark", "absolute"): "none"})

    assert evil not in _page_of(card, {"conf": evil}, tmp_path)


def lost_a_part(fault: str, **values: float | None) -> Ran:
    found = {name: Quantity(value, lack=None if value is not None else Lack.UNKNOWN) for name, value in values.items()}
    cpu = {"cpu_s": Quantity(80.0, over_twin=12.5)}
    return ran(Seen.EXACTLY_ONCE, fault=fault, recovery=(Recovery(fault, 10, 10, 30, {**found, **cpu}),))


def test_what_the_loss_of_each_part_of_a_cluster_cost_is_side_by_side(tmp_path):
    task = lost_a_part("kill-task@t>=10s", first_output_s=1.5, longest_silence_s=2.0, tasks_again=1.0)
    worker = lost_a_part("kill-worker@t>=10s", first_output_s=None, longest_silence_s=9.0, tasks_again=2.0)
    page = _page_of(chaos.card([task, worker], {("spark", "absolute"): "exactly-once"}), {}, tmp_path)

    assert "first output after the fault: kill-task 1.5 s, kill-worker not known" in page
    assert "CPU of the engine over its baseline run: kill-task 12.5 s, kill-worker 12.5 s" in page
    assert "What it cost" in page
    assert "80.0 s (+12.5)" in page


def test_without_a_cluster_there_is_no_picture_of_its_parts(tmp_path):
    runs = [lost_a_part(fault, first_output_s=1.5) for fault in ("kill@c3:batch=3", "stop@now")]

    assert "over its baseline run" not in _page_of(
        chaos.card(runs, {("spark", "absolute"): "exactly-once"}), {}, tmp_path
    )


def _page_of(card, flags, folder):
    settings = {"scenario": "calm", "keys": {}, "flags": flags}
    found = chaos_page.Chaos(Folder(folder), card, settings, {}, (ChaosCase("spark", "absolute", "none", 1),), ())
    return render(chaos_page.page_of(found))


def test_a_plan_that_is_run_again_ends_the_same(call, tmp_path):
    call("run", "--engine", "fake", *FAST, "--sink", "increment", "--fault", "kill@c3:batch=3")
    first = only(tmp_path / "runs")
    same = call("replay", first, "--json")
    told = json.loads(same.stdout)

    assert (same.exit_code, told["same"]) == (Exit.PASS, True)
    assert told["again"] != str(first)
    assert {"what": "fault 1", "before": told["lines"][3]["before"], "again": told["lines"][3]["before"]} == told[
        "lines"
    ][3]
    assert "landed at batch 3, replayed" in told["lines"][3]["before"]


def test_a_plan_of_another_checkout_is_run_on_the_engine_of_this_one(call, tmp_path):
    call("run", "--engine", "fake", *FAST)
    path = only(tmp_path / "runs")
    stored = json.loads((path / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps({**stored, "manifest": {**stored["manifest"], "home": "/elsewhere"}}))

    assert replay.planned(StoredRun.open(path))[1] == fake.MANIFEST


def test_a_plan_that_ends_otherwise_is_told_so(call, tmp_path):
    call("run", "--engine", "fake", *FAST, "--sink", "increment", "--fault", "kill@c3:batch=3")
    first = only(tmp_path / "runs")
    spec = json.loads((first / "spec.json").read_text())
    (first / "spec.json").write_text(json.dumps({**spec, "sink": "fenced"}))

    done = call("replay", first)

    assert done.exit_code == Exit.FAIL
    assert "verdict, words, class" in done.stdout


def test_what_is_unknown_is_not_compared(call, tmp_path):
    call("run", "--engine", "fake", *FAST, "--fault", "kill@c3:batch=99999")

    assert call("replay", only(tmp_path / "runs")).exit_code == Exit.UNKNOWN


def test_a_run_whose_password_was_not_kept_is_not_run_again(call, tmp_path):
    call("run", "--engine", "fake", *FAST)
    path = only(tmp_path / "runs")
    spec = json.loads((path / "spec.json").read_text())
    (path / "spec.json").write_text(json.dumps({**spec, "redis": "redis://***@host:6379"}))

    with pytest.raises(UsageError, match="password"):
        call("replay", path)
    (path / "spec.json").unlink()
    with pytest.raises(UsageError, match=r"spec\.json"):
        call("replay", path)
