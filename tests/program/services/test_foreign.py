"""Folders and files of others where a run, an experiment or a page of ours was asked for: told what they are, and left
as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import app
from harness.experiments.folder import Folder
from harness.model import Exit
from harness.rundir.store import Store
from harness.services import owners
from harness.terminal.command_end import ended

FOREIGN = {"owner.json": '{"team": "payments"}', "experiment.json": "[]", "report.html": '<a href="gone.html">x</a>'}
TOO_LONG = "x" * 300
READERS = (["recheck"], ["report"], ["replay"], ["search", "--resume"], ["chaos", "--resume"], ["compare", "--resume"])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)


@pytest.fixture
def mistake(capsys):
    """What is said of a command that has to be refused."""

    def call(*arguments: str) -> str:
        assert ended(arguments, lambda: app.called(arguments)) == Exit.USAGE
        return " ".join(capsys.readouterr().err.split())

    return call


def written(folder: str, files: dict[str, str]) -> dict[str, str]:
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {str(path): path.read_text() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", [*READERS, ["rm"]], ids=" ".join)
def test_what_another_program_keeps_under_our_names_is_none_of_ours(command, mistake):
    before = written("theirs", FOREIGN)

    said = mistake(*command, "theirs")

    assert "theirs is not a" in said
    assert "of streamgauge" in said
    assert before == written("theirs", {})


@pytest.mark.parametrize("command", [*READERS, ["ls"], ["rm"]], ids=" ".join)
@pytest.mark.parametrize(
    ("path", "what"), [("nowhere", "nowhere does not exist"), ("notes.txt", "notes.txt is a file")]
)
def test_what_is_no_folder_is_told_so(command, path, what, mistake):
    Path("notes.txt").write_text("x")

    said = mistake(*command, path)

    assert what in said
    assert "is expected" in said


@pytest.mark.parametrize(
    "command", [*READERS, ["rm"], ["ls"], ["trend"], ["audit"], ["gate", "--head", "fake", "--base"]], ids=" ".join
)
def test_a_name_that_no_file_can_have_is_a_mistake(command, mistake):
    assert "xxx" in mistake(*command, TOO_LONG)


@pytest.mark.parametrize("command", READERS[:3], ids=" ".join)
def test_an_experiment_is_no_run_and_says_where_its_runs_are(command, mistake, monkeypatch):
    folder = Folder.create(Path("experiments"), "search")
    folder.save("something new")

    said = mistake(*command, str(folder.path))

    assert "is not a run: it is an experiment." in said or "is a something new, but a chaos or a" in said


def test_a_space_that_makes_it_another_folder_is_seen(mistake):
    run = Store.create(Path("runs"), "mine").path

    assert f"{run} ' does not exist: the folder of a run is expected" in mistake("recheck", f"{run} ")


def test_a_run_is_no_experiment(mistake):
    run = Store.create(Path("runs"), "mine").path

    assert f"{run} is not an experiment: it is a run." in mistake("search", "--resume", str(run))


def test_a_list_passes_over_what_others_keep_here(capsys):
    written("runs/theirs", FOREIGN)
    mine = Store.create(Path("runs"), "mine").path

    assert ended(["ls"], lambda: app.called(["ls", "--json"])) == Exit.PASS
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == [mine.name]
    assert ended(["ls"], lambda: app.called(["ls", str(mine), "--json"])) == Exit.PASS
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == [mine.name]
    assert ended(["rm"], lambda: app.called(["rm", "--but-last", "0", "--force"])) == Exit.PASS
    assert {str(path) for path in Path("runs").iterdir()} == {"runs/theirs"}


def test_a_page_of_another_program_is_not_mended(mistake):
    page = written("theirs", {"report.html": FOREIGN["report.html"]})

    assert "it has no owner.json" in mistake("report", "theirs")
    assert page == written("theirs", {})
