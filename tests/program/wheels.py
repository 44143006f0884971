"""A wheel of this checkout, built from a copy of what it is built from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from harness.engines.versions import UV

ROOT = Path(__file__).resolve().parents[2]
CLIENT = "client"  # what people import; the wheel calls it streamgauge
PACKAGES = ("harness", "workloads", "generators", "reports")
BESIDE = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")


def copied(folder: Path) -> Path:
    """A checkout without its history, and with folders that no wheel shall hold."""
    for name in (CLIENT, *PACKAGES, "requirements", "tests", "docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDE:
        shutil.copy(ROOT / name, folder)
    return folder


def built(checkout: Path, out: Path) -> Path:
    """As .ci/run builds it: with what the tests' environment has, and no network."""
    how = ["build", "--wheel", "--no-build-isolation", "--offline", "--python", sys.executable]
    command = [str(UV), *how, "--out-dir", str(out), str(checkout)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel
