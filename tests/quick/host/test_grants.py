"""The limits of a container are read wherever they stand, and the smallest one on the way up is the one that binds."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from harness.host import cgroup

V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup rw,nsdelegate"
V1_MOUNTS = """31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids"""


def system(folder: Path, groups: str, mounts: str, files: dict[str, str]) -> Path:
    """A file system with these groups; `files` below /sys/fs/cgroup, unless they begin with a slash."""
    for name, text in {"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts, **files}.items():
        path = folder / (name[1:] if name.startswith("/") else f"sys/fs/cgroup/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder


def test_the_smallest_limit_on_the_way_up_binds_version_2(tmp_path):
    place = system(
        tmp_path,
        "0::/jobs/build/step",
        V2_MOUNT,
        {
            "jobs/build/step/cpu.max": "max 100000",
            "jobs/build/cpu.max": "150000 100000",
            "jobs/cpu.max": "50000 20000",
            "jobs/build/step/memory.max": "max",
            "jobs/build/memory.max": "3000000000",
            "jobs/memory.max": "2000000000",
            "jobs/build/pids.max": "500",
            "jobs/build/pids.current": "120",
            "jobs/pids.max": "max",
        },
    )
    assert cgroup.quota_cores(place) == 1.5
    assert cgroup.memory_limit_bytes(place) == 2_000_000_000
    assert cgroup.threads_left(place) == 380


def test_the_smallest_limit_on_the_way_up_binds_version_1(tmp_path):
    place = system(
        tmp_path,
        "12:pids:/a/b\n9:name=systemd:/a/b\n4:memory:/a/b\n2:cpu,cpuacct:/a/b\n0::/",
        V1_MOUNTS,
        {
            "cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1",
            "cpu,cpuacct/a/b/cpu.cfs_period_us": "100000",
            "cpu,cpuacct/a/cpu.cfs_quota_us": "50000",
            "cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            "memory/a/b/memory.limit_in_bytes": "1073741824",
            "memory/a/memory.limit_in_bytes": "9223372036854771712",
            "pids/a/b/pids.max": "40",
            "pids/a/b/pids.current": "60",  # lowered afterwards
        },
    )
    assert cgroup.quota_cores(place) == 0.5
    assert cgroup.memory_limit_bytes(place) == 1 << 30
    assert cgroup.threads_left(place) == 0


def test_both_versions_at_once(tmp_path):
    """As systemd once did it: the unified hierarchy beside the others, without their controllers."""
    mounts = V1_MOUNTS + "\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
    files = {"memory/memory.limit_in_bytes": "700", "unified/x/memory.max": "600"}
    assert cgroup.memory_limit_bytes(system(tmp_path, "4:memory:/\n0::/x", mounts, files)) == 600


@pytest.mark.parametrize(
    ("groups", "mounted_root"),
    [
        ("4:memory:/docker/abc", "/docker/abc"),  # its own group, under the name that it has outside
        ("4:memory:/docker/abc/inner", "/docker/abc"),
        ("4:memory:/elsewhere", "/docker/abc"),  # nothing of the name fits: what is mounted is what there is
        ("4:memory:/../sibling", "/"),
        ("4:memory:/", "/"),
    ],
)
def test_a_container_that_sees_its_own_part_only(tmp_path, groups, mounted_root):
    mounts = f"35 31 0:32 {mounted_root} /sys/fs/cgroup/memory\\040here ro shared:1 - cgroup cgroup rw,memory"
    place = system(tmp_path, groups, mounts, {"memory here/memory.limit_in_bytes": "1000"})
    assert cgroup.memory_limit_bytes(place) == 1000


def test_without_any_limit(tmp_path):
    place = system(tmp_path, "0::/", V2_MOUNT, {"cgroup.procs": "1"})
    for where in (place, tmp_path / "nothing at all"):
        assert cgroup.quota_cores(where) is None
        assert cgroup.memory_limit_bytes(where) is None
        assert cgroup.cores(where) == cgroup.allowed_cores()
        assert cgroup.memory_bytes(where) == cgroup.machine_bytes()


@pytest.mark.parametrize(
    ("text", "quota"),
    [("150000 100000", 1.5), ("max 100000", None), ("-1 100000", None), ("", None), (" ", None), ("5 0", None)],
)
def test_quota(text, quota):
    assert cgroup.quota_of(text) == quota


def test_whom_the_kernel_killed_is_asked_of_the_nearest_group_that_counts(tmp_path):
    files = {
        "a/memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 0",
        "memory.events": "oom_kill 9",
        "/proc/vmstat": "nr_free_pages 3\noom_kill 11",
    }
    assert cgroup.killed_for_memory(system(tmp_path, "0::/a/b", V2_MOUNT, files)) == 2


def test_whom_the_kernel_killed_version_1(tmp_path):
    files = {"memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3"}
    assert cgroup.killed_for_memory(system(tmp_path, "4:memory:/a", V1_MOUNTS, files)) == 3


def test_whom_the_kernel_killed_on_a_machine_without_groups(tmp_path):
    assert cgroup.killed_for_memory(system(tmp_path, "", "", {"/proc/vmstat": "oom_kill 4\npgfault 1"})) == 4
    assert cgroup.killed_for_memory(tmp_path / "nothing") is None


def test_all_threads_of_this_user_count(tmp_path):
    mine = f"Name:\ta\nUid:\t{os.getuid()}\t0\t0\t0\nThreads:\t"
    files = {
        "/proc/1/status": mine + "30",
        "/proc/2/status": mine + "12",
        "/proc/3/status": "Name:\tb\nUid:\t4242\t0\t0\t0\nThreads:\t99",
    }
    assert cgroup.threads_of_user(system(tmp_path, "", "", files)) == 42


@pytest.mark.parametrize(
    ("uid", "uid_map", "left"),
    [
        (1000, "0 0 4294967295", 10),
        (0, "0 0 4294967295", None),  # the superuser
        (0, "0 1000 1\n1 100000 65536", 10),  # of a container that a user has started
        (0, "0 0 1", None),
    ],
)
def test_the_limit_of_a_user_counts_unless_it_is_the_superuser(tmp_path, monkeypatch, uid, uid_map, left):
    files = {"/proc/1/status": f"Uid:\t{uid}\t0\t0\t0\nThreads:\t90", "/proc/self/uid_map": uid_map}
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (100, 100))
    monkeypatch.setattr("os.getuid", lambda: uid)
    assert cgroup.threads_left(system(tmp_path, "", "", files)) == left


RAISE = """
import resource
from harness.host import cgroup
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
cgroup.raise_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE), cgroup.open_files())
"""


@pytest.mark.parametrize(("soft", "hard"), [(256, 900), (900, 900)])
def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one(soft, hard):
    code = RAISE.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{hard} {hard} {hard}\n"


def test_a_soft_limit_is_not_raised_beyond_all_need(monkeypatch):
    """Programs that close whatever could be open take minutes where that is a thousand million files."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: told[-1] if told else (1024, 1 << 30))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: told.append(limits))
    cgroup.raise_open_files()
    assert told == [(65_536, 1 << 30)]


def test_a_system_that_gives_less_than_its_hard_limit_says(monkeypatch):
    def refuse_much(_which: int, limits: tuple[int, int]) -> None:
        if limits[0] > 10_240:
            raise ValueError("not allowed")
        told.append(limits)

    told: list[tuple[int, int]] = []
    infinity = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _which: told[-1] if told else (256, infinity))
    monkeypatch.setattr(resource, "setrlimit", refuse_much)
    cgroup.raise_open_files()
    assert told == [(10_240, infinity)]


def test_every_quota_on_the_way_up_has_its_own_count(tmp_path):
    place = system(
        tmp_path,
        "0::/jobs/build",
        V2_MOUNT,
        {
            "jobs/build/cpu.stat": "usage_usec 9\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0",
            "jobs/cpu.stat": "usage_usec 9\nnr_periods 400\nnr_throttled 100\nthrottled_usec 5000000",
            "cpu.stat": "usage_usec 9",  # the root has none
        },
    )

    assert cgroup.throttling(place) == ((0, 0), (400, 100))


def test_throttling_is_counted_in_version_1_too(tmp_path):
    stat = "nr_periods 63\nnr_throttled 62\nthrottled_time 4328624821"
    place = system(tmp_path, "2:cpu,cpuacct:/a\n0::/", V1_MOUNTS, {"cpu,cpuacct/a/cpu.stat": stat})

    assert cgroup.throttling(place) == ((63, 62),)


def test_what_the_host_took_is_the_eighth_number_and_guests_do_not_count_twice(tmp_path):
    stat = "cpu  100 5 20 300 10 0 5 60 40 0\ncpu0 50 5 10 150 5 0 5 30 20 0"
    place = system(tmp_path, "0::/", V2_MOUNT, {"/proc/stat": stat})

    assert cgroup.steal(place) == (500, 60)
    assert cgroup.steal(system(tmp_path, "0::/", V2_MOUNT, {"/proc/stat": "cpu  1 2 3 4"})) is None
