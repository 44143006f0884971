"""`scale`, with runs that are made up: what is kept, how it goes on, its page, and what it refuses."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import __version__
from harness.drivers import one_run
from harness.drivers import scale as drive_scale
from harness.engines import environments
from harness.experiments.compare import BUSY_CPU, REFERENCE
from harness.experiments.folder import Folder
from harness.experiments.scale import RATE, Scaled, ScaleRun
from harness.host import cgroup, pinning, quota
from harness.install import environment
from harness.model import Exit, Outcome, RunSpec, UsageError, Verdict, workers_of_master
from reports import scale_page, scaled
from tests.program.calls import exit_code, invoked, kept, only

RIGHT = Verdict(Outcome.PASS, "counted right", 0, (), {})
ONE, CONTENTION = 40_000, 0.08


@dataclass(frozen=True)
class MadeUp:
    """Stands for the result of a run."""

    path: Path
    verdict: Verdict = RIGHT
    withheld: str = ""


def figures_on(spec: RunSpec) -> dict[str, float]:
    """Runs on the same cores differ by a per cent. A quota of half a core gives half a core's rate."""
    cores = spec.cores or workers_of_master(spec.master)
    rate = 70_000 if spec.engine == REFERENCE else ONE * cores / (1 + CONTENTION * (max(1, cores) - 1))
    return {RATE: rate * (1 + 0.01 * (spec.tape.seed % 3)), BUSY_CPU: 12.5}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The specs of the runs that were made."""
    made: list[RunSpec] = []
    figures: dict[Path, dict[str, float]] = {}

    def drive(spec, _manifest, out):
        made.append(spec)
        path = out / f"run-{len(made)}"
        path.mkdir(parents=True)
        figures[path] = figures_on(spec)
        return MadeUp(path)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", lambda: {"streamgauge": __version__})
    monkeypatch.setattr(environments, "prepare", lambda *_: None)
    monkeypatch.setattr(cgroup, "cores", lambda: 8.0)
    monkeypatch.setattr(pinning, "impossible", lambda _: "")
    monkeypatch.setattr(quota, "impossible", lambda _: "")
    monkeypatch.setattr(one_run, "drive", drive)
    monkeypatch.setattr(drive_scale, "figures_of", figures.__getitem__)
    return made


def scale(*arguments):
    return invoked("scale", "--engine", "spark", *arguments)


def found(tmp_path) -> Scaled:
    return scaled.read(Folder(only(tmp_path / "experiments"))).found


def test_each_run_is_pinned_and_kept_and_told(runs, tmp_path):
    done = scale("--cores", "1,2,4", "--for", "8", "--seed", "5", "--json")

    told, path = json.loads(done.stdout), only(tmp_path / "experiments")
    assert done.exit_code == told["exit"] == Exit.PASS
    assert sorted((each.engine, each.cores) for each in runs) == sorted(
        [*(("spark", n) for n in (1, 2, 4)), (REFERENCE, 1)] * 3
    )
    assert {each.tape.seed for each in runs} == {5, 6, 7}
    assert {each.tape.profile[0].start_per_s for each in runs} == {50_000}
    assert len(kept(path)["done"]) == 12
    assert told["cost"]["sentence"] == "COST is 2 cores"
    assert told["law"]["contention"]["value"] == pytest.approx(CONTENTION, abs=0.01)
    assert told["predicted"]["8"]["value"] == pytest.approx(ONE * 8 / (1 + CONTENTION * 7), rel=0.05)
    assert [each["cores"] for each in told["points"]] == [1, 2, 4]


def test_executors_are_workers_of_a_cluster_of_each_run(runs, tmp_path):
    done = scale("--executors", "1,2,4", "--seed", "5", "--json")

    told, path = json.loads(done.stdout), only(tmp_path / "experiments")
    assert sorted((each.engine, each.master, each.cores) for each in runs) == sorted(
        [*(("spark", f"cluster[{n}]", 0) for n in (1, 2, 4)), (REFERENCE, "local[*]", 1)] * 3
    )
    assert (told["unit"], told["cost"]["sentence"]) == ("executor", "COST is 2 executors")
    page = scale_page.page_of(scaled.read(Folder(path)))
    assert page.title == "How spark scales with executors"
    assert page.sections[0].tables[0].columns[1] == "executors"
    assert "Kafka has three brokers here" in page.sections[0].text[0]
    assert "--executors 1,2,4" in page.sections[-1].code[0]
    before = found(tmp_path).asked
    path.rename(tmp_path / "first")
    invoked(*shlex.split(page.sections[-1].code[0])[1:])
    assert found(tmp_path).asked == before


def test_a_part_of_a_core_is_a_point_whose_pauses_are_explained(runs, tmp_path):
    done = scale("--cores", "0.5,1,2")
    page = scale_page.page_of(scaled.read(Folder(only(tmp_path / "experiments"))))

    assert {each.cores for each in runs} == {0.5, 1, 2}
    lines = done.stdout.splitlines()
    assert "no law is fitted: it needs 3 different whole numbers of cores" in lines
    assert max(map(len, lines[2:-1])) <= 80
    assert [row[1] for row in page.sections[0].tables[0].rows] == ["0.5", "1", "2", "1"]
    assert page.sections[0].text[1].startswith("A part of a core is a CPU quota")


def test_a_system_without_control_groups_of_ours_refuses_a_part(runs, monkeypatch, tmp_path):
    monkeypatch.setattr(quota, "impossible", lambda _: "no control group can be made in /x (Permission denied)")
    with pytest.raises(UsageError, match="a part of a core takes a control group with a quota, and no control group"):
        scale("--cores", "0.5,1")
    assert (runs, [*tmp_path.iterdir()]) == ([], [])


def test_the_screen_fits_and_says_what_can_t_be_concluded(runs):
    lines = scale("--cores", "1,2").stdout.splitlines()

    assert len(runs) == 9
    assert max(map(len, lines[2:-1])) <= 80
    assert lines[0].startswith("PASS  spark on 2 cores does 1.8")
    assert "1 and 2 cores say nothing about 8" in lines
    assert lines[-1].endswith("report.html")


def test_one_that_was_broken_off_goes_on_where_it_was(runs, tmp_path, monkeypatch):
    whole = one_run.drive

    def breaks(*arguments):
        if len(runs) == 4:
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(one_run, "drive", breaks)
    scale("--cores", "1,2", "--partitions", "6")
    first = kept(only(tmp_path / "experiments"))["done"]
    early = found(tmp_path)
    monkeypatch.setattr(one_run, "drive", whole)
    done = invoked("scale", "--resume", only(tmp_path / "experiments"), "--json")

    assert len(first) == 4
    assert early.outcome is Outcome.UNKNOWN
    assert len(early.missing) == 5
    assert done.exit_code == Exit.PASS
    assert kept(only(tmp_path / "experiments"))["done"][:4] == first
    assert len(runs) == 9
    assert {each.tape.partitions for each in runs} == {6}


def test_another_version_does_not_resume_it(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "describe", lambda: {"streamgauge": "0.0.1"})
    scale("--cores", "1,2", "--quick")
    made = len(runs)

    with pytest.raises(UsageError, match=r"was started with version 0\.0\.1 of streamgauge"):
        invoked("scale", "--resume", only(tmp_path / "experiments"))
    assert len(runs) == made


def test_the_page_is_whole_and_its_command_asks_the_same(runs, tmp_path):
    scale("--cores", "1,2,4", "--for", "6", "--conf", "spark.sql.shuffle.partitions=2", "--rate", "9000")
    path = only(tmp_path / "experiments")
    page = scale_page.page_of(scaled.read(Folder(path)))

    assert [section.id for section in page.sections] == ["scaling", "runs", "machine", "reproduce"]
    assert [each.name for each in page.pictures] == ["scaling"]
    assert len(page.sections[0].tables[0].rows) == 4
    assert "<html" in (path / "report.html").read_text()
    assert (path / "figures" / "scaling.csv").read_text().splitlines()[0] == "kind,cores,events_per_s,low,high"
    suite = ET.parse(path / "junit.xml").getroot()[0]
    assert len([*suite.iter("testcase")]) == 12
    before = found(tmp_path).asked
    path.rename(tmp_path / "first")
    invoked(*shlex.split(page.sections[-1].code[0])[1:])
    assert found(tmp_path).asked == before
    assert {each.conf.get("spark.sql.shuffle.partitions") for each in runs if each.engine == REFERENCE} == {None}


def test_an_engine_that_counts_wrong_has_a_page_without_rates(runs, tmp_path, monkeypatch):
    wrong = Verdict(Outcome.FAIL, "3 events were lost", 0, (), {})
    whole = one_run.drive
    monkeypatch.setattr(
        one_run,
        "drive",
        lambda spec, *others: MadeUp(whole(spec, *others).path, wrong if spec.cores == 2 else RIGHT),
    )
    done = scale("--cores", "1,2", "--quick")
    page = scale_page.page_of(scaled.read(Folder(only(tmp_path / "experiments"))))

    assert len(runs) == 3
    assert done.exit_code == Exit.FAIL
    assert done.stdout.startswith("FAIL  no rates: spark on 2 cores, seed 1: 3 events were lost")
    assert page.withheld == "no run has a rate that may be shown"
    assert page.sections[0].missing


@pytest.mark.parametrize(
    ("withheld", "why"),
    [
        ("the load was late", "the load was late"),
        ("", "it worked off its backlog within two seconds, too soon for a rate; give a higher --rate"),
    ],
)
def test_a_run_without_a_rate_is_unknown(withheld, why, monkeypatch):
    monkeypatch.setattr(drive_scale, "figures_of", lambda _: {BUSY_CPU: 3.0})
    made_up: Any = MadeUp(Path("x"), withheld=withheld)

    ran = drive_scale.ran(ScaleRun("spark", 1, 1), made_up, "runs/x")

    assert (ran.outcome, ran.sentence, ran.figures) == (Outcome.UNKNOWN, why, {})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Give the numbers of cores to measure"),
        (["--cores", "2"], "--cores 2 is one number of cores"),
        (["--cores", "1,16", "--partitions", "16"], "this process may use 8 cores"),
        (["--cores", "1,8"], "--cores 1,8 needs a topic of 8 partitions, and this one has 4"),
        (["--cores", "1,2", "--for", "4"], "1,2 cores say nothing about other numbers"),
        (["--cores", "1,2,4", "--for", "9"], "--for 9 is more than 2 times 4"),
        (["--cores", "1,2", "--for", "x"], "--for is 'x'"),
        (["--cores", "1,2", "--engine", "fake"], "fake is simulated and has no process to pin"),
        (
            ["--cores", "1,2", "--engine", "quix", "--workload", "capping"],
            "The engine quix has no job for the workload",
        ),
        (["--cores", "1,2", "--master", "spark://127.0.0.1:1"], "which can't pin them"),
        (["--cores", "1,2", "--cluster", "2"], "a cluster of the run is as large as its number of workers"),
        (["--cores", "1,2", "--executors", "1,2"], "--cores and --executors are two ways"),
        (["--executors", "1,1.5"], "--executors is '1,1.5', but whole numbers of executors are expected"),
        (["--executors", "1,9", "--partitions", "9"], "this process may use 8 cores, and each takes one"),
        (["--executors", "1,2", "--cluster", "2"], "--executors starts a cluster of its own for each number"),
        (["--executors", "1,2", "--engine", "quix"], "and quix has none. Give --cores instead"),
        (["--cores", "0.5,1,2", "--for", "4"], "0.5,1,2 cores say nothing about other numbers"),
        (["--cores", "0.05,1"], "numbers of cores are expected, such as 1,2,4 or 0.5,1,2"),
        (["--cores", "1,2", "--redis", "redis://h:1/1"], "share one existing Redis database"),
        (["--cores", "1,2", "--objective-p99-ms", "1"], "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_can_t_be_measured_is_refused_before_anything_starts(words, sentence, runs, tmp_path, capsys):
    assert exit_code("scale", *words) == Exit.USAGE

    said = " ".join(capsys.readouterr().err.split())
    assert sentence in said
    assert said.count("streamgauge:") == 1
    assert (runs, [*tmp_path.iterdir()]) == ([], [])


def test_a_system_that_can_t_pin_refuses(runs, monkeypatch, tmp_path):
    monkeypatch.setattr(pinning, "impossible", lambda _: "this system can't pin a process to a core")

    with pytest.raises(UsageError, match=r"cores = \d is not possible: this system can't pin a process to a core\."):
        scale("--cores", "1,2")
    assert (runs, [*tmp_path.iterdir()]) == ([], [])
