"""The registry of commands: each line leads to a command, and a command waits for no other's modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer.core

from harness.cli import app, panels

ROOT = Path(__file__).resolve().parents[3]
ASK = "import sys; from harness.cli import app; app.called(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize("name", app.COMMANDS)
def test_a_line_leads_to_a_command_with_a_help_and_a_heading(name):
    command = app.Imported()[name]

    assert isinstance(command, typer.core.TyperCommand | typer.core.TyperGroup)
    assert command.help
    assert command.rich_help_panel in panels.PANELS
    assert "install_completion" not in {each.name for each in command.params}, "Typer's own, beside `completion`"


def test_a_name_of_no_line_leads_nowhere():
    assert app.Imported().get("nosuch") is None


@pytest.fixture(scope="module")
def modules_of(tmp_path_factory):
    """What is imported when these words are done, in a process of its own."""

    def ask(*words):
        done = subprocess.run(
            [sys.executable, "-E", "-c", ASK, *words],
            env={"HOME": str(tmp_path_factory.mktemp("home"))},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return set(done.stderr.splitlines()[-1].split())

    return ask


# Of other commands, or needed only once a run is under way or over.
NOT_OF_A_RUN = {
    "harness.runner.world.real",
    "harness.runner.world.fake",
    "harness.measuring.measure",
    "reports",
    "rich",
    "pyarrow.compute",
    "harness.experiments.searching.search",
    "harness.experiments.chaos",
    "harness.experiments.compare",
    "tools.bench.bench",
    "harness.selftest",
    "harness.drivers.delete_runs",
    "harness.audit",
    "harness.services.keeper",
}


def test_a_run_waits_for_nothing_that_others_need(modules_of):
    seen = modules_of("run", "--list")

    assert "harness.cli.run" in seen
    assert not NOT_OF_A_RUN & seen
    assert {each for each in seen if each.startswith("harness.cli.")} <= {
        f"harness.cli.{name}"
        for name in (
            "run",
            "common_flags",
            "scenario_flags",
            "show_verdict",
            "scenario_list",
            "app",
            "examples",
            "panels",
            "flags",
            "namesakes",
            "shell_completion",
            "live_flags",
        )
    }


def test_what_others_need_would_be_seen(modules_of):
    shown = modules_of("selftest", "--help")

    assert "harness.selftest" in shown & NOT_OF_A_RUN
    assert "harness.cli.run" not in shown
