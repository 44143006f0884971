"""The process family on the fake engine, which shows what each fault harms, and on real processes."""

from __future__ import annotations

import signal
import sys

import pytest

from harness.engines.base import Member
from harness.engines.process import ProcessEngine
from harness.model import EngineManifest, Outcome, SinkClaim
from harness.util.wait import wait_until
from tests.program.runner.test_run import fake_run
from tests.program.services.test_children import runs
from tests.quick.cases import placed


@pytest.mark.parametrize("point", ["c1", "c2"])
@pytest.mark.parametrize(("sink", "words"), [("absolute", ("lost",)), ("increment", ("duplicated",)), ("fenced", ())])
def test_a_zombie_harms_whoever_has_no_fence(tmp_path, sink, words, point):
    verdict, _, _ = fake_run(tmp_path, sink=sink, fault=f"zombie@{point}:batch=3", duration="30s")

    assert verdict.words[: len(words)] == words, verdict.sentence
    assert bool(verdict.words) is bool(words)


@pytest.mark.parametrize(("sink", "words"), [("absolute", ()), ("increment", ("duplicated",)), ("fenced", ())])
def test_two_drivers_do_the_same_batch_twice(tmp_path, sink, words):
    verdict, _, _ = fake_run(tmp_path, sink=sink, fault="two-drivers(for=2s)@batch>=5")

    assert verdict.words == words, verdict.sentence


@pytest.mark.parametrize("sink", ["absolute", "fenced"])
@pytest.mark.parametrize(
    "fault",
    [
        "stop@t>=3s",
        "pause(for=2s)@t>=3s",
        "kill-driver@batch>=4",
        "crash-loop(times=3, after=1s)@offset>=20%",
        "kill-in-recovery@c2:batch=3",
    ],
)
def test_safe_sinks_survive_the_others(tmp_path, sink, fault):
    verdict, store, _ = fake_run(tmp_path, sink=sink, fault=fault)

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert all(told["report"]["landed"] and told["report"]["healed"] for told in store.history("fault"))


# Real processes: a driver, a child that left its group, and no signal handler to soften anything.
JOB = """
import json, subprocess, sys, time
config = json.load(open(sys.argv[1]))
subprocess.Popen(["setsid", "sleep", "600"])
with open(config["progress_path"], "a") as file:
    file.write(json.dumps({"at": 1, "batch": 0, "rows": 1, "offsets": {"0": 5}}) + "\\n")
time.sleep(600)
"""


@pytest.fixture
def processes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    private = tmp_path / "private"
    private.mkdir()
    (tmp_path / "job.py").write_text(JOB)
    claim = SinkClaim("default", "keep", "none")
    manifest = EngineManifest("sleeper", (sys.executable, "job.py", "{config}"), str(tmp_path), False, (claim,))
    config = placed(tmp_path, crash_path=str(private / "crash"))
    real = ProcessEngine(manifest, config, logs=tmp_path, evidence=tmp_path / "evidence", private=private, env={})
    real.start()
    yield real
    real.stop()


def both(driver) -> tuple[Member, ...]:
    return wait_until(
        lambda: driver.members() if len(driver.members()) == 2 else (),
        deadline_s=60,
        what="a driver and its child",
        state=lambda: f"{driver.members()} {driver.tail(5)}",
    )


def test_members_show_who_leads_who_left_the_group_and_who_stands_still(processes):
    driver, child = sorted(both(processes), key=lambda member: not member.leads)
    assert (driver.leads, child.leads, child.parent) == (True, False, driver.pid)
    assert "sleep" in child.command

    processes.signal(signal.SIGSTOP, [child.pid])
    wait_until(
        lambda: {m.pid for m in processes.members() if m.stopped} == {child.pid},
        deadline_s=20,
        what="the child alone to stand still",
    )
    processes.signal(signal.SIGCONT, [child.pid])
    wait_until(lambda: not any(m.stopped for m in processes.members()), deadline_s=20, what="it to go on")


def test_a_frozen_start_is_kept_aside_and_ends_with_the_engine(processes):
    pids = [member.pid for member in both(processes)]
    processes.signal(signal.SIGSTOP, pids)
    ghost = processes.detach()
    assert not processes.alive()
    processes.restart()
    both(processes)
    assert {member.pid for member in ghost.members()} == set(pids)
    assert not {member.pid for member in processes.members()} & set(pids)

    processes.stop()

    assert (ghost.members(), processes.members()) == ((), ())
    assert ghost.exit_code() == -signal.SIGKILL


def test_a_second_has_progress_and_crash_points_of_its_own(processes, tmp_path):
    both(processes)
    second = processes.start_second()
    wait_until(second.told, deadline_s=60, what="the second to tell of its progress", state=lambda: str(second.tail(5)))
    processes.arm("c2", 3)

    config = next((tmp_path / "private").glob("*/engine.json")).read_text()
    assert str(tmp_path / "private" / "crash") + '"' not in config
    assert (tmp_path / "progress.jsonl").read_text().count("\n") == 1
    assert processes.starts == 1
    second.stop()
    assert second.members() == ()
    assert processes.alive()


def test_what_outlived_its_driver_is_ended_before_a_restart(processes):
    driver, child = sorted(both(processes), key=lambda member: not member.leads)
    processes.signal(signal.SIGKILL, [driver.pid])
    wait_until(lambda: not processes.alive(), deadline_s=20, what="the driver to end")
    assert [member.pid for member in processes.members()] == [child.pid]
    processes.restart()

    assert not runs(child.pid)
