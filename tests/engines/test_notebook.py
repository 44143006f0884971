"""The notebook of examples/ is executed by Jupyter's own client, in a kernel with none of the program's packages."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.engines.environments import python_with
from harness.terminal.command_end import cache_folder

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "notebook" / "streamgauge.ipynb"
PINS = ROOT / "requirements" / "notebook.lock"
ENGINES = "fake reference"  # one in memory, which can count wrong, and a real one
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=240, resources={"metadata": {"path": "."}}).execute()
nbformat.write(notebook, "executed.ipynb")
"""

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("notebook")]  # it is executed once


@pytest.fixture(scope="module")
def kernel() -> Path:
    digest = hashlib.sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()[:16]
    return python_with("notebook", [PINS], cache_folder() / "notebook" / digest, print)


@pytest.fixture(scope="module")
def executed(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder in which it was executed, and the notebook with its outputs."""
    place = tmp_path_factory.mktemp("notebook")
    (place / "installed").mkdir()
    (place / "installed" / "streamgauge").symlink_to(ROOT / "client")  # as a wheel names it
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env = kept | {"PYTHONPATH": str(place / "installed"), "NOTEBOOK_ENGINES": ENGINES, "JUPYTER_PLATFORM_DIRS": "1"}
    done = subprocess.run(
        [kernel, "-c", EXECUTE, NOTEBOOK], cwd=place, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return place, json.loads((place / "executed.ipynb").read_text())


def shown(cell: dict[str, Any], kind: str) -> list[str]:
    return ["".join(each["data"][kind]) for each in cell["outputs"] if kind in each.get("data", {})]


def test_it_has_ten_cells_and_no_outputs_of_some_machine():
    notebook = json.loads(NOTEBOOK.read_text())

    assert len(notebook["cells"]) == 10
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def test_each_cell_shows_what_it_is_for(executed):
    _, notebook = executed
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    _, run, table, right_map, latency, wrong, worst, compared = code

    assert ">PASS</b>" in shown(run, "text/html")[0]
    assert "<th>expected_least</th>" in shown(table, "text/html")[0]
    for each in (right_map, latency, wrong, compared):
        assert len(shown(each, "image/png")) == 1
    assert ">FAIL</b> duplicated: " in shown(wrong, "text/html")[0]
    assert shown(worst, "text/html")[0].count("duplicated") == 5
    both = shown(compared, "text/html")[0]
    assert all(f"<th>{name}</th>" in both for name in ENGINES.split())
    assert both.count("PASS") == 2


# The run of the notebook, asked for in each of the other ways.
PLAN = {"engine": "fake", "fault": "kill@c3:batch=3", "rate": 500, "duration": "30s", "campaigns": 20}
BY_PYTHON = f"import streamgauge; print(streamgauge.run(**{PLAN}, quiet=True).folder)"
BY_PYTEST = f"def test_job(gauge):\n    gauge(**{PLAN}, quiet=True).assert_pass()\n"


def by_command(folder: Path, _: Path) -> Path:
    flags = [word for name, value in PLAN.items() for word in (f"--{name}", str(value))]
    done = made([ROOT / "streamgauge", "run", *flags, "--json"], folder)
    return folder / str(json.loads(done)["run"])


def by_python(folder: Path, kernel: Path) -> Path:
    (folder / "streamgauge").symlink_to(ROOT / "client")  # as a wheel names it
    return Path(made([kernel, "-c", BY_PYTHON], folder, PYTHONPATH=str(folder)).strip())


def by_pytest(folder: Path, _: Path) -> Path:
    (folder / "test_job.py").write_text(BY_PYTEST)
    words = ["-p", "client.pytest_plugin", "-p", "no:cacheprovider", "test_job.py"]
    made([sys.executable, "-m", "pytest", *words], folder, PYTHONPATH=str(ROOT))
    (run,) = (folder / "streamgauge-runs").glob("*/*/verdict.json")
    return run.parent


def made(command: list[Any], folder: Path, **more: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=kept | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", [by_command, by_python, by_pytest], ids=lambda way: way.__name__)
def test_the_same_run_has_the_same_verdict_and_digests_in_every_way(way, executed, kernel, tmp_path):
    place, _ = executed
    first_of_notebook = min((place / "runs").iterdir())

    assert answer(way(tmp_path, kernel)) == answer(first_of_notebook)


def answer(run: Path) -> dict[str, Any]:
    verdict, plan = (json.loads((run / name).read_text()) for name in ("verdict.json", "plan.json"))
    said = {name: verdict[name] for name in ("outcome", "sentence", "totals")}
    said["checks"] = {each["name"]: each["outcome"] for each in verdict["checks"]}
    digests = {name: plan[name] for name in ("tape", "warm_up", "expected")}
    return said | digests | {"cells": (run / "expected.parquet").read_bytes()}
