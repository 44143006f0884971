"""What a gate is given, by what was typed: an engine, one of its sinks, a path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.experiments.gating.candidates import Candidate, _inside, commit_of, look_up, made
from harness.model import AD_IMPRESSIONS, UsageError


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """In no repository: nothing is a commit."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("typed", "engine", "sink"),
    [
        ("spark", "spark", ""),
        ("spark@4.1.3", "spark@4.1.3", ""),
        ("spark/increment", "spark", "increment"),
        ("spark@4.1.3/fenced", "spark@4.1.3", "fenced"),
    ],
)
def test_an_engine_and_one_of_its_sinks(typed, engine, sink):
    assert look_up(typed, "", AD_IMPRESSIONS) == Candidate(typed, engine, sink)


def test_a_sink_is_one_of_the_job_of_the_question():
    assert look_up("spark-tws/kafka", "", "enrichment") == Candidate("spark-tws/kafka", "spark-tws", "kafka")


def test_a_path_is_no_sink(tmp_path):
    (tmp_path / "mine" / "increment").mkdir(parents=True)
    (tmp_path / "mine" / "increment" / "manifest.toml").write_text('id = "mine"\nextends = "reference"\n')

    assert look_up("mine/increment", "", AD_IMPRESSIONS).engine == "mine/increment"


@pytest.mark.parametrize("typed", ["spark/no-such-sink", "no-such-branch", "spark/"])
def test_what_is_neither_says_what_there_is(typed):
    """`spark/new-join` may well be a branch, where there is one."""
    with pytest.raises(UsageError, match=r"neither an engine .*no commit: this folder is in no repository"):
        look_up(typed, "", AD_IMPRESSIONS)


def test_what_no_commit_of_this_repository_is_named_names_the_repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    with pytest.raises(UsageError, match=r"neither an engine .*no commit of the repository"):
        look_up("no-such-branch", "", AD_IMPRESSIONS)


def test_an_engine_that_is_no_commit_is_started_as_it_is(tmp_path):
    with made(Candidate("spark", "spark", ""), tmp_path, print) as engine:
        assert engine == "spark"


def test_only_a_path_in_the_repository_is_looked_up_there(tmp_path):
    for name in ("repository/mine", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)

    assert _inside(tmp_path / "repository", str(tmp_path / "repository" / "mine")) == Path("mine")
    assert _inside(tmp_path / "repository", str(tmp_path / "elsewhere")) == tmp_path / "elsewhere"


def committed(folder: Path, **files: str) -> str:
    """Make a repository of one commit."""
    for name, text in files.items():
        (folder / name).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_a_path_has_the_commit_that_is_checked_out_and_a_shipped_engine_has_none(tmp_path):
    commit = committed(tmp_path, job="as committed")
    candidate = Candidate("job", str(tmp_path / "job"))

    assert commit_of(Candidate("spark", "spark")) == ""
    assert commit_of(candidate) == commit
    (tmp_path / "job").write_text("edited")
    assert commit_of(candidate) == f"{commit}-dirty"


def test_a_commit_is_built_by_the_command_of_its_manifest(tmp_path):
    repository, logs = tmp_path / "repository", tmp_path / "logs"
    repository.mkdir()
    logs.mkdir()
    manifest = 'id = "mine"\nextends = "reference"\nbuild = ["sh", "-c", "echo compiled; echo > {home}/built"]\n'
    commit = committed(repository, **{"manifest.toml": manifest})
    said: list[str] = []

    with made(Candidate("first", "manifest.toml", commit=commit, top=repository), logs, said.append) as engine:
        assert (Path(engine).parent / "built").exists()
    assert [words.split(":")[0] for words in said] == ["building first"]
    assert (logs / "build-1.log").read_text() == "compiled\n"
    assert not (repository / "built").exists()
