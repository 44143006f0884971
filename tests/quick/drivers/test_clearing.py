"""`ls` shows sizes, and `rm` removes what nobody needs: never what is no run, nor what is still needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import app
from harness.drivers.delete_runs import Candidate, chosen
from harness.experiments.folder import BEGUN, Folder
from harness.metering.process_sampling import folder_bytes
from harness.model import Exit, Outcome, UsageError
from harness.rundir.store import OWNER, Store
from harness.services import owners
from harness.terminal.command_end import ended

DAY = 86_400_000
NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)
    return tmp_path


def call(*arguments: str) -> int:
    return ended(arguments, lambda: app.called(arguments))


def a_run(base: str = "runs", at_ms: int = NOW - 10 * DAY, size: int = 1000) -> Path:
    """Of a process that has ended."""
    number = len(list(Path(base).iterdir())) if Path(base).exists() else 0
    path = Path(base) / f"run-{number}"
    (path / "logs").mkdir(parents=True)
    (path / OWNER).write_text('{"schema": 3, "owner": "1:2:elsewhere"}')
    (path / "history.jsonl").write_text(f'{{"at_ms": {at_ms}, "kind": "made"}}\n')
    (path / "logs" / "engine.log").write_bytes(b"x" * size)
    return path


def an_experiment(*, goes_on: bool = False) -> Path:
    folder = Folder.create(Path("experiments"), "search")
    folder.save("search")
    a_run(str(folder.runs))
    folder.history.tell(BEGUN, owner=owners.owner_mark() if goes_on else "1:2:elsewhere")
    if not goes_on:
        folder.finished(Outcome.PASS, "found")
    return folder.path


def said(capsys) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_a_run_that_is_named_is_removed_and_its_bytes_are_told(capsys):
    first, second = a_run(size=5_000_000), a_run()
    size = folder_bytes(first)

    assert call("rm", str(first), "--json") == Exit.PASS

    told = said(capsys)
    assert told["removed"] == [{"path": str(first.absolute()), "bytes": size}]
    assert told["bytes"] == size
    assert [path.name for path in Path("runs").iterdir()] == [second.name]


def test_a_dry_run_says_the_same_and_removes_nothing(capsys):
    path = a_run(size=5_000_000)

    assert call("rm", str(path), "--dry-run") == Exit.PASS

    assert capsys.readouterr().out == f"would remove {path} (5.0 MB)\nwould free 5.0 MB\n"
    assert (path / "logs" / "engine.log").exists()


@pytest.mark.parametrize("kind", ["a folder", "a file", "a folder of runs", "nothing", "a link to a run"])
def test_what_is_no_run_is_never_removed_nor_is_anything_beside_it(kind, capsys):
    good, other = a_run(), Path("other")
    if kind == "a folder":
        other.mkdir()
        (other / "thesis.txt").write_text("x")
    elif kind == "a file":
        other.write_text("x")
    elif kind == "a folder of runs":
        other = Path("runs")
    elif kind == "a link to a run":
        other.symlink_to(a_run("elsewhere").absolute())

    assert call("rm", str(good), str(other)) == Exit.USAGE

    assert "Nothing was removed" in capsys.readouterr().err
    assert (good / OWNER).exists()
    assert kind == "nothing" or other.exists()


def test_a_run_of_a_living_process_stays_unless_told(capsys):
    living = Store.create(Path("runs"), "living").path

    assert call("rm", str(living)) == Exit.USAGE
    assert "stays: its process is still running" in capsys.readouterr().err
    assert call("rm", "--but-last", "0", "--json") == Exit.PASS
    assert said(capsys)["kept"] == [{"path": str(living.absolute()), "why": "its process is still running"}]
    assert living.exists()
    assert call("rm", str(living), "--force") == Exit.PASS
    assert not living.exists()


def test_a_run_of_an_experiment_goes_with_that_unless_told(capsys):
    experiment = an_experiment()
    (run,) = (experiment / "runs").iterdir()

    assert call("rm", str(run)) == Exit.USAGE
    assert f"it is part of {experiment} and is removed with that" in capsys.readouterr().err
    assert call("rm", str(run), "--force") == Exit.PASS
    assert (experiment / "experiment.json").exists()
    assert not run.exists()


def test_an_experiment_of_another_program_above_a_run_keeps_nothing(here):
    (here / "experiment.json").write_text('{"name": "of another program"}')
    run = a_run()

    assert call("rm", str(run)) == Exit.PASS
    assert not run.exists()
    assert (here / "experiment.json").exists()


def test_an_experiment_goes_with_its_runs_once():
    experiment = an_experiment()
    (run,) = (experiment / "runs").iterdir()

    assert call("rm", str(run), str(experiment)) == Exit.PASS

    assert not experiment.exists()


def test_an_experiment_that_goes_on_stays(capsys):
    experiment = an_experiment(goes_on=True)

    assert call("rm", str(experiment)) == Exit.USAGE

    assert "it is still running" in capsys.readouterr().err
    assert experiment.exists()


def test_a_torn_run_can_be_removed():
    path = a_run()
    (path / OWNER).write_text("{")

    assert call("rm", str(path)) == Exit.PASS

    assert not path.exists()


def test_a_removal_that_was_broken_off_leaves_what_can_be_removed_again(monkeypatch, capsys):
    path = a_run()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted", "engine.log")

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", refused)
        assert call("rm", str(path)) == Exit.BROKEN
    assert "could not be removed: Operation not permitted (engine.log)" in capsys.readouterr().err
    assert call("rm", str(path)) == Exit.PASS
    assert not path.exists()


def test_nothing_asked_is_a_mistake(capsys):
    assert call("rm") == Exit.USAGE
    assert "--older-than 7d or --but-last 20" in capsys.readouterr().err


@pytest.mark.parametrize("age", ["7", "d", "-1d", "7 weeks", ""])
def test_an_age_has_a_unit(age, capsys):
    assert call("rm", "--older-than", age) == Exit.USAGE
    assert "such as 7d" in capsys.readouterr().err


def test_runs_and_experiments_here_are_counted_together(capsys):
    oldest, experiment = a_run(at_ms=DAY), an_experiment()

    assert call("rm", "--but-last", "1", "--dry-run", "--json") == Exit.PASS

    told = said(capsys)
    assert told["removed"] == [{"path": str(oldest.absolute()), "bytes": folder_bytes(oldest)}]
    assert experiment.exists()


# ---------------------------------------------------------------- Which ones

TEN = [Candidate(Path(f"run-{days}"), NOW - days * DAY) for days in range(10, 0, -1)]


def names(found):
    return [int(each.path.name.removeprefix("run-")) for each in found]


@pytest.mark.parametrize(
    ("older_than", "but_last", "gone"),
    [
        (None, 3, [10, 9, 8, 7, 6, 5, 4]),
        (None, 0, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (None, 20, []),
        (7, None, [10, 9, 8]),
        (7, 9, [10]),
        (2, 5, [10, 9, 8, 7, 6]),
    ],
)
def test_those_go_that_meet_every_condition(older_than, but_last, gone):
    choice = chosen(
        TEN,
        older_than_ms=older_than and older_than * DAY,
        but_last=but_last,
        now_ms=NOW,
        force=False,
    )

    assert names(choice.gone) == gone


def test_what_does_not_say_when_it_was_made_is_never_old():
    unknown = Candidate(Path("run-0"), None)

    choice = chosen([unknown, *TEN], older_than_ms=1, but_last=None, now_ms=NOW, force=False)

    assert unknown not in choice.gone


def test_what_is_needed_is_passed_over_by_a_condition_and_refused_by_name():
    needed = Candidate(Path("run-11"), NOW - 11 * DAY, "it is still running")

    choice = chosen([needed, *TEN], older_than_ms=DAY * 9, but_last=None, now_ms=NOW, force=False)

    assert (names(choice.gone), choice.kept) == ([10], (needed,))
    with pytest.raises(UsageError, match="it is still running"):
        chosen([needed], older_than_ms=None, but_last=None, now_ms=NOW, force=False)


# ---------------------------------------------------------------- Sizes


def test_ls_shows_what_each_run_and_experiment_takes(capsys):
    run, experiment = a_run(size=2_500_000), an_experiment()
    (experiment / "big").write_bytes(b"x" * 12_000_000)

    call("ls", "--json")
    told = said(capsys)
    call("ls")
    shown = capsys.readouterr().out

    assert told["runs"][0]["bytes"] == folder_bytes(run)
    assert told["experiments"][0]["bytes"] == folder_bytes(experiment)
    assert "2.5 MB" in shown
    assert "12 MB" in shown
