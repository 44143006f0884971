"""The package that people import: what it asks the program, and what it makes of the answer."""

from __future__ import annotations

import ast
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import client
from client import program, result

SMALL: dict[str, Any] = {"engine": "fake", "duration": "14s", "rate": 300, "quiet": True}


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> client.Result:
    return client.run(out=tmp_path_factory.mktemp("right"), **SMALL)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> client.Result:
    return client.run(out=tmp_path_factory.mktemp("wrong"), conf="misbehave=drop:50", **SMALL)


def test_its_surface_is_what_people_rely_on():
    assert sorted(client.__all__) == [
        *("Check", "Experiment", "Failed", "ProgramError", "Result", "Servers", "Unknown", "UsageError", "Witness"),
        *("compare", "gate", "load", "run", "search", "servers"),
    ]
    fields = ["folder", "verdict", "sentence", "checks", "measurement", "recovery"]
    assert list(client.Result.__dataclass_fields__) == fields
    assert list(client.Experiment.__dataclass_fields__) == ["folder", "verdict", "sentence", "answer"]


def test_it_imports_the_standard_library_alone():
    """And what somebody has who calls the plug-in, or `to_pandas`."""
    others = {"__main__.py": {"harness"}, "pytest_plugin.py": {"pytest"}, "result.py": {"pandas"}}
    for file in Path(client.__file__).parent.glob("*.py"):
        allowed = sys.stdlib_module_names | others.get(file.name, set())
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert str(node.module).partition(".")[0] in allowed, file
            elif isinstance(node, ast.Import):
                assert {each.name.partition(".")[0] for each in node.names} <= allowed, file


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"rate": 500}, ["--rate", "500"]),
        ({"objective_p99_ms": 20.5}, ["--objective-p99-ms", "20.5"]),
        ({"archive": False, "reset": True}, ["--no-archive", "--reset"]),
        ({"conf": ["a=1", "b=2"]}, ["--conf", "a=1", "--conf", "b=2"]),
        ({"engine": None, "out": Path("x y")}, ["--out", "x y"]),
    ],
)
def test_keywords_are_flags(flags, words):
    assert program.words_of(flags) == words


def test_a_right_job_passes(right):
    assert right.assert_pass() is right
    assert right.findings == ()
    assert right.report.is_file()
    assert right.measurement
    assert right.measurement["events"] > 4_000
    assert right.recovery[0]["fault"] == "kill@c3:batch=3"


def test_it_runs_in_a_kernel_that_draws_by_another_backend(tmp_path, monkeypatch):
    """Jupyter names its own backend in the environment, and no environment but the kernel's has it."""
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")

    assert client.run(out=tmp_path, **SMALL).report.is_file()


def test_what_was_stored_is_the_same(right):
    assert client.load(right.folder) == right
    with pytest.raises(FileNotFoundError, match="no folder of a judged run"):
        client.load(right.folder / "logs")


def test_a_wrong_job_fails_with_its_witnesses(wrong):
    with pytest.raises(client.Failed) as failed:
        wrong.assert_pass()

    assert str(failed.value).startswith("FAIL  lost: ")
    assert "campaign " in str(failed.value)
    assert str(wrong.report) in str(failed.value)
    assert wrong.measurement is None, "no speed for wrong answers"
    assert "<b" in wrong._repr_html_()


def test_a_sentence_is_no_html(right):
    for each in (
        result.Result(right.folder, "FAIL", "<script>", (), None, ()),
        result.Experiment(Path(), "FAIL", "<script>", {}),
    ):
        assert "FAIL" in each._repr_html_()
        assert "<script>" not in each._repr_html_()


def test_a_table_of_the_run_is_read_by_your_pandas(right, monkeypatch):
    class Pandas:
        def read_parquet(self, path: Path) -> str:
            return path.name

        def read_csv(self, path: Path) -> str:
            return path.name

        def json_normalize(self, rows: list[Any]) -> list[Any]:
            return rows

    monkeypatch.setitem(sys.modules, "pandas", Pandas())
    assert right.to_pandas() == "observed.parquet"
    assert right.to_pandas("timeline") == "timeline.parquet", "and not figures/timeline.csv, which has fewer columns"
    assert right.to_pandas("cells") == "cells.csv"
    with pytest.raises(LookupError, match="no table 'cell'\\. It has cells, cost, expected, "):
        right.to_pandas("cell")
    compared = result.Experiment(Path(), "PASS", "", {"engines": [{"engine": "spark"}]})
    assert compared.to_pandas() == [{"engine": "spark"}]
    with pytest.raises(LookupError, match=r"no table\. It has verdict"):
        result.Experiment(Path("x"), "PASS", "", {"verdict": "PASS"}).to_pandas()


def test_each_cell_is_a_row_with_what_was_expected_seen_and_how_it_stands(right, wrong):
    def rows(found):
        with (found.folder / "figures" / "cells.csv").open() as file:
            return list(csv.DictReader(file))

    of_right, of_wrong = rows(right), rows(wrong)
    assert list(of_right[0]) == ["key", "window_s", "cell", "expected_least", "expected_most", "seen", "stands"]
    assert {row["stands"] for row in of_right} == {"right"}
    assert all(int(row["expected_least"]) <= int(row["seen"]) <= int(row["expected_most"]) for row in of_right)
    lost = [row for row in of_wrong if row["stands"] == "lost"]
    assert {row["stands"] for row in of_wrong} == {"right", "lost"}
    assert sum(int(row["expected_least"]) - int(row["seen"]) for row in lost) == int(
        wrong.sentence.split(": ")[1].split()[0].replace(",", "")
    )


def test_a_flag_that_is_not_understood_is_told():
    with pytest.raises(client.UsageError, match="exit code 2: Unknown engine 'nope'"):
        client.run(engine="nope")
    with pytest.raises(client.UsageError, match="--wings"):
        client.run(engine="fake", wings=2)


def told_by(folder: Path, text: str) -> None:
    folder.write_text(f"#!/bin/sh\n{text}\n")
    folder.chmod(0o755)


@pytest.mark.parametrize("told", ["", "not JSON", "[]", "{}"])
def test_an_answer_that_is_none_is_an_error(told, tmp_path, monkeypatch):
    told_by(tmp_path / "p", f"echo '{told}'; exit 4")
    monkeypatch.setattr(program, "command", lambda: [str(tmp_path / "p")])

    with pytest.raises(client.ProgramError, match="streamgauge gate --base a --head b ended with exit code 4"):
        client.gate("a", "b")


def test_an_experiment_is_its_answer(tmp_path, monkeypatch):
    answer = {"verdict": "FAIL", "sentence": "slower", "gate": "experiments/1", "experiment": "experiments/2"}
    told_by(tmp_path / "p", f"echo \"$@\" > {tmp_path}/words; echo '{json.dumps(answer)}'; exit 1")
    monkeypatch.setattr(program, "command", lambda: [str(tmp_path / "p")])

    gated = client.gate("main", "HEAD", engine="jobs/x", budget=5)
    assert (gated.verdict, gated.folder, gated.passed) == ("FAIL", Path("experiments/1"), False)
    assert (tmp_path / "words").read_text() == "gate --base main --head HEAD --engine jobs/x --budget 5 --json\n"
    assert client.compare("spark", "flink", rate=100).folder == Path("experiments/2")
    assert (tmp_path / "words").read_text() == "compare spark flink --rate 100 --json\n"
    assert client.search(engine="spark").answer == answer


def test_an_interrupted_command_may_clean_up(tmp_path, monkeypatch):
    """It gets SIGINT, as from a terminal, and the time to stop what it started."""
    told_by(tmp_path / "p", f"trap 'echo stopped > {tmp_path}/end; exit 130' INT; touch {tmp_path}/up; sleep 60 & wait")
    monkeypatch.setattr(program, "command", lambda: [str(tmp_path / "p")])
    real = subprocess.Popen.communicate

    def interrupted(child, **more):
        monkeypatch.setattr(subprocess.Popen, "communicate", real)
        while not (tmp_path / "up").exists():
            assert child.poll() is None
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.run()
    assert (tmp_path / "end").read_text() == "stopped\n"
