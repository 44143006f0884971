"""Every command that the documents and the program print is run as it is printed, by the program itself.

What is short is run to its end. A run, an experiment or a benchmark is real until it would start something outside of
the program: its scenario, engine and faults are read, it is planned and sealed, and has its folder. Nothing is
installed, and no Kafka, Redis or engine starts.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn
from unittest import mock

import pytest

from harness import __version__
from harness.cli import app, docs, doctor, own_tests, serve
from harness.drivers import backlog, chaos, load_worker, one_run
from harness.engines import environments, warm
from harness.engines.job import OURS
from harness.engines.spark import executors
from harness.experiments.gating import baseline, history
from harness.host import cgroup, pinning, quota
from harness.install import environment, jvm
from harness.load.workers import WorkersLoad
from harness.model import EngineManifest, Exit, RunSpec
from harness.rundir import store
from harness.runner.run import Run
from harness.runner.world.fake import FakeWorld
from harness.runner.world.real import RealWorld
from harness.services import claim, external, keeper, live_page, owners
from harness.services.kafka import EmbeddedKafka
from harness.terminal import watching
from harness.terminal.command_end import ended
from reports.sections import reproduce
from tests.docs.printed import ROOT, all_printed
from tests.program import pages
from tests.program.runner.test_run import fake_run
from tests.quick.audit import test_audit as audits
from tests.quick.experiments.test_baseline import of_reference
from tests.quick.experiments.test_gate import measured
from tests.quick.histories import many
from tools.bench import bench
from tools.locality import locality
from tools.search_proof import proof

RUN = "runs/20261122-102030-calm-spark"
MOST_FOLDED = 100_000  # events; what is expected of more takes seconds, and a smaller run shows the same

# What a reader puts in the place of a word, in any command.
WORDS = {
    "RUN": RUN,
    "DIRECTORY": RUN,
    "GATE": "experiments/gate",
    "OLD": "spark",
    "NEW": "spark@4.1.3",
    "PATH": "jobs/ad-counts",
    "DIR": "fresh",
    "FILE": "bench/gates.jsonl",
    "ENGINE": "flink",
    "ENGINE...": "spark reference",
    "SINK": "absolute",
    "'FAULT'": "'kill@offset=50%'",
    "BASE": "main",
    "job.py": "examples/gate/base.py",
    "HEAD.py": "examples/gate/slower.py",
    "v1.0": "main",
    '"$CI_MERGE_REQUEST_DIFF_BASE_SHA"': "main",
    '"$CI_COMMIT_SHA"': "HEAD",
    "$disorder": "mobile",
    "[SCENARIO]": "late",
    "[flags]": "--seed 2",
    "[--quick]": "--quick",
}
ON_KUBERNETES = (
    "--namespace bench --image registry.example/streamgauge:0.2.0 --kafka kafka:9092 --redis redis://redis:6379/4"
)
# What a reader types where a gap is wider than a word.
LINES = {
    "chaos --resume {}": "chaos --resume experiments/chaos",
    "compare --resume {}": "compare --resume experiments/compare",
    "search --resume {}": "search --resume experiments/search",
    f"manifests {ON_KUBERNETES} > bench.yaml": f"manifests {ON_KUBERNETES}",
    f"manifests {ON_KUBERNETES} --spark-submit > trial.sh": f"manifests {ON_KUBERNETES} --spark-submit",
    "scale --resume {}": "scale --resume experiments/scale",
    "gate --calibrate --resume {}": "gate --calibrate --resume experiments/calibration",
    "{} --resume": "chaos --resume experiments/chaos",
    "{} {}": f"recheck {RUN}",
    "ls {}": "ls experiments/chaos",
    "recheck {}": f"recheck {RUN}",
    "report {}": f"report {RUN}",
    "trend PATH": "trend bench/gates.jsonl",
    "workload check {}": "workload check payments",
    "gate --base {} --head HEAD --engine PATH": "gate --base baseline.json --head HEAD --engine jobs/ad-counts",
    "gate --base base.py --head slower.py": "gate --base examples/gate/base.py --head examples/gate/slower.py",
    "gate --base BASE --head HEAD [--engine PATH] [--threshold 5%] [--budget 10] [--burst EVENTS]": (
        "gate --base main --head HEAD --engine jobs/ad-counts --threshold 5% --budget 10 --burst 60000"
    ),
    "selftest [--clean 50] [--seed 1] [--json]": "selftest --clean 50 --seed 1 --json",
    "audit runs --duration 1800": "audit results --duration 1800",
    "run --engine fake --rate 250 --campaigns 5 ...": "run --engine fake --rate 250 --campaigns 5 --disorder storm",
    "workload check . shows sample events, the rows that are expected, and what can't be judged": (
        "workload check payments"
    ),
}
# A command or a flag is named, and what it needs is left out: typed alone, it says what that is.
NAMED = {
    "engines add": "Missing argument 'ENGINE'",
    "engines rm": "Missing argument 'ENGINE'",
    "gate --history": "requires an argument",
    "gate --history FILE": "--base is missing",
    "gate --history {}": "--base is missing",
    "gate --history {}/": "--base is missing",
    "recheck": "Missing argument 'RUN'",
    "report": "Missing argument 'FOLDER'",
    "rm": "Name the runs to remove",
    "run --repeat": "requires an argument",
    "scale": "Give the numbers of cores to measure",
    "worker": "Missing option '--master'",
    "worker --master {}": "is not HOST:PORT",
}
OWN_SERVERS = (
    "--kafka broker:9093 --kafka-config client.properties --redis 'redis://user:${env:REDIS_PASSWORD}@host:6379/4'"
)
# How it ends where that is no PASS: by what lies in the folder of this reader, or on this machine.
ENDS = {
    "audit results/ --total-rate 50000": Exit.FAIL,
    "audit results/ --duration 1800 --all": Exit.FAIL,
    "audit runs --duration 1800": Exit.FAIL,
    "doctor": Exit.BROKEN,
    f"doctor {OWN_SERVERS}": Exit.BROKEN,
}
# What is no command of this machine, and why.
NOT_RUN = {
    "up": "it starts a real Kafka, and the tests of this folder have no JVM artifacts; tests/services have",
    "gate: REGRESSED": "it is a line that GitHub shows",
    "audit redis://127.0.0.1:6379/0 --rate 1000 --producers 10": "tests/services/test_audit_redis.py has that Redis",
}
# By which an experiment is begun that another command goes on with.
BEGUN_BY = {
    "chaos": "chaos --tier smoke",
    "compare": "compare reference --quick",
    "scale": "scale --engine reference --cores 1,2",
    "search": "search --workload payments --engine payments/fixed",
    "calibration": "gate --base spark --calibrate",
}

ALL = all_printed()
PRINTED = [each for each in ALL if each.words not in NOT_RUN]


def typed(words: str) -> list[str]:
    filled = LINES.get(words) or " ".join(WORDS.get(word, word) for word in words.split())
    return shlex.split(filled)


class Begun(BaseException):
    """What comes now would start something."""


BEGAN: list[tuple[RunSpec, EngineManifest]] = []  # each run so far


def begins(*_: object, **__: object) -> NoReturn:
    raise Begun


def fold(run: Run, whole: Callable[[Run], None] = Run.fold) -> None:
    BEGAN.append((run.spec, run.manifest))
    if run.schedule.total > MOST_FOLDED:
        raise Begun
    whole(run)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """The folder of a reader who has done what the pages say, and has run and judged a few things before."""
    place = tmp_path_factory.mktemp("reader")
    (place / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(ROOT / "examples" / "payments", place / "payments")
    for job in ("jobs/ad-counts", "path/to"):
        shutil.copytree(ROOT / "examples" / "own-engine", place / job)
    for file, job in (("manifest.toml", "manifest.toml"), ("base.py", "count.py"), ("slower.py", "count2.py")):
        text = (ROOT / "examples" / "gate" / file).read_text().replace("base.py", "count.py")
        (place / "jobs" / job).write_text(text)
    for words in ("init --quiet --initial-branch main", "add jobs", "-c user.name=x -c user.email=x commit -q -m job"):
        subprocess.run(["git", *words.split()], cwd=place, check=True)
    (place / "bench").mkdir()
    (place / "bench" / "gates.jsonl").write_bytes(b"".join(map(history.encoded, many(8))))
    baseline.save(place / "baseline.json", of_reference(engine="own-engine/redis"))
    (place / "client.properties").write_text("security.protocol=SSL\n")
    (place / "low.toml").write_text("rate = 1000\n")
    audits.run(place / "results" / "30000")
    audits.table(place / "counts.csv", audits.rows_of(audits.cells(total=5000)[0][:20]))
    (place / "experiments" / "gate").mkdir(parents=True)
    pages.gate(place / "experiments" / "gate", measured())
    with mock.patch.object(store, "owner_mark", return_value=""):  # of no process that lives
        path = fake_run(place / "runs")[1].path
    for name in (RUN, "runs/20261121-133432-calm-spark"):
        shutil.copytree(path, place / name)
    shutil.rmtree(path)
    return place


@pytest.fixture
def reader(prepared, tmp_path, monkeypatch):
    """A copy of that, in which nothing can start."""
    BEGAN.clear()
    place = shutil.copytree(prepared, tmp_path / "reader", symlinks=True)
    monkeypatch.chdir(place)
    monkeypatch.setattr(watching, "show_changes", begins)
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("REDIS_PASSWORD", "secret")
    monkeypatch.setattr(owners, "sweep", list)
    # All that a run needs is as good as there.
    monkeypatch.setattr(environment, "describe", lambda: {"streamgauge": __version__})
    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setattr(jvm, "java", lambda: Path("/usr/bin/java"))
    monkeypatch.setattr(jvm, "jars", lambda *_: tmp_path)
    monkeypatch.setattr(one_run, "find_server", lambda: None)
    monkeypatch.setattr(one_run, "claim_external", lambda *_: ())
    # The servers that it names answer, and let all be done.
    for module in (external, doctor):
        monkeypatch.setattr(module, "connect", nullcontext)
    monkeypatch.setattr(claim, "keys_to_delete", lambda *_, **__: None)
    monkeypatch.setattr(executors, "reach", lambda _: None)
    monkeypatch.setattr(keeper, "status", lambda: keeper.Services("127.0.0.1:9092", "", "", ""))
    monkeypatch.setattr(keeper, "down", lambda: True)
    monkeypatch.setattr(backlog, "refuse", lambda *_, **__: None)
    monkeypatch.setattr(one_run, "refuse_bind", lambda _: None)
    for name in ("kafka_says", "redis_says"):
        monkeypatch.setattr(doctor, name, lambda *_: [])
    monkeypatch.setattr(environments, "prepare", lambda *_: OURS)
    monkeypatch.setattr(warm, "archives_of", lambda *_: warm.Archives(None, None))
    monkeypatch.setattr(live_page, "watch", lambda _: "")
    # What would start something says so; other processes would not.
    for owner, name in (
        (RealWorld, "open"),
        (FakeWorld, "open"),
        (WorkersLoad, "gather"),
        (load_worker, "start_worker"),
        (EmbeddedKafka, "start"),
        (backlog, "fill"),
        (backlog, "check"),
        (proof, "prove"),
        (locality, "measure"),
    ):
        monkeypatch.setattr(owner, name, begins)
    monkeypatch.setattr(bench, "spawn", begins)
    monkeypatch.setattr(docs, "build_site", begins)
    monkeypatch.setattr(serve, "Server", begins)
    monkeypatch.setattr(own_tests, "subprocess", SimpleNamespace(run=begins))
    monkeypatch.setattr(chaos, "jobs_of", lambda *asked, real=chaos.jobs_of: min(1, real(*asked)))
    monkeypatch.setattr(Run, "fold", fold)
    # As many cores as a page names, and control groups for parts of them.
    monkeypatch.setattr(cgroup, "cores", lambda: 8.0)
    monkeypatch.setattr(quota, "impossible", lambda _: "")
    monkeypatch.setattr(pinning, "impossible", lambda _: "")
    return place


def run(words: Sequence[str]) -> int | None:
    """How it ended; None where it would have started what it was asked for."""
    try:
        return ended(words, lambda: app.called(words))
    except Begun:
        return None


def prepare(words: Sequence[str]) -> None:
    """What the page lets its reader do just before."""
    if words[:2] == ["workload", "new"]:
        shutil.rmtree(words[2], ignore_errors=True)
    elif words[:2] == ["workload", "check"] and not Path(words[2]).exists():
        assert run(["workload", "new", words[2]]) == Exit.PASS
    for path in (Path(word) for word in words if word.startswith("experiments/")):
        if not path.exists():
            assert run(BEGUN_BY[path.name].split()) is None
            newest().rename(path)


def newest(base: str = "experiments") -> Path:
    return max((path for path in Path(base).iterdir() if path.name[0] == "2"), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("printed", PRINTED, ids=lambda printed: printed.words)
def test_a_command_does_what_it_is_printed_for(printed, reader, capsys):
    words = typed(printed.words)
    prepare(words)

    code = run(words)

    said = capsys.readouterr()
    told = f"{printed.place}: `{shlex.join(words)}` ended with {code}\n{said.out}{said.err}"
    if printed.words in NAMED:
        assert (code, NAMED[printed.words] in said.err) == (Exit.USAGE, True), told
    elif code is not None:
        assert code == ENDS.get(printed.words, Exit.PASS), told
    elif words[0] in ("search", "chaos", "compare", "scale") and "--resume" not in words:
        assert run([words[0], "--resume", str(newest())]) is None, capsys.readouterr().err
    elif words[0] == "run" and "--repeat" not in words:
        assert_its_page_says_how_to_do_it_again(*BEGAN.pop())


def assert_its_page_says_how_to_do_it_again(spec: RunSpec, manifest: EngineManifest) -> None:
    *files, command = reproduce.recipe_of(spec, manifest).texts()
    words = shlex.split(command)[1:]
    for text in files:
        Path(words[1]).write_text(text)

    assert run(words) is None, command
    assert BEGAN.pop() == (spec, manifest), command


OF_THE_READER = [
    each for each in PRINTED if re.search(r"payments|jobs/|examples/|runs/|results|bench/|low", each.words)
]


@pytest.mark.parametrize("printed", OF_THE_READER, ids=lambda printed: printed.words)
def test_in_another_folder_it_says_what_is_not_there(printed, reader, tmp_path, monkeypatch, capsys):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    words = typed(printed.words)

    code = run(words)

    said = capsys.readouterr().err
    if words[0] == "workload" and words[1] == "new":
        assert code == Exit.PASS
    else:
        assert code == Exit.USAGE, said
        assert any(word.rstrip("/") in said for word in words[1:] if word[0] not in "-0123456789"), said


@pytest.mark.parametrize("table", [LINES, NAMED, ENDS, NOT_RUN], ids=["LINES", "NAMED", "ENDS", "NOT_RUN"])
def test_what_is_set_apart_is_printed_somewhere(table):
    assert table.keys() <= {each.words for each in ALL}
