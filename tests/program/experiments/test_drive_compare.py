"""A driven comparison on the fake engine: what it keeps, how it goes on, its page, and what it refuses."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from harness import __version__
from harness.drivers import compare as drive_compare
from harness.drivers import one_run
from harness.engines import environments
from harness.experiments import compare
from harness.experiments.compare import Leg
from harness.experiments.folder import FILE, Folder
from harness.experiments.searching import search
from harness.install import environment
from harness.model import Exit, UsageError
from reports import compare_page, compared
from tests.program import pages
from tests.program.calls import breaks_off, invoked, kept, only

FAST = ["compare", "fake", "--window", "2s", "--campaigns", "5", "--rate", "100", "--duration", "10s"]


@pytest.fixture
def call(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", lambda: {"streamgauge": __version__})
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)  # drawing takes longer than the runs
    monkeypatch.setattr(compare, "with_reference", tuple)  # which would be a process on a real Kafka
    quick = replace(compare.QUICK, catch_up_per_s=200.0, warm_s=3, frozen_s=5)
    monkeypatch.setattr(compare, "QUICK", quick)
    return lambda *arguments: invoked(*FAST, "--quick", *arguments)


def resume(path, *arguments):
    return invoked("compare", "--resume", path, *arguments)


def test_each_leg_is_run_and_kept_and_told(call, tmp_path):
    done = call("--json")

    told, path = json.loads(done.stdout), only(tmp_path / "experiments")
    assert done.exit_code == told["exit"] == Exit.PASS
    assert [each["case"]["leg"] for each in kept(path)["done"]] == list(Leg)
    assert {each["run"] for each in kept(path)["done"]} == {f"runs/{run.name}" for run in (path / "runs").iterdir()}
    [row] = told["engines"]
    assert {"p50_ms", "p99_ms", "first_output_s"} <= set(row["figures"])


def test_the_page_is_whole_and_names_what_differs(call, tmp_path):
    call()
    path = only(tmp_path / "experiments")
    page = compare_page.page_of(compared.read(Folder(path)))

    assert [section.id for section in page.sections] == [
        "table",
        "bars",
        "latency",
        "fairness",
        "runs",
        "reproduce",
        "next",
    ]
    assert [section.missing for section in page.sections] == [()] * 7
    assert {picture.name for picture in page.pictures} == {"bars", "latency"}
    assert "<html" in (path / "report.html").read_text()
    assert "| fake | PASS |" in (path / "table.md").read_text()
    suite = ET.parse(path / "junit.xml").getroot()[0]
    assert [case.get("name") for case in suite.iter("testcase")] == [
        f"{each['case']['leg']}, seed {each['case']['seed']}" for each in kept(path)["done"]
    ]
    assert {case.get("classname") for case in suite.iter("testcase")} == {"streamgauge.ad-impressions.fake"}
    assert (path / "summary.md").read_text().startswith("## streamgauge compare: PASS")
    assert page.sections[-2].code == (
        "./streamgauge compare fake --quick --rate 100 --duration 10s --campaigns 5 --window 2s",
    )


def test_an_objective_is_that_of_the_steady_leg_and_hides_no_figures(call, tmp_path):
    done = call("--objective-p99-ms", "1", "--json")

    told, runs = json.loads(done.stdout), kept(only(tmp_path / "experiments"))["done"]
    assert [each["outcome"] for each in runs] == ["FAIL", "PASS", "PASS"]
    assert done.exit_code == Exit.FAIL
    [row] = told["engines"]
    assert {"p50_ms", "p99_ms", "first_output_s"} <= set(row["figures"])
    assert told["sentence"] == "all 1 engines counted right in every run; fake misses the objective"


def test_a_watermark_that_is_asked_for_is_that_of_every_leg(call, tmp_path):
    call("--watermark", "90s")

    specs = [json.loads(file.read_text()) for file in only(tmp_path / "experiments").glob("runs/*/spec.json")]
    assert [spec["watermark_ms"] for spec in specs] == [90_000] * len(Leg)


def test_one_that_was_broken_off_goes_on_where_it_was(call, tmp_path, monkeypatch):
    runs = breaks_off(monkeypatch, 2)
    call()
    first = kept(only(tmp_path / "experiments"))["done"]
    unfinished = compared.read(Folder(only(tmp_path / "experiments"))).found
    early = invoked("report", str(only(tmp_path / "experiments")))
    done = resume(only(tmp_path / "experiments"), "--json")

    assert len(first) == 1
    assert unfinished.sentence == "all 1 engines counted right in every run that was made; 2 runs are missing"
    assert unfinished.rows[0].sentence.startswith("not run: catch-up, seed ")
    assert early.exit_code == Exit.PASS
    assert Path(early.stdout.splitlines()[0]) == only(tmp_path / "experiments") / "report.html"
    assert done.exit_code == Exit.PASS
    assert kept(only(tmp_path / "experiments"))["done"][:1] == first
    assert len(runs) == 1 + len(Leg)


def test_a_password_of_redis_reaches_every_run_and_no_file(call, tmp_path, monkeypatch, redis_claims):
    address = "redis://:geheim@host:6379/1"
    monkeypatch.setattr(search, "QUICK", pages.FEW_RATES)
    call("--search", "--redis", address, "--reset")
    path = only(tmp_path / "experiments")

    assert set(redis_claims) == {address}
    assert len(redis_claims) > len(Leg)
    assert not [each for each in path.rglob("*") if each.is_file() and b"geheim" in each.read_bytes()]
    page = compare_page.page_of(compared.read(Folder(path)))
    (curves,) = (each for each in page.sections if each.id == "throughput")
    assert curves.picture
    assert "p99 of latency against the rate of fake" in curves.picture.alt
    assert list((path / "figures").glob("throughput-*-fake.csv"))
    section = page.sections[-2]
    assert "--redis 'redis://***@host:6379/1' --reset" in section.code[0]
    assert "not stored" in section.text[0]
    with pytest.raises(UsageError, match="are not stored"):
        resume(path)


@pytest.mark.parametrize(
    "arguments",
    [["fake"], ["--quick"], ["--search"], ["--repeat", "2"], ["--rate", "5"], ["--no-reset"], ["--conf", "a=b"]],
)
def test_what_is_asked_beside_resume_is_refused_by_name(call, tmp_path, monkeypatch, arguments):
    monkeypatch.setattr(drive_compare, "drive", lambda *_: None)
    call()

    name = "ENGINES" if arguments == ["fake"] else arguments[0]
    with pytest.raises(UsageError, match=f"{name.replace('--no-', '--')} can't be combined with --resume"):
        resume(only(tmp_path / "experiments"), *arguments)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda found: found["asked"]["settings"].pop("load_s"), "differ in load_s"),
        (lambda found: found["asked"]["settings"].update(new=1), "differ in new"),
        (lambda found: found["environment"].update(streamgauge="0.0.9"), "with version 0.0.9"),
    ],
)
def test_one_of_another_version_is_not_gone_on_with(call, tmp_path, monkeypatch, damage, sentence):
    monkeypatch.setattr(drive_compare, "drive", lambda *_: None)
    call()
    found = kept(only(tmp_path / "experiments"))
    damage(found)
    (only(tmp_path / "experiments") / FILE).write_text(json.dumps(found))

    with pytest.raises(UsageError, match=sentence):
        resume(only(tmp_path / "experiments"))


def test_no_page_is_made_from_settings_that_are_not_whole(call, tmp_path, monkeypatch):
    monkeypatch.setattr(drive_compare, "drive", lambda *_: None)
    call()
    found = kept(only(tmp_path / "experiments"))
    del found["asked"]["settings"]["load_s"]
    (only(tmp_path / "experiments") / FILE).write_text(json.dumps(found))

    with pytest.raises(UsageError, match="differ in load_s"):
        compared.read(Folder(only(tmp_path / "experiments")))


def test_the_command_that_does_it_again_can_be_typed(call, tmp_path, monkeypatch):
    monkeypatch.setattr(one_run, "check_external", lambda _: None)
    monkeypatch.setattr(one_run, "claim_external", lambda *_: [])
    monkeypatch.setattr(drive_compare, "drive", lambda *_: None)
    said = ["--redis", "redis://host:6379/1", "--reset", "--conf", "misbehave=slow:9", "--objective-p99-ms", "9"]
    call(*said)

    told = shlex.split(compare_page.command(compared.read(Folder(only(tmp_path / "experiments")))))
    assert told[:4] == ["./streamgauge", "compare", "fake", "--quick"]
    assert " ".join(told[4:]).endswith("--reset --conf misbehave=slow:9 --objective-p99-ms 9")


def test_an_engine_that_can_not_be_killed_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifest.toml").write_text(
        'id = "mine"\ncommand = ["true", "{config}"]\nresumes = false\n'
        '[[sinks]]\nname = "x"\nlate = "keep"\nguarantee = "none"\n'
    )

    with pytest.raises(UsageError, match=r"can.t be compared"):
        drive_compare.begin([str(tmp_path)], compare.QUICK, {}, tmp_path / "experiments")
    assert not (tmp_path / "experiments").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--repeat", "x"], "repeat = 'x'"),
        (["--repeat", "2.5"], "repeat = '2.5'"),
        (["--repeat", "0"], "repeat = '0'"),
        (["--redis", "redis://host:6379/1"], "3 runs share one existing Redis .* --reset"),
        (["--redis", "redis://host:6379/1", "--repeat", "2"], "--reset"),
    ],
)
def test_mistakes_are_told_before_anything_is_installed(call, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.setattr(environments, "prepare", lambda *_: pytest.fail("it was installed"))

    with pytest.raises(UsageError, match=sentence):
        call(*arguments)
    assert not (tmp_path / "experiments").exists()


def test_rounds_that_are_asked_for_are_made(call, tmp_path, monkeypatch):
    monkeypatch.setattr(drive_compare, "drive", lambda *_: None)
    call("--repeat", "2.0")

    assert len(kept(only(tmp_path / "experiments"))["wanted"]) == 2 * len(Leg)


def test_nothing_to_compare_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match="Name the engines to compare"):
        invoked("compare")
