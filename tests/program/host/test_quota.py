"""A control group with a CPU quota: what it holds, why there is none, and that it goes when it is no longer needed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.drivers import one_run
from harness.host import cgroup, quota
from harness.host.quota import Quota
from harness.model import HarnessError, UsageError
from harness.services.children import spawn
from harness.util.wait import wait_until
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults import MANIFEST

BUSY = "while True: pass"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Our own group, in which a new folder has no files."""
    monkeypatch.setattr(cgroup, "own_groups", lambda _: [tmp_path])
    return tmp_path


def test_both_versions_of_control_groups_take_a_quota(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, files in ((old, ("cpu.cfs_period_us", "cpu.cfs_quota_us")), (new, ("cpu.max",))):
        folder.mkdir()
        for name in files:
            (folder / name).touch()
        quota.limit(folder, 1.25)

    assert (old / "cpu.cfs_quota_us").read_text() == "125000\n"
    assert (old / "cpu.cfs_period_us").read_text() == "100000\n"
    assert (new / "cpu.max").read_text() == "125000 100000\n"


def test_why_there_is_none_is_said_and_nothing_is_left(own, monkeypatch):
    assert "takes no quota (the controller `cpu` is not delegated to it)" in quota.impossible(0.5)
    monkeypatch.setattr(cgroup, "own_groups", lambda _: [own / "missing"])
    assert quota.impossible(0.5) == f"no control group can be made in {own / 'missing'} (No such file or directory)"
    monkeypatch.setattr(cgroup, "own_groups", lambda _: [])
    assert "no control group with the controller `cpu` is visible" in quota.impossible(0.5)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert quota.impossible(0.5) == "only Linux has control groups"
    assert [*own.iterdir()] == []


def test_groups_of_dead_harnesses_are_removed_and_those_of_living_ones_stay(own):
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead, living = own / f"streamgauge-{ended.pid}-0a", own / f"streamgauge-{os.getpid()}-0b"
    for folder in (dead, living):
        folder.mkdir()
    with pytest.raises(HarnessError):
        quota.make(0.5)

    assert [*own.iterdir()] == [living]


@pytest.mark.parametrize(("cores", "part"), [(0, False), (1, False), (2.0, False), (0.5, True), (1.5, True)])
def test_a_whole_number_takes_no_quota(cores, part):
    assert quota.is_part(cores) is part


def test_a_child_with_all_of_its_processes_is_held_to_its_quota(tmp_path):
    if why := quota.impossible(0.1):
        pytest.skip(f"NO QUOTA IS TRIED: {why}")
    limited = Quota(0.1)
    group, busy = limited.group, f"{sys.executable} -c '{BUSY}' & wait"
    child = spawn(["sh", "-c", busy], name="busy", log=tmp_path / "busy.log", group=group)
    wait_until(lambda: len(child.members()) == 2, deadline_s=20, what="its child")
    members = {process.pid for process in child.members()}
    inside = {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
    wait_until(lambda: quota.periods(group)[1] > 0, deadline_s=60, what="the quota to stop it")
    child.kill_group()
    limited.remove()

    assert members < inside
    assert len(inside) == 3  # with its parent of ours
    assert not group.exists()
    assert "its quota of 0.1 cores stopped all of its threads for the rest of " in limited.in_words()
    limited.remove()


def test_an_engine_without_a_group_is_refused_before_the_run(monkeypatch):
    monkeypatch.setattr(quota, "impossible", lambda _: "no control group can be made in /x (Permission denied)")
    with pytest.raises(UsageError, match=r"cores = 0\.5 is not possible: a part of a core takes a control group"):
        one_run.refuse_the_impossible(replace(SPEC, cores=0.5), MANIFEST)


def test_a_group_is_made_when_it_is_needed_and_no_earlier(own: Path):
    unused = Quota(0.5)
    unused.remove()

    assert (unused.in_words(), [*own.iterdir()]) == ("", [])
