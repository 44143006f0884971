"""Ivys are started with the user's settings and share the work: with programs of paper instead of a Java."""

from __future__ import annotations

import re
import shutil
import stat
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.install import ivy
from harness.install.ivy import Artifact
from harness.install.maven_settings import Mirror
from harness.install.progress import Amount
from harness.model import HarnessError

CLIENT = Artifact(PurePosixPath("org/apache/kafka/kafka-clients/4.3.1/kafka-clients-4.3.1.jar"), 10_204_032)


@pytest.fixture(autouse=True)
def _no_settings(tmp_path, monkeypatch):
    """A user without Maven settings, proxy and mirror."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("STREAMGAUGE_IVY_SETTINGS", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def maven_says(text: str) -> None:
    path = Path.home() / ".m2/settings.xml"
    path.parent.mkdir(parents=True)
    path.write_text(f"<settings>{text}</settings>")


# ---------------------------------------------------------------- Artifacts


def test_an_artifact_is_asked_for_by_its_place():
    assert CLIENT.name == "kafka-clients-4.3.1.jar"
    asked = ElementTree.fromstring(ivy.ivy_xml("services-0", [CLIENT])).findall("dependencies/dependency")
    assert [each.attrib for each in asked] == [
        {"org": "org.apache.kafka", "name": "kafka-clients", "rev": "4.3.1", "transitive": "false"}
    ]


def test_places_are_read_as_they_are_written(tmp_path):
    written = [CLIENT, Artifact(PurePosixPath("at/yawk/lz4/lz4-java/1.11.0/lz4-java-1.11.0.jar"), 896_932)]
    ivy.write_artifacts(tmp_path / "jars.lock", written)
    assert ivy.read_artifacts(tmp_path / "jars.lock") == written[::-1], "in the order of their paths"
    assert ivy.read_artifacts(tmp_path / "none") == []


@given(st.lists(st.integers(0, 10**8), max_size=80))
def test_each_artifact_is_in_one_share_and_no_share_is_much_longer(sizes):
    artifacts = [Artifact(PurePosixPath(f"o/m/{number}/m-{number}.jar"), size) for number, size in enumerate(sizes)]
    shares = ivy.shares(artifacts)

    assert sorted(each.name for share in shares for each in share) == sorted(each.name for each in artifacts)
    assert 1 <= len(shares) <= ivy.MOST_AT_ONCE
    assert len(shares) == 1 or len(artifacts) >= len(shares) * ivy.FEWEST_EACH
    costs = [sum(each.size + ivy.AS_LONG_AS_BYTES for each in share) for share in shares]
    assert max(costs) - min(costs) <= max(sizes, default=0) + ivy.AS_LONG_AS_BYTES


# ---------------------------------------------------------------- Where Ivy is


def unpacked(cache: Path, index: str) -> Path:
    jar = cache / f"sdists-v9/{index}/pyspark/4.2.0/abc/src/deps/jars" / ivy.installed().name
    jar.parent.mkdir(parents=True)
    return jar


def test_the_pinned_ivy_is_that_of_the_pinned_spark():
    """Else it would not be taken before Spark is installed, and a first use would take longer."""
    assert ivy.is_pinned(ivy.installed()), f"run sha256sum in its folder, and write {ivy.PINNED}"


@pytest.mark.parametrize("index", ["pypi", "index/0123456789abcdef"])
def test_ivy_is_taken_from_sparks_source_before_spark_is_installed(tmp_path, monkeypatch, index):
    installed = ivy.installed()
    jar = unpacked(tmp_path, index)
    monkeypatch.setattr(ivy, "_installed", list)
    monkeypatch.setattr(ivy, "POLL_S", 0)
    shutil.copy(installed, jar)

    assert ivy.wait_for(tmp_path) == jar


def test_an_ivy_that_is_not_the_pinned_one_is_not_taken(tmp_path, monkeypatch):
    """uv verifies the source after it has unpacked it."""
    unpacked(tmp_path, "pypi").write_bytes(b"not whole, or evil")
    looks = iter([[], [], [tmp_path / "installed.jar"]])
    monkeypatch.setattr(ivy, "_installed", lambda: next(looks))
    monkeypatch.setattr(ivy, "POLL_S", 0)

    assert ivy.wait_for(tmp_path) == tmp_path / "installed.jar"


def test_waiting_for_ivy_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(ivy, "_installed", list)
    monkeypatch.setattr(ivy, "DEADLINE_S", 0)
    with pytest.raises(HarnessError, match=r"Spark was not installed within 0 s\. .* Start the same command again"):
        ivy.wait_for(tmp_path)


def test_the_ivy_of_an_installed_spark_is_found():
    assert re.fullmatch(r"ivy-[\d.]+\.jar", ivy.installed().name)


def test_without_a_spark_there_is_no_ivy(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(HarnessError, match="No pyspark with an Ivy inside is installed for"):
        ivy.installed()


# ---------------------------------------------------------------- Settings


def resolver(xml: str) -> dict[str, str]:
    (found,) = ElementTree.fromstring(xml).findall("resolvers/ibiblio")
    return found.attrib


def test_without_settings_ivy_asks_its_own_central_repository(tmp_path):
    xml = ivy.settings_file(tmp_path, poms=False).read_text()
    assert resolver(xml)["usepoms"] == "false"
    assert "root" not in resolver(xml)
    assert resolver(ivy.settings_file(tmp_path, poms=True).read_text())["usepoms"] == "true"


def test_a_settings_file_of_the_users_own_comes_first(tmp_path, monkeypatch):
    maven_says("this is not XML <")
    monkeypatch.setenv("STREAMGAUGE_IVY_SETTINGS", "own.xml")
    assert ivy.settings_file(tmp_path, poms=False) == Path("own.xml")


def test_mavens_mirror_takes_the_place_of_the_central_repository(tmp_path):
    maven_says("<mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>file:///m?a=1&amp;b=2</url></mirror></mirrors>")
    assert resolver(ivy.settings_file(tmp_path, poms=False).read_text())["root"] == "file:///m?a=1&b=2"


def test_the_account_of_a_mirror_is_given_for_its_realm():
    mirror = Mirror("http://mirror:81/all", 'a"b', "<secret>")
    (account,) = ElementTree.fromstring(ivy.settings_xml(mirror, "The realm", False)).findall("credentials")
    assert account.attrib == {"host": "mirror", "realm": "The realm", "username": 'a"b', "passwd": "<secret>"}
    assert "<credentials" not in ivy.settings_xml(mirror, "", False)


def test_ivy_is_started_with_the_users_proxy_and_no_password_on_its_command_line(tmp_path, monkeypatch):
    def command() -> list[str]:
        files = {"settings": tmp_path / "s.xml", "ivy_file": tmp_path / "i.xml"}
        return ivy.command(Path("java"), Path("ivy.jar"), tmp_path / "0", pattern="[artifact]", **files)

    plain = command()
    assert plain[0] == "java"
    assert not [word for word in plain if word.startswith("@")]

    monkeypatch.setenv("HTTPS_PROXY", "http://me:pass%22word@proxy:3128")
    with_proxy = command()
    (options,) = [word for word in with_proxy if word.startswith("@")]
    assert not [word for word in with_proxy if "word" in word]
    assert '"-Dhttp.proxyPassword=pass\\"word"\n' in Path(options[1:]).read_text()
    assert with_proxy.index(options) < with_proxy.index("-jar")


# ---------------------------------------------------------------- Running


def slow_ivy(folder: Path, text: str) -> list[str]:
    program = folder / "java"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return [str(program)]


def run(commands: list[list[str]], folder: Path, say=lambda _: None) -> int:
    return ivy.run(commands, "toy", folder / "log", say, lambda: Amount(2_000_000, 3_000_000))


def test_a_fetch_that_takes_long_says_that_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(ivy, "TOLD_EVERY_S", 0.01)
    waits = slow_ivy(tmp_path, f"until [ -e {tmp_path}/heard ]; do sleep 0.01; done; exit 7")
    heard: list[str] = []

    def say(sentence: str) -> None:
        heard.append(sentence)
        (tmp_path / "heard").touch()

    assert run([waits], tmp_path, say) == 7
    assert re.fullmatch(r"Fetching the JVM artifacts of toy \.\.\. 2 of 3 MB, \d+ s so far", heard[0])


def test_a_fetch_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(ivy, "DEADLINE_S", 0.05)
    monkeypatch.setattr(ivy, "TOLD_EVERY_S", 0.01)

    with pytest.raises(HarnessError, match=r"did not end within 0\.05 s\. .* Start the same command again"):
        run([slow_ivy(tmp_path, "exec sleep 60")], tmp_path)


def test_several_run_side_by_side_and_one_that_fails_is_heard(tmp_path):
    """Each waits for the other, so one after the other would never end."""
    waits = slow_ivy(
        tmp_path, f"touch {tmp_path}/$1; until [ -e {tmp_path}/$2 ]; do sleep 0.01; done; echo $1; exit $3"
    )
    assert run([[*waits, "a", "b", "0"], [*waits, "b", "a", "0"]], tmp_path) == 0
    assert sorted((tmp_path / "log").read_text().split()) == ["a", "b"]
    assert run([[*waits, "a", "b", "0"], [*waits, "b", "a", "3"]], tmp_path) == 3


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("\tHost repository not found. url=x\n\t:: org.apache.kafka#kafka_2.13;4.3.1: not found", "was not reached"),
        ("java.net.ConnectException: Connection refused", "was not reached"),
        ("java.io.IOException: No space left on device", "is full"),
        (":: UNRESOLVED\n\t:: org.apache.kafka#kafka_2.13;4.3.1: not found\n", "no org.apache.kafka#kafka_2.13;4.3.1"),
        ("something else", "Ivy ended with code 1"),
    ],
)
def test_why_a_fetch_failed(said, cause, tmp_path):
    sentence = ivy.explain_failure("services", 1, said, tmp_path / "services.log")
    assert re.match(rf"The JVM artifacts of services could not be fetched: .*{re.escape(cause)}\. To go", sentence)
    assert sentence.endswith(f"Ivy's log is {tmp_path / 'services.log'}.")
