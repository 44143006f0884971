"""What commands say of themselves: bad words are refused before anything starts, and --json always has an `exit`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.model import UsageError


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["test", "nosuch"], "SUITE = 'nosuch' is not right: one of quick, lint"),
        (["test", "quik"], "nearest: 'quick'"),
        (["tape", "--rate", "10000000", "--duration", "24h"], "the limit is 100,000,000"),
        (["workload", "new", ""], "DIR is empty"),
        (["workload", "new", " "], "DIR is empty"),
    ],
)
def test_what_can_not_be_is_refused_at_once(arguments, said):
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(app.app, arguments, catch_exceptions=False)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["ls"],
        ["engines"],
        ["workload"],
        ["workload", "check", "page_visits"],
        ["workload", "new", "mine"],
        ["tape", "--rate", "100", "--duration", "2s"],
        ["run", "--list"],
        ["chaos", "--list"],
        ["completion"],
        ["rm", "--but-last", "3"],
    ],
)
def test_an_answer_in_json_has_an_exit_code(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app.app, [*arguments, "--json"] if arguments != ["--version"] else ["--json", *arguments])

    assert json.loads(done.stdout)["exit"] == done.exit_code == 0


def bounded() -> Iterator[tuple[str, Any]]:
    """All options of all commands that take a number with bounds."""
    for name in app.COMMANDS:
        options = app.imported(name).params
        yield from ((name, each) for each in options if getattr(each, "min", None) is not None)


BOUNDED = [pytest.param(name, option, id=f"{name}-{option.name}") for name, option in bounded()]


@pytest.mark.parametrize(("command", "option"), BOUNDED)
def test_a_number_beyond_its_bounds_is_refused_with_the_true_one(command, option):
    beyond = {
        f"{option.min - 1:.0f}": option.min,
        **({} if option.max is None else {f"{option.max * 2:.0f}": option.max}),
    }
    for value in (*beyond, "soon", "nan", ""):
        with pytest.raises(UsageError) as refused:
            app.called([command, option.opts[0], value])
        assert option.opts[0] in str(refused.value), value
        if value in beyond:
            named = re.search(r"than or equal to ([-+.e0-9]+)\. ", str(refused.value))
            assert named, str(refused.value)
            assert float(named[1]) == beyond[value]


def test_there_are_such_options():
    assert {name for name, _ in bounded()} >= {"audit", "gate", "chaos", "rm"}
