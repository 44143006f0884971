"""Cases of a chaos beside each other, each in a process of its own: whole experiments of the fake engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.drivers import chaos, chaos_worker
from harness.drivers.parallel_cases import Told, Worker
from harness.experiments.chaos import ChaosCase
from harness.experiments.folder import Folder
from harness.host import cgroup
from harness.model import Exit, UsageError
from harness.services import owners
from harness.services.owners import OWNER_VARIABLE, environment_of
from harness.terminal.command_end import ended
from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]
FAST = ["--rate", "200", "--duration", "12s", "--window", "4s", "--campaigns", "5"]
NEVER = "kill@c3:batch=99999"
TIER = f"""# three runs that decide something and one that does not
twins = false
[[cases]]
engine = 'fake'
sinks = ['increment', 'absolute']
faults = ['kill@c3:batch=3']
[[cases]]
engine = 'fake'
sinks = ['absolute']
faults = ['{NEVER}', 'kill@c2:batch=3']
"""
OF_WORKERS = """# two runs whose load is sent from elsewhere
[keys]
workers = 2
bind = '127.0.0.1:5557'
[[cases]]
engine = 'reference'
sinks = ['transaction']
faults = ['kill@t>=5s']
"""
# A worker's fake world is held up in the middle until it is told to go on. It sees this by PYTHONPATH, which the
# command itself is told to pass over.
HELD = """
import sys
if "harness.drivers.chaos_worker" in sys.orig_argv:
    import time
    from pathlib import Path
    from harness.runner.world.fake import FakeWorld
    begin = FakeWorld.await_ready
    def held(world):
        while not Path("go").exists(): time.sleep(0.02)
        return begin(world)
    FakeWorld.await_ready = held
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "mine.toml").write_text(TIER)


def call(*words: str | Path) -> tuple[int, dict[str, Any], str]:
    """Its exit code, its answer, and what it said meanwhile."""
    done = CliRunner().invoke(app.app, ["chaos", *map(str, words), "--json"], catch_exceptions=False)
    return done.exit_code, json.loads(done.stdout), done.stderr


def done_in(experiment: Path) -> list[dict[str, Any]]:
    done: list[dict[str, Any]] = json.loads((experiment / "experiment.json").read_text())["done"]
    return done


def owned_by(pid: int) -> list[psutil.Process]:
    return [
        each for each in psutil.process_iter() if environment_of(each).get(OWNER_VARIABLE, "").startswith(f"{pid}:")
    ]


def test_cases_go_two_at_a_time_and_what_decides_nothing_is_made_again_alone(tmp_path):
    code, told, said = call("--tier", "mine.toml", *FAST, "--jobs", "2")
    path = Path(told["experiment"])

    assert (code, told["exit"]) == (Exit.UNKNOWN, Exit.UNKNOWN)
    assert [(cell["sink"], cell["fault"], cell["seen"]) for cell in told["cells"]] == [
        ("increment", "kill@c3:batch=3", "at least once"),
        ("absolute", "kill@c3:batch=3", "exactly once"),
        ("absolute", NEVER, "unknown"),
        ("absolute", "kill@c2:batch=3", "exactly once"),
    ]
    assert [(each["case"]["fault"], each["beside"]) for each in done_in(path)] == [
        ("kill@c3:batch=3", True),
        ("kill@c3:batch=3", True),
        (NEVER, True),
        (NEVER, False),
        ("kill@c2:batch=3", True),
    ]
    (again,) = told["again"]
    assert (told["beside"], again["case"]["fault"], again["run"]) == (True, NEVER, done_in(path)[2]["run"])
    assert "case 1 of 4: kill@c3:batch=3 on fake/increment" in said
    assert "case 3 is unknown: " in said
    assert said.count("alone") == 1
    html = (path / "report.html").read_text()
    assert "Runs were parallel" in html
    assert "was undecided in parallel with another run" in html
    assert "Runs were parallel" in (path / "card.md").read_text()
    suite = ET.parse(path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("errors")) == ("4", "1")
    assert sorted(each.name for each in (path / "logs").iterdir()) == [f"case-{number}.log" for number in range(1, 5)]
    assert owned_by(os.getpid()) == []
    assert not [*(tmp_path / "state" / "streamgauge" / "ledger").iterdir()], "the folder by which they told is gone"


@pytest.fixture
def held(tmp_path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HELD)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(ROOT)])}
    words = ["-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); from harness.__main__ import main; main()"]
    process = subprocess.Popen(
        [sys.executable, "-E", *words, "chaos", "--tier", "mine.toml", *FAST, "--sink", "absolute", "--jobs", "2"],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(at_the_fleet(tmp_path)) == 2, deadline_s=60, what="two runs to be under way")
    yield process
    process.kill()
    process.communicate()


def at_the_fleet(folder: Path) -> list[Path]:
    found = folder.glob("experiments/*/runs/*/history.jsonl")
    return [each.parent for each in found if '"ready"' in each.read_text()]


def test_sigterm_ends_all_of_them_in_order_and_the_rest_goes_on(tmp_path, held):
    (first, second), workers = at_the_fleet(tmp_path), owned_by(held.pid)
    assert len(workers) >= 2

    held.terminate()
    _, said = held.communicate(timeout=60)

    assert held.returncode == 143
    for run in (first, second):
        assert '"why":"by SIGTERM"' in (run / "history.jsonl").read_text()
    assert not [each for each in workers if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert "2 runs to stop" in said
    assert "Stopped by SIGTERM. Everything it started has been stopped." in said
    (path,) = (tmp_path / "experiments").iterdir()
    assert f"`streamgauge chaos --resume experiments/{path.name}` resumes it" in said
    assert done_in(path) == []
    code, told, _ = call("--resume", path, "--jobs", "1")
    assert (code, told["beside"], len(done_in(path))) == (Exit.UNKNOWN, False, 3)


def test_a_harness_that_is_killed_takes_them_with_it(tmp_path, held):
    workers = owned_by(held.pid)
    held.kill()

    wait_until(lambda: not any(map(owners.is_running, workers)), deadline_s=30, what="the workers to end")


def test_a_run_whose_process_was_killed_is_made_again(tmp_path, held):
    """As the kernel does where memory ends: both go on, and the other is not touched."""
    (path,) = (tmp_path / "experiments").iterdir()
    first = next(each for each in owned_by(held.pid) if "chaos_worker" in " ".join(each.cmdline()[:4]))
    first.kill()
    (tmp_path / "go").touch()
    _, said = held.communicate(timeout=120)

    assert held.returncode == Exit.UNKNOWN, said
    assert "the harness broke: the process of this run ended with -9, its log is " in said
    broken = [each for each in done_in(path) if each["broken"]]
    assert [(each["beside"], each["run"]) for each in broken] == [(True, "")]
    assert len([each for each in done_in(path) if each["case"] == broken[0]["case"]]) == 2


def test_what_only_a_worker_can_refuse_is_refused(tmp_path):
    place = Folder.create(tmp_path / "experiments", "chaos")
    case = ChaosCase("fake", "absolute", "none", 1)
    place.save("chaos", settings={"scenario": "calm", "keys": {"rate": -1}, "flags": {}}, wanted=[case])
    told = tmp_path / "told.json"

    assert ended([], lambda: chaos_worker.work(str(place.path), "0", "", str(told))) == Exit.USAGE

    worker = Worker(place, 0, case, None, told)
    wait_until(lambda: not worker.alive(), deadline_s=60, what="the worker to refuse it too")
    with pytest.raises(UsageError, match="rate"):
        worker.ran()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--objective-p99-ms", "500"], "needs a speed"),
        (["--redis", "redis://host:6379/1", "--reset"], "share one existing Redis database"),
    ],
)
def test_runs_that_can_bear_nobody_beside_them_go_one_at_a_time(flags, why, tmp_path):
    with pytest.raises(UsageError, match=f"--jobs 2 is not possible: .*{why}"):
        call("--tier", "mine.toml", *FAST, *flags, "--jobs", "2")
    assert not (tmp_path / "experiments").exists()


def test_runs_whose_load_workers_join_at_one_address_go_one_at_a_time(tmp_path):
    (tmp_path / "mine.toml").write_text(OF_WORKERS)
    with pytest.raises(UsageError, match="--jobs 2 is not possible: the load workers of all runs join at one address"):
        call("--tier", "mine.toml", "--jobs", "2")
    assert not (tmp_path / "experiments").exists()


def jobs_of(engine: str, jobs: int | None) -> int:
    settings = {"scenario": "calm", "keys": {}, "flags": {}, "asked": {"jobs": jobs} if jobs else {}}
    return chaos.jobs_of(settings, [ChaosCase(engine, "absolute", "none", 1)])


def test_how_many_at_a_time_follows_from_the_machine_unless_it_is_said(monkeypatch):
    monkeypatch.setattr(cgroup, "cores", lambda: 2.0)
    monkeypatch.setattr(cgroup, "memory_bytes", lambda: 4 << 30)

    assert [jobs_of("spark", jobs) for jobs in (None, 1, 3)] == [2, 1, 3]
    assert jobs_of("fake", None) == 1, "what is simulated takes no time"
    with pytest.raises(UsageError, match=r"--jobs 5 needs 6,400 MiB of memory, and 4,096 MiB .* at most 2 go"):
        jobs_of("spark", 5)


def test_how_far_a_run_is_can_be_read_at_any_moment(tmp_path):
    teller = chaos_worker.Teller(tmp_path / "told.json")
    lines: list[tuple[str, bool]] = []
    for phase in ("load", "judge", "page"):
        teller.phase(phase, "a detail")
        told = msgspec.json.decode((tmp_path / "told.json").read_bytes(), type=Told)
        lines.append((" ".join(told.line.split()[2:]), told.closed))  # without the time

    said = "waits for a detail"
    assert lines == [(f"load {said}", False), (f"judge {said}", True), (f"page {said}", True)]
