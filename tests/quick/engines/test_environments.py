"""What an engine needs around it: made once, in an order that a kill can't spoil, and refused in a sentence."""

from __future__ import annotations

import shutil
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines import environments, fake, manifest, removal, shipped
from harness.engines.job import Surroundings
from harness.install import jvm
from harness.model import AD_IMPRESSIONS, EngineManifest, HarnessError, UsageError
from reports import engines as reports_engines

PLAIN = replace(fake.MANIFEST, id="plain")
OWN = replace(fake.MANIFEST, id="own", packages="own")
JOBS = shipped.jobs_folder(AD_IMPRESSIONS)
JAVA = replace(fake.MANIFEST, id="java", java=("Job.java",), shipped=False)


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    """A cache of our own, a list of packages, and an installer that only notes what it was asked for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "own.lock").write_text("toy==1\n")
    monkeypatch.setattr(environments, "lock_file", lambda name: tmp_path / f"{name}.lock")
    monkeypatch.setattr(environments, "index_settings", lambda _: {})


@pytest.fixture
def steps(monkeypatch):
    done: list[str] = []

    def step(what, command, _lock, _more, _log):
        done.append(what)
        if command[1] == "venv":
            (Path(command[-1]) / "bin").mkdir(parents=True)
            (Path(command[-1]) / "bin" / "python").touch()

    monkeypatch.setattr(environments, "run_step", step)
    return done


def heard(manifest: EngineManifest) -> Surroundings:
    return environments.prepare(manifest, lambda _: None)


def test_an_engine_that_needs_nothing_gets_our_own_python(steps):
    assert heard(PLAIN) == Surroundings(Path(sys.executable))
    assert environments.missing(PLAIN) == ()
    assert removal.remove(PLAIN, print) == []
    assert steps == []


def test_packages_are_installed_once_and_can_be_removed(steps):
    assert environments.missing(OWN) == ("Python packages",)
    python = heard(OWN).python
    again = heard(OWN).python

    assert python == again == environments.folder_of("own") / "bin" / "python"
    assert len(steps) == 3
    assert environments.missing(OWN) == ()
    assert removal.remove(OWN, print) == [environments.folder_of("own")]
    assert environments.missing(OWN) == ("Python packages",)


def test_what_was_half_installed_is_made_anew(steps, monkeypatch):
    whole = vars(environments)["run_step"]

    def breaks(what, *rest):
        whole(what, *rest)
        if "packages of own" in what:
            raise HarnessError("the network is gone")

    monkeypatch.setattr(environments, "run_step", breaks)
    with pytest.raises(HarnessError, match="the network is gone"):
        heard(OWN)
    assert environments.missing(OWN) == ("Python packages",)

    (environments.folder_of("own") / "half").touch()
    monkeypatch.setattr(environments, "run_step", whole)
    heard(OWN)
    assert environments.missing(OWN) == ()
    assert not (environments.folder_of("own") / "half").exists()
    assert len(steps) == 6


def test_another_list_is_another_folder(tmp_path):
    before = environments.folder_of("own")
    (tmp_path / "own.lock").write_text("toy==2\n")

    assert environments.folder_of("own") != before


def test_another_list_has_another_cache_to_install_from(steps, tmp_path, monkeypatch):
    """Two checkouts may install at the same time, each under a lock of its own; who is done deletes the cache."""
    whole, caches = vars(environments)["run_step"], set()

    def step(what, command, *rest):
        caches.add(command[command.index("--cache-dir") + 1])
        whole(what, command, *rest)

    monkeypatch.setattr(environments, "run_step", step)
    for text in ("toy==1\n", "toy==2\n"):
        (tmp_path / "own.lock").write_text(text)
        heard(OWN)

    assert len(caches) == 2


def test_a_full_disk_is_said_before_anything_is_fetched(steps, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**10, 9 * 10**9, 10**9))

    with pytest.raises(HarnessError, match=r"own needs 4 GB .* 1.0 GB are free"):
        heard(OWN)
    assert steps == []


def test_jars_alone_ask_for_no_room_for_packages(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**10, 9 * 10**9, 10**9))
    monkeypatch.setattr(jvm, "jars", lambda which, say: tmp_path)
    kafka_streams = replace(manifest.load("kafka-streams"), command=("true",), java=())
    both = replace(kafka_streams, packages="own")
    assert environments.missing(both) == ("Python packages", "jars")
    stamp = environments.folder_of("own") / "streamgauge.ready"
    stamp.parent.mkdir(parents=True)
    stamp.touch()

    assert environments.missing(both) == ("jars",)
    for engine in (kafka_streams, both):
        heard(engine)


@pytest.mark.parametrize("here", ["nothing", "runtime", "JDK"])
def test_an_engine_is_not_ready_without_the_jdk_that_it_needs(here, tmp_path: Path, monkeypatch):
    def java() -> Path:
        if here == "nothing":
            raise HarnessError("none was found")
        return tmp_path / "java"

    monkeypatch.setattr(jvm, "java", java)
    for name in ("java", "javac") if here == "JDK" else ("java",):
        (tmp_path / name).touch()

    missing = environments.missing(JAVA)

    assert missing == (() if here == "JDK" else ("a JDK",))
    state = reports_engines.row(JAVA, [], missing)[-1]
    assert state == ("ready" if here == "JDK" else "needs a JDK, which is not installed")
    assert reports_engines.row(JAVA, [], ("a JDK", "jars"))[-1].endswith(
        "is not installed; to be installed on first use: jars"
    )
    assert environments.missing(PLAIN) == ()


def test_a_runtime_without_a_compiler_is_said_before_anything_is_fetched(steps, monkeypatch, tmp_path):
    (tmp_path / "java").touch()
    monkeypatch.setattr(jvm, "java", lambda: tmp_path / "java")

    with pytest.raises(HarnessError, match=r"java has Java sources.*Install a JDK"):
        heard(replace(JAVA, packages="own"))
    assert steps == []


def test_a_compiler_is_understood_whatever_the_language_of_its_user(monkeypatch, tmp_path):
    """A compiler that speaks another language unless it is told to speak English."""
    (tmp_path / "java").touch()
    (tmp_path / "Job.java").touch()
    javac = tmp_path / "javac"
    javac.write_text(
        '#!/bin/sh\nword=hata\nfor option; do [ "$option" = -J-Duser.language=en ] && word=error; done\n'
        'echo "Job.java:1: $word: missing" >&2\nexit 1\n'
    )
    javac.chmod(0o755)
    monkeypatch.setattr(jvm, "java", lambda: tmp_path / "java")

    with pytest.raises(HarnessError, match=r"do not compile with .*: Job\.java:1: error: missing\.$"):
        heard(replace(JAVA, home=str(tmp_path)))


def test_a_source_that_is_not_there_is_named(monkeypatch, tmp_path):
    for name in ("java", "javac"):
        (tmp_path / name).touch()
    monkeypatch.setattr(jvm, "java", lambda: tmp_path / "java")

    with pytest.raises(HarnessError, match=r"Job\.java of the engine java can't be read"):
        heard(replace(JAVA, home=str(tmp_path)))


def test_a_jar_that_was_not_built_is_named_with_the_command_that_builds_it(tmp_path):
    command = ("java", "-jar", "{home}/target/mine.jar", "{config}")
    mine = replace(PLAIN, command=command, build=("mvn", "-q", "package"), home=str(tmp_path))

    with pytest.raises(UsageError, match=rf"{tmp_path}/target/mine\.jar.* run 'mvn -q package' in {tmp_path}"):
        heard(mine)

    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "mine.jar").touch()
    assert heard(mine) == Surroundings(Path(sys.executable))


def test_a_source_lies_beside_the_job_of_the_engine_that_is_extended(tmp_path):
    (tmp_path / "manifest.toml").write_text('id = "mine"\nextends = "flink"')
    mine = manifest.load(str(tmp_path))
    assert [environments.source_of(mine, name) for name in mine.java] == [JOBS / "CampaignOf.java"]
    assert environments.source_of(manifest.load("flink"), "CampaignOf.java") == JOBS / "CampaignOf.java"

    for name in ("CampaignOf.java", "Own.java"):
        (tmp_path / name).touch()
        assert environments.source_of(mine, name) == tmp_path / name
    assert environments.source_of(JAVA, "CampaignOf.java") == Path(JAVA.home) / "CampaignOf.java"


@pytest.mark.parametrize("engine", shipped.SHIPPED)
def test_every_shipped_list_is_pinned_and_names_no_index(engine):
    packages = manifest.load(engine).packages
    if packages and "@" not in packages:
        text = shipped.lock_file(packages).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
