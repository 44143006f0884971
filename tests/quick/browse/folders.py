"""Folders with runs for the tests of `serve`: stored ones of this version and of older ones, and broken ones."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

from harness.rundir.store import Store
from tests.quick.rechecked import RUNS

RIGHT, DOUBLES, OLD, LOSES = "right", "schema-3-doubles", "schema-2-right", "schema-2-loses"
USED = (RIGHT, DOUBLES, OLD, LOSES)
SCRIPT = "<script>alert(1)</script>"
SECRET = "a secret of another folder"


def unpack(folder: Path) -> Path:
    with tarfile.open(RUNS) as archive:
        members = [each for each in archive if each.name.removeprefix("./").split("/")[0] in USED]
        archive.extractall(folder, members, filter="data")
    return folder


def copied(stored: Path, runs: Path, *names: str) -> Path:
    """A folder with copies of some stored runs."""
    for name in names:
        shutil.copytree(stored / name, runs / name)
    return runs


def running(runs: Path, stored: Path) -> Store:
    """A run whose process is this one."""
    store = Store.create(runs, "calm-fake")
    for name in ("spec.json", "plan.json"):
        shutil.copy(stored / RIGHT / name, store.path)
    store.tell("begin")
    return store


def script_in_a_name(runs: Path, stored: Path) -> Path:
    """A run whose name, scenario, engine and sentence hold a script."""
    run = runs / f"{SCRIPT.replace('/', '_')}&x"
    shutil.copytree(stored / RIGHT, run)
    spec = (run / "spec.json").read_text()
    (run / "spec.json").write_text(spec.replace('"selftest"', f'"{SCRIPT}"').replace('"fake"', f'"{SCRIPT}"'))
    (run / "verdict.json").unlink()
    Store(run).tell("ended early", how="interrupted", why=SCRIPT)
    return run


def not_utf8(runs: Path, stored: Path) -> Path:
    run = runs / os.fsdecode(b"run-\xff")
    shutil.copytree(stored / RIGHT, run)
    return run
