"""How commands end: whatever happens, in one sentence, with the right exit code, and with --json as one object."""

from __future__ import annotations

import errno
import itertools
import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer.core
import typer.main

from harness.cli import app, workload
from harness.drivers import chaos, one_run
from harness.engines import environments, fake, manifest
from harness.engines.job import Surroundings
from harness.experiments.chaos import ChaosCase, Seen
from harness.experiments.folder import Folder
from harness.host import cpu_starvation
from harness.install import environment
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import Exit, HarnessError, Stopped, UsageError
from harness.rundir import store
from harness.services import owners
from harness.terminal import command_end
from harness.terminal.command_end import UnderWay, ended, flags_last, under_way
from harness.util.wait import wait_until
from reports.listing import AGAIN, JUDGED_BY
from tests.program.calls import exit_code

ROOT = Path(__file__).resolve().parents[3]
FAST = ["--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]


def leaves(group: typer.core.TyperGroup, before: tuple[str, ...] = ()) -> list[list[str]]:
    """Every command, with a word for each argument and option that it needs."""
    found = []
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            found += leaves(command, (*before, name))
        needed = [each for each in command.params if each.required]
        words = [[each.opts[0], "x"] if each.param_type_name == "option" else ["x"] for each in needed]
        found.append([*before, name, *itertools.chain(*words)])
    return found


REAL_SWEEP = owners.sweep
GROUP = typer.main.get_command(app.app)
assert isinstance(GROUP, typer.core.TyperGroup)
COMMANDS = leaves(GROUP)


owners_sweep = owners.sweep


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(owners, "sweep", list)
    monkeypatch.setattr(environment, "describe", dict)  # the real one asks Java for its version
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)


def the_traceback(below: Path) -> str:
    (file,) = below.glob("traceback-*.txt")
    return file.read_text()


def end_of(capsys) -> tuple[dict[str, Any], str]:
    """The one object on stdout, and what a person reads."""
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    assert "Traceback" not in said.out + said.err
    return json.loads(line), said.err


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_nobody_foresaw_ends_every_command_alike(words, monkeypatch, capsys, tmp_path):
    def broken(*_: object) -> None:
        raise KeyError("never seen")

    monkeypatch.setattr(typer.core.TyperCommand, "invoke", broken)
    monkeypatch.setattr(manifest, "load", broken)  # of `engines` alone, which is a group ...
    monkeypatch.setattr(workload, "shipped", broken)  # ... as `workload` is

    assert exit_code(*words, "--json") == Exit.BROKEN

    told, said = end_of(capsys)
    assert (told["command"], told["verdict"], told["exit"]) == (words[0], None, Exit.BROKEN)
    assert "unexpected happened: KeyError: 'never seen'" in told["error"]
    assert told["error"] in said
    assert "Traceback" in the_traceback(tmp_path / "state" / "streamgauge")


@pytest.mark.parametrize(
    "error",
    [
        BrokenPipeError(errno.EPIPE, "Broken pipe"),  # some server's connection, and not our reader's
        EOFError(),
        RecursionError("maximum recursion depth exceeded"),
        AssertionError(),
        MemoryError(),
        ValueError("9" * 5000),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        ExceptionGroup("two of them", [KeyError(1), OSError(2)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_error_of_any_sort_looks_like_a_fail(error, monkeypatch, capsys, tmp_path):
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(typer.core.TyperCommand, "invoke", broken)

    assert exit_code("ls", "--json") == Exit.BROKEN

    told, _ = end_of(capsys)
    assert type(error).__name__ in told["error"]
    assert len(told["error"]) < 1000
    assert str(error) in the_traceback(tmp_path / "state" / "streamgauge")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--rate", "x"],
        ["run", "--nosuch"],
        ["nosuch"],
        ["recheck"],
        ["recheck", "nowhere"],
        ["report", "nowhere"],
        ["replay", "nowhere"],
        ["engines", "add"],
        ["engines", "nosuch"],
        ["engines", "add", "sparkk"],
        ["search", "--resume", "nowhere"],
        ["chaos", "--tier", "smok"],
        ["compare"],
        ["selftest", "--clean", "-1"],
        ["audit", "nowhere"],
        [],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_mistake_is_one_object_too(words, place, capsys):
    asked = ["--json", *words] if place == "first" else [*words, "--json"]

    assert exit_code(*asked) == Exit.USAGE

    told, said = end_of(capsys)
    assert (told["verdict"], told["exit"]) == (None, Exit.USAGE)
    assert told["command"] == (words[0] if words else None)
    assert said.startswith(f"streamgauge: {told['error']}")
    assert told["error"].endswith(".")


def test_json_may_stand_anywhere_in_the_line(capsys):
    for words in (["--json", "ls"], ["ls", "--json"], ["--json", "ls", "--json"]):
        assert exit_code(*words) == Exit.PASS
        assert json.loads(capsys.readouterr().out) == {"runs": [], "experiments": [], "exit": 0}
    assert flags_last(["engines", "--json", "add", "spark"]) == ["engines", "add", "spark", "--json"]
    assert flags_last(["test", "--", "--json"]) == ["test", "--", "--json"]
    assert flags_last(["--quiet", "--json", "run", "late"]) == ["run", "late", "--json", "--quiet"]


def test_what_breaks_before_the_command_line_is_there_ends_the_same_way(tmp_path):
    """A package of .venv that can't be imported."""
    (tmp_path / "msgspec.py").write_text("raise ImportError('half of it is missing')\n")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; from harness.__main__ import main; main()"

    done = subprocess.run(
        [sys.executable, "-c", code, "ls", "--json"], capture_output=True, text=True, cwd=tmp_path, check=False
    )

    assert done.returncode == Exit.BROKEN
    assert "ImportError: half of it is missing" in json.loads(done.stdout)["error"]
    assert "Traceback" not in done.stderr
    assert "half of it is missing" in the_traceback(tmp_path / "state" / "streamgauge")


def test_the_module_of_the_commands_runs_them_too():
    """It would do nothing else, and end with exit code 0."""
    done = subprocess.run(
        [sys.executable, "-E", "-m", "harness.cli.app", "run", "nowhere"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )

    assert done.returncode == Exit.USAGE
    assert "no scenario 'nowhere'" in done.stderr


def test_a_thread_that_breaks_ends_the_command(capsys, tmp_path):
    """What it was to look after is looked after no more."""

    def program() -> int:
        threading.Thread(target=lambda: int("never seen")).start()
        wait_until(lambda: None, deadline_s=30, what="the broken thread to end the program")
        return Exit.PASS

    assert ended(["run", "--json"], program) == Exit.BROKEN
    assert "ValueError: invalid literal" in end_of(capsys)[0]["error"]
    assert "never seen" in the_traceback(tmp_path / "state" / "streamgauge")


def test_hooks_and_handlers_are_put_back():
    before = (threading.excepthook, sys.unraisablehook, *map(signal.getsignal, command_end.STOPPING))

    assert ended([], lambda: Exit.PASS) == Exit.PASS

    assert before == (threading.excepthook, sys.unraisablehook, *map(signal.getsignal, command_end.STOPPING))


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch, capsys):
    """As in a container, where nobody's number has a name."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(owners, "sweep", REAL_SWEEP)
    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.delenv("XDG_STATE_HOME")

    assert exit_code("ls", "--json") == Exit.BROKEN

    told, _ = end_of(capsys)
    assert told["error"].startswith("There is no home folder: HOME is not set")
    assert "XDG_STATE_HOME and XDG_CACHE_HOME" in told["error"]


# ---------------------------------------------------------------- With a run or an experiment under way


@pytest.mark.parametrize(
    ("error", "code", "state", "why"),
    [
        (KeyError("never seen"), Exit.BROKEN, "harness broke", "KeyError: 'never seen'"),
        (HarnessError("Kafka did not come up."), Exit.BROKEN, "harness broke", "Kafka did not come up."),
        (Stopped(signal.SIGINT), 130, "interrupted", "by Ctrl-C"),
        (Stopped(signal.SIGTERM), 143, "interrupted", "by SIGTERM"),
    ],
)
@pytest.mark.parametrize("enough", [True, False])
def test_a_run_that_ends_early_says_where_it_lies_and_ls_says_why(
    error, code, state, why, enough, monkeypatch, capsys, tmp_path
):
    def broken(*_: object, **__: object) -> None:
        (run,) = (tmp_path / "runs").iterdir()
        store.Store(run).tell("epoch", epoch_ms=0)  # its load has begun
        for name in JUDGED_BY if enough else ():
            (run / name).touch()
        raise error

    monkeypatch.setattr(one_run, "run_nine_steps", broken)

    assert exit_code("run", *FAST, "--json") == code

    told, said = end_of(capsys)
    (run,) = (tmp_path / "runs").iterdir()
    assert told["left"] == [str(run)]
    next_step = f"`streamgauge recheck runs/{run.name}` judges it" if enough else AGAIN
    assert f"What was recorded is in runs/{run.name}: {next_step}" in said
    if isinstance(error, KeyError):
        assert "never seen" in the_traceback(run / "logs")
    monkeypatch.setattr(store.Store, "alive", lambda _: False)
    exit_code("ls", "--json")
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert (listed["run"], listed["state"]) == (run.name, state)
    assert listed["sentence"].startswith(why)


def test_a_run_that_was_killed_is_broken_off(monkeypatch, capsys, tmp_path):
    place = store.Store.create(tmp_path / "runs", "killed")
    monkeypatch.setattr(store.Store, "alive", lambda _: False)

    exit_code("ls", "--json")

    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert (listed["run"], listed["state"]) == (place.path.name, "broken off")
    assert "killed" in listed["sentence"]


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (None, "its process was killed"),
        (Stopped(signal.SIGTERM), "it was stopped by SIGTERM"),
        (HarnessError("Kafka did not come up.\nIts log"), "it ended by an error (Kafka did not come up.)"),
    ],
)
def test_a_run_that_ended_too_early_keeps_its_cause_when_it_is_judged(error, how, tmp_path):
    place = store.Store.create(tmp_path / "runs", "early")
    with suppress(Stopped, HarnessError), under_way(UnderWay(place.path, place.logs, ""), place.tell):
        if error:
            raise error

    verdict = judge(StoredRun(place))

    said = f"{how} before it had written all of its files (spec.json is missing); run it again"
    assert verdict.sentence == f"This run can't be judged: {said}"
    assert verdict.checks[0].sentence == said


@pytest.mark.parametrize("load", [25.0, 1.0])
def test_a_deadline_that_passed_on_a_busy_machine_names_its_load(load, monkeypatch, capsys):
    monkeypatch.setattr(cpu_starvation, "machine", lambda: cpu_starvation.Machine(2, load, 94.0))

    def late() -> int:
        wait_until(lambda: False, deadline_s=0.01, what="Kafka to answer", state=lambda: "its last words.")
        return 0

    assert ended([], late) == Exit.BROKEN
    busy = (
        " The machine is busy: 2 cores at load 25, tasks waited for a CPU 94 % of the time. Run again when it is "
        "quieter, or let `run` wait longer with --patience 3."
    )
    missed = "streamgauge: Timed out after 0.01 s while waiting for Kafka to answer."
    assert " ".join(capsys.readouterr().err.split()) == f"{missed}{busy * (load > 4)} Last state: its last words."


@pytest.mark.parametrize(
    ("words", "below", "next_step"),
    [
        (["chaos", "--engine", "fake", "--fault", "none"], "experiments", "`streamgauge chaos --resume experiments/"),
        (["search", "--engine", "fake"], "experiments", "`streamgauge search --resume experiments/"),
        (["compare", "fake"], "experiments", "`streamgauge compare --resume experiments/"),
        (["run", *FAST, "--repeat", "2"], "runs", "`streamgauge ls runs/"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_experiment_that_is_stopped_says_how_it_goes_on_and_ls_lists_it(
    words, below, next_step, monkeypatch, capsys, tmp_path
):
    def stopped(*_: object, **__: object) -> None:
        raise Stopped(signal.SIGINT)

    monkeypatch.setattr(one_run, "run_nine_steps", stopped)
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(sys.executable)))

    assert exit_code(*words, "--json") == 130

    told, said = end_of(capsys)
    (experiment,) = (tmp_path / below).iterdir()
    (run,) = (experiment / "runs").iterdir()
    assert told["left"] == [str(run), str(experiment)]
    assert next_step in said
    assert "so there is nothing to judge" in said
    assert "judges it" not in said
    exit_code("ls", "--json")
    (listed,) = json.loads(capsys.readouterr().out)["experiments"]
    assert (listed["experiment"], listed["state"]) == (experiment.name, "interrupted")
    assert listed["sentence"].startswith("by Ctrl-C; ")
    exit_code("ls", str(experiment), "--json")
    (inside,) = json.loads(capsys.readouterr().out)["runs"]
    assert (inside["run"], inside["state"]) == (run.name, "running")  # its process is this one


def test_a_finished_experiment_is_listed_with_its_verdict(capsys, tmp_path):
    exit_code("run", *FAST, "--repeat", "2")
    capsys.readouterr()

    exit_code("ls", "--json")

    (listed,) = json.loads(capsys.readouterr().out)["experiments"]
    assert (listed["kind"], listed["state"]) == ("repeat", "PASS")
    assert listed["sentence"]


def test_an_experiment_of_an_older_version_or_a_torn_one_is_listed_too(capsys, tmp_path):
    Folder.create(tmp_path / "experiments", "old").save("chaos", done=[])
    torn = Folder.create(tmp_path / "experiments", "torn")
    torn.save("chaos", done=[])
    (torn.path / "experiment.json").write_text("{")

    exit_code("ls")

    said = capsys.readouterr().out
    assert "unknown" in said
    assert "it was written by an older version" in said
    assert f"experiments/{torn.path.name}/experiment.json is torn" in said


def test_a_case_under_which_the_harness_broke_keeps_its_traceback(monkeypatch, tmp_path):
    def broken(*_: object, **__: object) -> None:
        raise KeyError("never seen")

    monkeypatch.setattr(one_run, "run_nine_steps", broken)
    place = Folder.create(tmp_path, "chaos")
    settings = {"scenario": "calm", "keys": {}, "flags": {}}

    ran = chaos.made(place, settings, ChaosCase("fake", fake.MANIFEST.sinks[0].name, "none", 1), None)

    assert (ran.seen, ran.broken) == (Seen.UNKNOWN, True)
    (run,) = place.runs.iterdir()
    assert "never seen" in the_traceback(run / "logs")
    assert str(run / "logs" / "traceback-") in ran.sentence or "logs/traceback-" in ran.sentence


def test_of_two_errors_the_last_one_s_places_are_told(tmp_path, capsys):
    """An error that was caught, and another one where nothing was under way any more."""

    def program() -> int:
        try:
            with under_way(UnderWay(tmp_path, tmp_path, "goes on"), lambda *_, **__: None):
                raise KeyError("caught")
        except KeyError:
            raise UsageError("Another one.") from None

    assert ended(["--json"], program) == Exit.USAGE
    assert end_of(capsys)[0]["left"] == []


# ---------------------------------------------------------------- For real, in a process of its own


def test_sigterm_ends_a_run_in_order(tmp_path):
    """The fake engine's clock is cranked by hand; so the world is held up until the signal has come. Ctrl-C is tried on
    a terminal, in tests/services/test_stopping.py."""
    hold = (
        "import time; from harness.runner.world.fake import FakeWorld\n"
        "def hold(*_):\n"
        "    while True: time.sleep(0.05)\n"
        "FakeWorld.await_ready = hold\n"
        "from harness.__main__ import main; main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-E", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{hold}", "run", *FAST],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(
            lambda: [each for each in tmp_path.glob("runs/*/history.jsonl") if '"ready"' in each.read_text()],
            deadline_s=60,
            what="the run to be under way",
        )
        process.terminate()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()

    assert process.returncode == 143
    (run,) = (tmp_path / "runs").iterdir()
    assert "Stopped by SIGTERM. Everything it started has been stopped." in said
    assert f"What was recorded is in runs/{run.name}: " in said
    assert "Traceback" not in said


@pytest.mark.parametrize("how", ["a file is in its way", "it is there, on a read-only disk"])
def test_a_state_folder_that_cannot_be_written_is_one_sentence(how, tmp_path, monkeypatch, capsys):
    """As with a home folder that is read-only."""
    monkeypatch.setattr(owners, "sweep", owners_sweep)
    if how == "a file is in its way":
        (tmp_path / "state").touch()
    else:
        monkeypatch.setattr("os.access", lambda _path, _mode: False)

    code = exit_code("run", "calm", "--engine", "fake", "--json")

    told, said = end_of(capsys)
    assert code == told["exit"] == Exit.BROKEN
    assert "state/streamgauge can't be written: " in told["error"]
    assert "Set XDG_STATE_HOME" in said
    owners.release_all()  # at the exit, and there is nothing that could be released
