"""What the reference does on this machine: measured once for each start of it."""

from __future__ import annotations

import psutil
import pytest

from harness.drivers import reference_rate
from harness.experiments.curve import crossing
from harness.experiments.searching import search
from harness.experiments.searching.search import Unit
from harness.host import cgroup
from harness.model import Outcome
from harness.terminal.command_end import cache_folder


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """The folders in which a run was made, with what it then said."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = []

    def by_a_run(out):
        made.append(out)
        return Unit(400_000.0 + len(made), 1.9, 100_000.0)

    monkeypatch.setattr(reference_rate, "measured", by_a_run)
    return made


def test_it_is_measured_once_for_each_start_of_the_machine(tmp_path, measured, monkeypatch):
    first = reference_rate.of_this_start(tmp_path)
    again = reference_rate.of_this_start(tmp_path)
    booted_s = psutil.boot_time()
    monkeypatch.setattr(psutil, "boot_time", lambda: booted_s + 3600)
    other = reference_rate.of_this_start(tmp_path)

    assert first == again
    assert other != first
    assert len(measured) == 2


@pytest.mark.parametrize(
    "damage", [lambda file: file.write_bytes(b"{"), lambda file: file.unlink()], ids=["torn", "gone"]
)
def test_what_is_torn_is_measured_again(tmp_path, measured, damage):
    reference_rate.of_this_start(tmp_path)
    damage(cache_folder() / reference_rate.FILE)
    reference_rate.of_this_start(tmp_path)

    assert len(measured) == 2


def test_another_version_of_the_program_measures_for_itself(tmp_path, measured, monkeypatch):
    reference_rate.of_this_start(tmp_path)
    monkeypatch.setattr(reference_rate, "__version__", "99")
    reference_rate.of_this_start(tmp_path)

    assert len(measured) == 2


def test_another_number_of_cores_has_a_reference_of_its_own(tmp_path, measured, monkeypatch):
    reference_rate.of_this_start(tmp_path)
    monkeypatch.setattr(cgroup, "allowed_cores", lambda: 1)
    monkeypatch.setattr(cgroup, "quota_cores", lambda: None)
    on_one_core = reference_rate.of_this_start(tmp_path)
    monkeypatch.setattr(cgroup, "quota_cores", lambda: 2.0)  # of which one is there

    assert reference_rate.of_this_start(tmp_path) == on_one_core
    monkeypatch.setattr(cgroup, "quota_cores", lambda: 0.5)
    reference_rate.of_this_start(tmp_path)
    assert len(measured) == 3


def test_a_share_is_the_widest_where_the_reference_was_not_the_same_twice():
    found = search.Found(Outcome.PASS, "", None)
    units = [Unit(400_000.0, 1.9, 100_000.0), Unit(500_000.0, 1.7, 100_000.0)]

    assert search.shares(found, units) is None
    between = crossing.Answer(100_000.0, 120_000.0, (), None, 0.0)
    assert search.shares(search.Found(Outcome.PASS, "", between), units) == (0.2, 0.3)
    assert search.shares(search.Found(Outcome.PASS, "", between), []) is None
