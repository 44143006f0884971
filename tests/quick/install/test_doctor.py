"""Every finding says what was looked for, how it stands, what was seen, and what to do unless all is well."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from harness.host import cgroup, needs
from harness.host.needs import Minimum
from harness.install import doctor, jvm
from harness.install.doctor import Finding, State
from harness.model import HarnessError

ROOT = Path(__file__).resolve().parents[3]


def no_redis() -> Path:
    raise HarnessError("No Redis server was found; install redis-server.")


def test_everything_is_looked_at_and_nothing_raises(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no java here"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jvm, "java_version", pytest.fail)  # nothing is started that is not there
    findings = doctor.examine(tmp_path / "runs", no_redis)
    stands = {finding.what: finding.state for finding in findings}
    assert stands["Java"] is State.MISSING
    assert stands["JVM artifacts of services"] is State.MISSING
    assert stands["Redis server"] is State.MISSING
    assert stands["Python"] is State.OK
    assert stands["packages"] is State.OK
    assert stands["ports"] is State.OK
    assert all(finding.seen for finding in findings)
    assert all(finding.how for finding in findings if finding.state is not State.OK)
    assert not doctor.all_well(findings)
    assert list(tmp_path.iterdir()) == []


def test_before_installation_no_package_is_asked(tmp_path):
    findings = doctor.before_installation(tmp_path / "not there yet")
    assert [finding.what for finding in findings] == ["Python", "Java", "cores", "memory", "disk"]


def test_as_a_line():
    assert doctor.as_line(Finding("Java", State.OK, "17")) == "Java: ok, 17"
    assert doctor.as_line(Finding("Java", State.WRONG, "8", "Get 17.")) == "Java: wrong, 8. Get 17."


@pytest.mark.parametrize(
    ("version", "state"),
    [((3, 10, 9), State.WRONG), ((3, 11, 0), State.OK), ((3, 13, 7), State.OK), ((3, 14, 0), State.WRONG)],
)
def test_python(version, state):
    assert doctor.python(version).state is state


def paper_program(path: Path, said: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize(
    ("said", "state", "seen"),
    [
        ('openjdk version "21.0.1"', State.OK, "21, runtime without compiler"),
        ('openjdk version "11.0.1"', State.WRONG, "11, runtime without compiler"),
        ("what?", State.WRONG, "does not say its version"),
    ],
)
def test_java(tmp_path, monkeypatch, said, state, seen):
    paper_program(tmp_path / "bin/java", said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = doctor.java()
    assert finding.state is state
    assert seen in finding.seen


def test_redis_server(tmp_path):
    said = "Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc bits=64"
    good = paper_program(tmp_path / "bin/redis-server", said)
    assert doctor.redis_server(lambda: good) == Finding("Redis server", State.OK, f"6.2.14 ({good})")
    assert doctor.redis_server(lambda: tmp_path / "nothing").state is State.WRONG
    assert "install redis-server" in doctor.as_line(doctor.redis_server(no_redis))


def test_packages_are_compared_with_what_is_asked_for(tmp_path, monkeypatch):
    asked = "pytest==1.0.1\nno-such-package==2.0\nnumpy\nrich==15.*\nredislite==6; sys_platform == 'linux'\n"
    assert doctor.exact_versions(asked) == {"pytest": "1.0.1", "no-such-package": "2.0"}
    finding = doctor.packages(asked)
    assert finding.state is State.WRONG
    assert finding.seen == f"pytest 1.0.1 is {pytest.__version__}; no-such-package 2.0 is not installed"
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    assert doctor.packages().seen == f"no list of them in {tmp_path}"


def test_artifacts_are_missing_damaged_or_there(tmp_path, monkeypatch):
    source = tmp_path / "harness/engines/toy"
    source.mkdir(parents=True)
    (source / "ivy.xml").write_text("<ivy-module/>")
    monkeypatch.setattr(jvm, "_HARNESS", tmp_path / "harness")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert doctor.artifacts("toy").state is State.WRONG  # no sums: not a whole checkout
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"a")
    jvm.write_sums(source / "jars.sha256", {"a.jar": jvm.sums_of(tmp_path)["a.jar"]})
    assert doctor.artifacts("toy").state is State.MISSING
    place = jvm.jar_folder("toy")
    place.mkdir(parents=True)
    assert "a.jar is missing" in doctor.artifacts("toy").seen
    jar.rename(place / "a.jar")
    assert doctor.artifacts("toy") == Finding("JVM artifacts of toy", State.OK, f"1 jar as pinned ({place})")


def test_little_of_anything_is_said(monkeypatch, tmp_path):
    for limit in ("ENOUGH_CORES", "ENOUGH_DISK"):
        monkeypatch.setattr(doctor, limit, 10**18)
    monkeypatch.setattr(needs, "DEFAULT_RUN", Minimum(10**18, 10**18, 10**18))
    monkeypatch.setattr(cgroup, "open_files", lambda: 256)
    monkeypatch.setattr(cgroup, "threads_left", lambda: 40)
    of_disk = doctor.disk("disk", tmp_path / "not" / "there" / "yet")
    machine = (doctor.cores(), doctor.memory(), doctor.open_files(), doctor.threads(), of_disk)
    for finding in machine:
        assert finding.state is State.WRONG
        assert finding.how


def test_a_containers_share_counts_not_the_machines(monkeypatch):
    monkeypatch.setattr(cgroup, "quota_cores", lambda *_: 1.5)
    monkeypatch.setattr(cgroup, "memory_limit_bytes", lambda *_: 3_000_000_000)
    monkeypatch.setattr(cgroup, "machine_bytes", lambda: 16_000_000_000)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    assert doctor.cores().seen == "1.5 usable, by quota, of 8"
    assert doctor.memory().seen == "3.0 GB, the limit here, of 16.0 GB"
    assert doctor.machine().endswith(" 1.5 cores, 3 GB")


def test_limits_are_shown_and_none_is_enough(monkeypatch):
    monkeypatch.setattr(cgroup, "open_files", lambda: 20_000)
    monkeypatch.setattr(cgroup, "threads_left", lambda: 3_000)
    assert doctor.open_files() == Finding("open files", State.OK, "20,000 for each process")
    assert doctor.threads() == Finding("processes and threads", State.OK, "3,000 more")
    for name in ("open_files", "threads_left"):
        monkeypatch.setattr(cgroup, name, lambda: None)
    assert doctor.open_files().seen == doctor.threads().seen == "no limit"
    assert doctor.open_files().state is doctor.threads().state is State.OK


def test_a_temporary_folder_without_programs_and_none_at_all(monkeypatch):
    assert doctor.temporary().state is State.OK
    monkeypatch.setattr(needs, "lets_programs_run", lambda _place: False)
    assert "mounted noexec" in doctor.temporary().seen
    monkeypatch.setattr(needs, "temporary_folder", no_redis)
    assert doctor.temporary().state is State.WRONG


def test_a_state_folder_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert doctor.state() == Finding("state folder", State.OK, str(tmp_path / "state" / "streamgauge"))
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    assert doctor.state().seen == f"{tmp_path} cannot be written"


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    finding = doctor.folder("runs folder", tmp_path / "file")
    assert finding.state is State.WRONG
    assert "cannot be written" in finding.seen
    assert doctor.folder("runs folder", tmp_path / "runs").state is State.OK
