"""The flags that commands share: said once, given only when given, and in their place in the help."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from harness.cli.flags import takes
from harness.config.scenario_keys import KEYS


@pytest.fixture
def call():
    """A command with flags; the last call's answer is what the command got."""
    app, got = typer.Typer(add_completion=False), []

    @app.command()
    @takes("rate", "reset", "conf", "objective_p99_ms")
    def command(place: Annotated[str, typer.Argument()] = "here", *, quick: bool = False, **flags: Any) -> None:
        got.append((place, quick, flags))

    def run(*arguments):
        done = CliRunner().invoke(app, arguments)
        return got[-1] if done.exit_code == 0 and got else done

    return run


def test_a_command_gets_the_flags_that_were_given_and_no_others(call):
    assert call() == ("here", False, {})
    assert call("there", "--quick", "--rate", "5") == ("there", True, {"rate": "5"})
    assert call("--conf", "a=1", "--conf", "b=2")[2] == {"conf": ["a=1", "b=2"]}
    assert call("--objective-p99-ms", "10")[2] == {"objective_p99_ms": "10"}


@pytest.mark.parametrize(("said", "value"), [("--reset", True), ("--no-reset", False)])
def test_a_switch_that_is_turned_off_was_given(call, said, value):
    assert call(said)[2] == {"reset": value}


def test_a_folder_with_the_name_of_a_shipped_one_is_named(tmp_path, monkeypatch, capsys):
    for folder, file in (("spark", "manifest.toml"), ("page_visits", "workload.toml"), ("flink", "workload.toml")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).touch()
    monkeypatch.chdir(tmp_path)
    command = takes("workload")(lambda engines, **flags: None)

    command(engines=["spark", "flink", "./spark"], workload="page_visits")

    assert capsys.readouterr().err.splitlines() == [
        "spark is the shipped engine. Write ./spark for the one in your folder spark.",
        "page_visits is the shipped workload. Write ./page_visits for the one in your folder page_visits.",
    ]


def test_other_keys_are_no_flags_of_it(call):
    assert call("--seed", "1").exit_code == 2


def test_the_help_of_a_flag_is_that_of_its_key_and_stands_before_the_command_s_own(call):
    shown = call("--help").stdout

    assert KEYS["rate"].help.capitalize() in shown
    places = [shown.index(name) for name in ("--rate", "--reset", "--conf", "--objective-p99-ms", "--quick")]
    assert places == sorted(places)
