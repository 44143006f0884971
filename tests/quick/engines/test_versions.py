"""Versions of Spark that a user names are pinned on their first use: with a uv and an Ivy that only pretend."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from harness.drivers import one_run
from harness.engines import environments, fake, removal, versions
from harness.engines.job import Surroundings
from harness.engines.manifest import load
from harness.engines.shipped import HERE, VERSIONS, lock_file
from harness.faults.registry import parse
from harness.install import jvm
from harness.install.ivy import Artifact
from harness.install.prepare import RUN
from harness.model import HarnessError, UsageError
from tests.quick.cases import SPEC

ENGINE = "spark@4.1.1"
NOT_THERE = "Because there is no version of\n  pyspark==4.1.1 and you require it, your requirements are unsatisfiable."


class Pretended:
    """What an index and a repository would give, and how often they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.caches: set[str] = set()
        self.jars = {"connector.jar": b"bytes"}
        self.index_says = ""
        self.repository_says = ""

    def run_step(self, what, command, lock, log, more=None) -> None:
        self.asked.append(what)
        self.caches.add(command[command.index("--cache-dir") + 1])
        if self.index_says:
            log.write_text(self.index_says)
            raise HarnessError(f"Preparing failed while {what}.")
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        if "compile" in command:
            Path(command[command.index("--output-file") + 1]).write_text(
                Path(command[-1]).read_text() + "# with hashes\n"
            )

    def resolve(self, which, scratch, *_: object) -> list[Artifact]:
        self.asked.append(f"the jars of {which}")
        if self.repository_says:
            raise HarnessError(self.repository_says)
        self.bring(scratch)
        return [Artifact(PurePosixPath("org/own", name), len(content)) for name, content in self.jars.items()]

    def fetch(self, which, artifacts, scratch, *_: object) -> None:
        self.asked.append(f"the pinned jars of {which}")
        self.bring(scratch)

    def bring(self, scratch: Path) -> None:
        folder = scratch / "jars"
        folder.mkdir(exist_ok=True)
        for name, content in self.jars.items():
            (folder / name).write_bytes(content)


@pytest.fixture
def outside(tmp_path, monkeypatch) -> Pretended:
    pretended = Pretended()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jvm, "_resolve", pretended.resolve)
    monkeypatch.setattr(jvm, "_fetch_artifacts", pretended.fetch)
    monkeypatch.setattr(environments, "ROOM_NEEDED", 0)
    for module in (versions, environments):
        monkeypatch.setattr(module, "run_step", pretended.run_step)
        monkeypatch.setattr(module, "index_settings", lambda _: {})
    return pretended


def heard(engine: str = ENGINE) -> tuple[Surroundings, list[str]]:
    said: list[str] = []
    return environments.prepare(load(engine), said.append), said


def test_a_version_is_looked_up_once_and_pinned_from_then_on(outside):
    manifest = load(ENGINE)
    assert environments.missing(manifest) == ("Python packages", "jars")

    ready, said = heard()
    asked, outside.asked = outside.asked, []
    again, silence = heard()

    assert asked[:2] == [f"resolving the packages of {ENGINE}", f"the jars of {ENGINE}"]
    assert re.search(rf"{ENGINE} is new here. .* pinned in .*pins/{ENGINE}\.", said[0])
    assert "pyspark==4.1.1\n" in lock_file(ENGINE).read_text()
    assert [path.name for path in ready.jars] == ["connector.jar"]
    assert (again, silence, outside.asked) == (ready, [], [])
    assert environments.missing(manifest) == ()
    assert [each.id for each in environments.installed_versions()] == [ENGINE]


def test_what_was_fetched_to_be_pinned_is_installed_and_another_python_fetches_for_itself(outside, monkeypatch):
    heard()
    (first,) = outside.caches
    monkeypatch.setattr(sys, "version", "another Python")
    heard()

    assert len(outside.caches) == 2
    assert first in outside.caches


def test_other_jars_than_the_pinned_ones_are_refused_later(outside):
    heard()
    pins = (jvm.pins_folder(ENGINE) / "jars.sha256").read_text()

    gone = removal.remove(load(ENGINE), print)
    assert [path.name.partition("-")[0] for path in gone] == [ENGINE, ENGINE]
    assert environments.installed_versions() == []
    assert removal.remove(load(ENGINE), print) == []
    outside.jars = {"connector.jar": b"other bytes"}
    with pytest.raises(HarnessError, match=r"not as pinned in .*connector\.jar has the sum"):
        heard()

    assert (jvm.pins_folder(ENGINE) / "jars.sha256").read_text() == pins


def test_a_version_that_does_not_exist_is_a_sentence_and_leaves_nothing(outside, tmp_path):
    outside.index_says = NOT_THERE

    with pytest.raises(UsageError, match=r"There is no Spark 4\.1\.1: the package index has no pyspark"):
        heard()

    assert not versions.pinned(ENGINE)
    assert not jvm.pins_folder(ENGINE).exists()
    assert removal.remove(load(ENGINE), print) == []


def test_a_version_that_a_job_is_to_change_to_is_looked_for_before_anything_starts(outside):
    outside.index_says = NOT_THERE
    spec = replace(SPEC, fault=parse(f"change-job(to={ENGINE})@now"))

    with pytest.raises(UsageError, match=r"There is no Spark 4\.1\.1"):
        one_run.prepare(spec, fake.MANIFEST)


@pytest.mark.parametrize(("index", "repository"), [("connection refused", ""), ("", "the repository has no connector")])
def test_what_could_not_be_asked_is_no_answer(outside, index, repository):
    outside.index_says, outside.repository_says = index, repository

    with pytest.raises(HarnessError) as failed:
        heard()

    assert not isinstance(failed.value, UsageError)
    assert not jvm.pins_folder(ENGINE).exists()


def test_only_sparks_own_parts_are_of_another_version():
    ours, other = (HERE / "spark" / "ivy.xml").read_text(), versions.ivy_of(ENGINE)

    changed = [(a, b) for a, b in zip(ours.splitlines(), other.splitlines(), strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0][1].strip() == '<dependency org="org.apache.spark" name="spark-sql-kafka-0-10_2.13" rev="4.1.1">'
    spark, *beside = versions.requirements_of("spark@4.2.0").splitlines()
    assert spark == "pyspark==4.2.0"
    run = RUN.read_text()
    this = "python_version == '{}.{}'".format(*sys.version_info)
    here = [line.partition(" ; ")[0] for line in beside if line.endswith(this)]
    assert len(here) == len(versions.BESIDE["spark"])
    assert all(f"\n{line} " in f"\n{run}" for line in here)


def test_for_another_python_the_packages_beside_spark_are_any_that_it_can_have():
    """The newest numpy of one Python may be none of an older one's, and the list is for all of them."""
    _, *beside = versions.requirements_of(ENGINE).splitlines()
    other = "python_version != '{}.{}'".format(*sys.version_info)

    assert [line.partition(" ; ")[0] for line in beside if line.endswith(other)] == list(versions.BESIDE["spark"])


def test_flinks_connector_has_versions_of_its_own_and_stays():
    """And beside Flink there are the very packages that the shipped Flink has."""
    assert versions.ivy_of("flink@2.2.1") == (HERE / "flink" / "ivy.xml").read_text()

    flink, *beside = versions.requirements_of("flink@2.2.1").splitlines()
    this = "python_version == '{}.{}'".format(*sys.version_info)
    here = [line.partition(" ; ")[0] for line in beside if line.endswith(this)]
    assert flink == "apache-flink==2.2.1"
    assert len(here) == 2
    assert all(f"\n{line} " in f"\n{lock_file('flink').read_text()}" for line in here)


def test_all_that_a_version_needs_is_known_of_each_engine_that_has_them():
    assert versions.PACKAGE.keys() == versions.BESIDE.keys() == VERSIONS.keys()
