"""Help: units, choices and defaults of every flag, commands by what they are for, and what a shell completes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.core
import typer.main

from generators.disorder import PRESETS
from harness.cli import app, panels
from harness.cli.chaos import OF_THE_TIER
from harness.cli.examples import EXAMPLES
from harness.cli.scenario_flags import EVENTS, SYSTEM
from harness.config import plan
from harness.config.scenario_keys import CLIENTS, KEYS
from harness.drivers import gate_sides
from harness.engines.manifest import load
from harness.engines.shipped import IDS
from harness.experiments import chaos, compare, folder
from harness.faults.registry import FAULTS
from harness.model import Exit
from harness.services import owners
from harness.terminal.command_end import COMPLETING, ended
from tests.program.terminal.test_ending import COMMANDS, GROUP

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)
    monkeypatch.setenv("COLUMNS", "80")

    def show(*arguments):
        assert ended(arguments, lambda: app.called(arguments)) == Exit.PASS
        return capsys.readouterr().out

    return show


def plain(text: str) -> str:
    """Without the breaks of lines."""
    return " ".join(text.split()).replace("- ", "-")


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_help_fits_a_terminal_and_names_the_program(words, shown):
    named = named_of(words)

    told = shown(*named, "--help")

    assert told == shown(*named, "-h")
    assert told.startswith(f"Usage: {' '.join(['streamgauge', *named])} ")
    assert max(map(len, told.splitlines())) <= 80
    assert not re.search(r"[a-z,]\.\.\.", told)  # cut short
    assert not re.search(r"<\w+|[{}]|\.\.\.\]\.\.\.", told)  # types and brackets of Python


def named_of(words):
    return [word for word in words if word != "x" and not word.startswith("-")]


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_help_ends_with_an_example_of_the_command(words, shown):
    """tests/docs/test_printed_commands.py runs each."""
    named = named_of(words)
    example = EXAMPLES[" ".join(named)]

    assert shown(*named, "--help").splitlines()[-1].strip() == f"Example: streamgauge {example}"
    assert example.split()[: len(named)] == named


def test_no_example_is_of_another_command():
    assert EXAMPLES.keys() == {" ".join(named_of(words)) for words in ([], *COMMANDS)}


def test_what_takes_long_can_be_quiet(shown):
    long = {name for name, place in app.COMMANDS.items() if place.is_long}

    assert long >= {"run", "search", "chaos", "compare", "gate", "upgrade", "recheck", "selftest"}
    for name in app.COMMANDS:
        assert ("--quiet" in shown(name, "-h")) is (name in long)
    assert "--quiet" in shown("engines", "add", "-h")


def test_every_flag_of_a_key_says_what_it_takes_and_what_it_is_when_it_is_left_out(shown):
    told = plain(shown("run", "-h"))

    for key in EVENTS + SYSTEM + ("engine", "sink", "rate", "duration", "fault", "repeat", "checksum"):
        flag = f"--{key.replace('_', '-')}"
        assert plain(f"{flag} {KEYS[key].read.shape}") in told
        assert plain(KEYS[key].explained()) in told
        assert "[default: " in KEYS[key].explained() or KEYS[key].default in (False, {})


def test_a_gate_says_what_its_own_scenario_takes(shown):
    _, keys = plan.read_scenario(gate_sides.SCENARIO)

    told = plain(shown("gate", "-h"))

    for key in ("disorder", "fault"):
        assert plain(KEYS[key].explained(keys[key])) in told


@pytest.mark.parametrize("command", ["search", "upgrade"])
def test_a_command_says_what_the_scenario_takes_that_it_runs_by_itself(command, shown):
    _, keys = plan.read_scenario("calm")

    told = plain(shown(command, "-h"))

    assert "[default: calm]" in told
    assert plain(KEYS["disorder"].explained(keys["disorder"])) in told


def test_a_comparison_says_how_long_and_how_often_it_runs(shown):
    told = plain(shown("compare", "-h"))

    assert plain(KEYS["duration"].explained(f"{compare.Settings().load_s}s")) in told
    assert plain(KEYS["repeat"].explained(f"{compare.Settings().rounds}")) in told


def test_what_a_tier_may_say_is_said_to_be_its_own(shown):
    of_tiers = {key for name in chaos.tiers() for key in chaos.read_tier(name).keys} - {"checksum"}

    told = plain(shown("chaos", "-h"))

    assert of_tiers | {"disorder"} == set(OF_THE_TIER)  # `calm`, which is the scenario of all, has one of its own
    for key in OF_THE_TIER:
        assert plain(KEYS[key].explained("the tier's")) in told


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("run", [*IDS, "fake", *plan.scenarios(), *PRESETS, *CLIENTS]),
        ("chaos", chaos.ORDER),
        ("search", plan.scenarios()),
        ("tape", plan.scenarios()),
    ],
)
def test_choices_are_those_of_the_registries(command, names, shown):
    told = plain(shown(command, "-h"))

    assert [name for name in names if name not in told] == []


def test_commands_stand_below_what_they_are_for_and_run_comes_first(shown):
    told = shown("-h")

    assert [line.rstrip(":") for line in told.splitlines() if line.rstrip(":") in panels.PANELS] == [*panels.PANELS]
    assert isinstance(GROUP, typer.core.TyperGroup)
    for name in GROUP.commands:
        assert f"\n  {name} " in told
    assert told.index("\n  run ") < min(told.index(f"\n  {name} ") for name in GROUP.commands if name != "run")


def test_no_command_at_all_shows_the_help_and_is_a_mistake(capsys, monkeypatch):
    monkeypatch.setattr(owners, "sweep", list)

    assert ended([], lambda: app.called([])) == Exit.USAGE
    assert capsys.readouterr().err.startswith("Usage: streamgauge [OPTIONS] COMMAND")


# ---------------------------------------------------------------- What a shell completes

PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from harness.__main__ import main; main()"
ASK = """
eval "$COMPLETION"
complete -p streamgauge
COMP_WORDS=(streamgauge "$@")
COMP_CWORD=$#
_streamgauge_completion streamgauge
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def completed(tmp_path, shown):
    """What a real bash offers behind these words."""
    program = tmp_path / "bin" / "streamgauge"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\nexec {sys.executable} -E -c '{PROGRAM}' \"$@\"\n".replace("'/", '"/').replace("')", '")')
    )
    program.chmod(0o755)

    def ask(*words):
        done = subprocess.run(
            ["bash", "-c", ASK, "bash", *words],
            env={
                "PATH": f"{program.parent}:/usr/bin:/bin",
                "HOME": str(tmp_path),
                "COMPLETION": shown("completion", "bash"),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        first, *offered = done.stdout.splitlines()
        assert first.startswith("complete -o default -F _streamgauge_completion")
        assert done.stderr == ""
        return offered

    return ask


@pytest.fixture
def offered(tmp_path, monkeypatch, capsys):
    """What the program answers to a bash that asks what may stand behind these words."""
    monkeypatch.chdir(tmp_path)
    run, experiment = tmp_path / "runs" / "20260101-000000-calm-fake", tmp_path / "experiments/20260101-000000-smoke"
    for path in (run / "owner.json", experiment / folder.FILE):
        path.parent.mkdir(parents=True)
        path.touch()

    def ask(*words):
        monkeypatch.setenv(COMPLETING, "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["streamgauge", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            app.called([])
        return capsys.readouterr().out.splitlines()

    return ask


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sear"], ["search"]),
        (
            ["run", "--engine", "flink"],
            ["flink", "flink-standalone", "flink-java", "flink-batch", "flink-postgresql", "flink-iceberg"],
        ),
        (["run", "--engine", "reference", "--sink", ""], [sink.name for sink in load("reference").sinks]),
        (["chaos", "--fault", "redis-"], [name for name in FAULTS if name.startswith("redis-")]),
        (["run", "cal"], ["calm"]),
        (["run", "--dis"], ["--disorder"]),
        (["recheck", "runs/2"], ["runs/20260101-000000-calm-fake"]),
        (["report", "experiments/"], ["experiments/20260101-000000-smoke"]),
        (["engines", ""], ["add", "rm"]),
    ],
    ids=" ".join,
)
def test_commands_flags_and_names_are_completed(words, expected, offered):
    assert offered(*words) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_a_real_bash_completes_by_the_script(completed):
    assert completed("engines", "") == ["add", "rm"]


def test_a_shell_that_is_not_known_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(owners, "sweep", list)

    assert ended(["x"], lambda: app.called(["completion", "bsh"])) == Exit.USAGE
    assert "nearest: 'bash'" in capsys.readouterr().err
