"""Accounting of real processes of ours, and what a JVM publishes of its garbage collection."""

from __future__ import annotations

import os
import struct
import sys
import time

import pytest

from harness.measuring.cost import costs
from harness.metering import hotspot_counters
from harness.metering.cpu_books import Cpu
from harness.metering.process_sampling import ENGINE, HARNESS, WORKERS, Accounting, Processes, exactly, folder_bytes
from harness.rundir.store import Store
from harness.services.children import spawn
from harness.util.wait import wait_until

# Told to go, it burns 0.3 s of CPU in a grandchild that leaves the session, and says so.
BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
FAMILY = f"""
import pathlib, subprocess, sys, time
while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)
subprocess.run([sys.executable, "-c", {BURN!r}], start_new_session=True)
print("done", flush=True)
time.sleep(60)
"""


@pytest.fixture
def family(tmp_path):
    child = spawn([sys.executable, "-c", FAMILY, str(tmp_path / "go")], name="family", log=tmp_path / "family.log")
    yield child
    child.kill_group()


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TRIED: only Linux has a clock for each process")
def test_what_a_process_used_is_known_more_exactly_than_in_hundredths_of_a_second():
    before_s = time.process_time()
    seen = exactly(os.getpid(), Cpu(3.0, 1.0))
    after_s = time.process_time()

    assert before_s <= seen.total_s <= after_s
    assert seen.user_s == pytest.approx(3 * seen.system_s)


def test_a_process_that_is_gone_keeps_what_was_known_of_it(tmp_path):
    child = spawn([sys.executable, "-c", ""], name="short", log=tmp_path / "log")
    wait_until(lambda: not child.alive(), deadline_s=20, what="the end of a short process")

    assert exactly(child.pid, Cpu(0.03, 0.01)) == Cpu(0.03, 0.01)


def test_a_child_its_descendants_and_the_harness_are_found_and_nobody_else(family, tmp_path):
    (tmp_path / "go").touch()
    processes = Processes(lambda: {"engine": [family.pid]})
    found = {}

    def two_of_it():
        found.update({each.pid: each for each in processes.sample()})
        return sum(each.part == "engine" for each in found.values()) >= 2

    wait_until(two_of_it, deadline_s=20, what="the family to be two")

    assert found[family.pid].part == "engine"
    assert found[os.getpid()].part == HARNESS
    assert os.getppid() not in found
    assert {each.part for each in found.values()} == {"engine", HARNESS}


def test_python_below_a_jvm_is_a_worker_and_a_python_driver_is_not(tmp_path):
    """By what Spark does: a driver in Python starts a JVM, and that starts Python workers."""
    (tmp_path / "java").symlink_to("/bin/sh")
    sleep = f"{sys.executable} -c 'import time; time.sleep(60)'"
    driver = f"import subprocess; subprocess.run([{str(tmp_path / 'java')!r}, '-c', {sleep + ' & wait'!r}])"
    child = spawn([sys.executable, "-c", driver], name="spark", log=tmp_path / "spark.log")
    processes = Processes(lambda: {ENGINE: [child.pid]})
    seen = {}

    def all_three():
        seen.update({each.pid: each for each in processes.sample() if each.part != HARNESS and each.rss_bytes})
        return len(seen) == 3 and any(each.part == WORKERS for each in seen.values())

    try:
        wait_until(all_three, deadline_s=30, what="driver, JVM and worker", state=lambda: str(seen))
    finally:
        child.kill_group()

    assert seen[child.pid].part == ENGINE
    assert sorted(each.part for each in seen.values()) == [ENGINE, ENGINE, WORKERS]


def test_what_a_short_lived_grandchild_used_is_in_the_run(family, tmp_path):
    store = Store.create(tmp_path, "run")
    accounting = Accounting(lambda: {"engine": [family.pid]}, tmp_path, store)
    accounting.start()
    (tmp_path / "go").touch()
    wait_until(lambda: "done" in family.tail(1), deadline_s=60, what="the grandchild's end")
    accounting.stop()

    resources, state = store.read_table("resources.parquet"), store.read_table("state.parquet")
    (told,) = store.history("taken")
    assert set(told["taken"]) == {"throttled_share", "stolen_share"}
    (engine, harness) = costs(resources, 1_000_000)

    assert (engine.part, harness.part) == ("engine", HARNESS)
    assert engine.cpu_user_s + engine.cpu_system_s >= 0.25
    assert engine.peak_rss_mib > 1
    assert min(state.column("checkpoint_bytes").to_pylist()) > 0
    assert set(state.column("gc_s").to_pylist()) == {None}


def test_a_part_that_is_gone_is_no_trouble(tmp_path):
    child = spawn([sys.executable, "-c", ""], name="short", log=tmp_path / "short.log")
    child.kill_group()

    assert {each.part for each in Processes(lambda: {"engine": [child.pid]}).sample()} == {HARNESS}


def test_the_bytes_of_a_folder(tmp_path):
    (tmp_path / "state" / "0").mkdir(parents=True)
    (tmp_path / "state" / "0" / "1.delta").write_bytes(b"12345")
    (tmp_path / "metadata").write_bytes(b"123")

    assert folder_bytes(tmp_path) == 8
    assert folder_bytes(tmp_path / "nothing") is None
    assert folder_bytes(None) is None


def counters(values, magic=hotspot_counters.MAGIC):
    """A file as a JVM makes it."""
    entries = b""
    for name, value in values.items():
        text = name.encode() + b"\0"
        value_at = -(-(20 + len(text)) // 8) * 8
        length = value_at + 8
        entry = struct.pack("<" + hotspot_counters.ENTRY, length, 20, 0, ord("J"), 0, 2, 3, value_at) + text
        entries += entry.ljust(value_at, b"\0") + struct.pack("<q", value)
    return struct.pack("<" + hotspot_counters.HEADER, magic, 1, 2, 0, 1, len(entries), 0, 0, 32, len(values)) + entries


def test_garbage_collection_is_read_from_the_jvms_own_counters(tmp_path):
    file = tmp_path / "hsperfdata_somebody" / "42"
    file.parent.mkdir()
    times = {"sun.gc.collector.0.time": 1_500_000_000, "sun.gc.collector.1.time": 500_000_000}
    file.write_bytes(counters({**times, "sun.gc.collector.0.invocations": 7, "sun.os.hrt.frequency": 1_000_000_000}))

    assert hotspot_counters.gc_s(42, tmp_path) == 2.0
    assert hotspot_counters.gc_s(43, tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 64, counters({"sun.gc.collector.0.time": 1})[:50], counters({}), counters({"a": 1}, b"oops")],
)
def test_a_file_that_is_none_or_not_ready_tells_nothing(tmp_path, content):
    file = tmp_path / "hsperfdata_somebody" / "42"
    file.parent.mkdir()
    file.write_bytes(content)

    assert hotspot_counters.gc_s(42, tmp_path) is None
