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


def test_its_run_is_the_one_that_the_command_makes(executed, tmp_path):
    place, _ = executed
    flags = [
        "--engine",
        "fake",
        "--fault",
        "kill@c3:batch=3",
        "--rate",
        "500",
        "--duration",
        "30s",
        "--campaigns",
        "20",
    ]
    command = [str(ROOT / "streamgauge"), "run", *flags, "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    of_command = Path(json.loads(done.stdout)["run"])
    of_notebook = min((place / "runs").iterdir())

    def said(run: Path) -> tuple[str, str, bytes]:
        verdict = json.loads((run / "verdict.json").read_text())
        return verdict["outcome"], verdict["sentence"], (run / "expected.parquet").read_bytes()

    assert said(tmp_path / of_command) == said(of_notebook)
