"""Every answer of --json names the exit code with which its command ends, and has the keys that docs/reference has."""

from __future__ import annotations

import json

import pytest

from harness.cli import app
from harness.experiments.gating import history
from harness.model import Exit
from harness.terminal.command_end import ended
from tests.docs.reference_pages import answer_of
from tests.quick.histories import many

FAST = ["--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]
# These start engines, servers or tests of their own: their answers are looked at where they are run, and their
# refusals here.
STARTERS = {
    "backlog",
    "search",
    "chaos",
    "compare",
    "scale",
    "gate",
    "serve",
    "upgrade",
    "replay",
    "bench",
    "selftest",
    "worker",
    "up",
    "down",
    "docs",
    "test",
}
RIGHT = {
    "run": FAST,
    "recheck": ["RUN"],
    "report": ["RUN"],
    "live": ["RUN"],
    "ls": [],
    "rm": ["--but-last", "5"],
    "tape": ["--duration", "1s"],
    "trend": ["HISTORY"],
    "audit": ["COUNTS"],
    "doctor": [],
    "manifests": ["--image", "sg:1", "--kafka", "k:9092", "--redis", "redis://r"],
    "completion": ["bash"],
    "engines": [],
    "workload": ["new", "shop"],
}


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys, few_probes):
    """A command's exit code and its answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def asked(*words):
        capsys.readouterr()
        arguments = [*words, "--json"]
        code = ended(arguments, lambda: app.called(arguments))
        return code, json.loads(capsys.readouterr().out)

    return asked


def test_no_command_is_left_out():
    assert {*RIGHT, *STARTERS} == {*app.COMMANDS}


@pytest.mark.parametrize("command", sorted(RIGHT))
def test_an_answer_names_its_exit_code(command, ask, tmp_path):
    words = RIGHT[command]
    if "RUN" in words:
        words = [ask("run", *FAST)[1]["run"]]
    if "HISTORY" in words:
        (tmp_path / "history.jsonl").write_bytes(b"".join(map(history.encoded, many(5))))
        words = [str(tmp_path / "history.jsonl")]
    if "COUNTS" in words:
        (tmp_path / "counts.csv").write_text("campaign,window,count\na,1000,3\na,11000,4\n")
        words = [str(tmp_path / "counts.csv")]

    code, answer = ask(command, *words)

    assert answer["exit"] == code
    assert code != Exit.USAGE, answer
    documented = answer_of(" ".join([command, *words][: 2 if command == "workload" else 1]))
    assert answer.keys() - {"command", "exit"} == documented


@pytest.mark.parametrize("command", sorted(app.COMMANDS))
def test_so_does_a_refusal(command, ask):
    code, answer = ask(command, "--no-such-option")

    assert (code, answer["exit"]) == (Exit.USAGE, Exit.USAGE), answer
    assert "no-such-option" in answer["error"]
    assert answer.keys() - {"command", "exit"} == answer_of("a mistake or an error")
