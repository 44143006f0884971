"""An archive of classes is used when it is whole and of this JVM; else it is left out, said, and never fatal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.install import archives, jvm
from harness.install.archives import Archive
from harness.model import HarnessError
from harness.util.wait import wait_until

HEAD = b"\xa8\xba\x0b\xf0"


def says(java: Path, version: str, modes: str = "mixed mode, sharing") -> Path:
    """A Java on paper, as it tells of itself."""
    (java.parent.parent / "release").write_text(f'JAVA_VERSION="{version}"')
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"\nOpenJDK 64-Bit Server VM ({modes})' >&2\n")
    java.chmod(0o755)
    jvm._asked_its_version.cache_clear()
    return java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    return says(home / "bin" / "java", "17.0.1")


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"classes")
    return jar


def made(archive: Archive, content: bytes = HEAD + b"classes") -> Archive:
    archives.making(archive)
    archive.part.write_bytes(content)
    assert archives.seal(archive) == ""
    return archive


def test_none_yet(java: Path, jar: Path) -> None:
    assert archives.start(archives.archive_of("broker", java, [jar])) == archives.Start((), archives.NONE_YET)


def test_what_was_made_is_used(java: Path, jar: Path) -> None:
    archive = made(archives.archive_of("broker", java, [jar]))
    assert archives.start(archive).options == ("-Xshare:auto", f"-XX:SharedArchiveFile={archive.path}")
    assert not archives.lacks(archive)


@pytest.mark.parametrize(
    ("version", "makes", "uses"),
    [
        ("17.0.1", "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
        ("24.0.1", "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
        ("25", "-XX:AOTCacheOutput=", "-XX:AOTCache="),
        ("27-ea", "-XX:AOTCacheOutput=", "-XX:AOTCache="),
    ],
)
def test_each_java_has_its_way(java: Path, jar: Path, version: str, makes: str, uses: str) -> None:
    archive = archives.archive_of("broker", says(java, version), [jar])
    assert archives.making(archive).options[-1] == f"{makes}{archive.part}"
    assert archives.start(made(archive)).options[-1] == f"{uses}{archive.path}"
    assert archives.remove("broker", print) == [archive.path]


def test_a_java_without_an_archive_of_its_own_makes_none_in_vain(java: Path, jar: Path) -> None:
    archive = archives.archive_of("broker", says(java, "17.0.1", "mixed mode"), [jar])
    assert not archives.lacks(archive)
    assert archives.start(archive).state.startswith("left out: ")
    assert f"{java} -Xshare:dump" in archives.start(archive).state


def test_the_newer_way_needs_none(java: Path, jar: Path) -> None:
    assert archives.lacks(archives.archive_of("broker", says(java, "25", "mixed mode"), [jar]))


def another_jdk(java: Path, jar: Path) -> Archive:
    return archives.archive_of("broker", says(java, "21.0.1"), [jar])


def another_jar(java: Path, jar: Path) -> Archive:
    jar.write_bytes(b"other classes")
    return archives.archive_of("broker", java, [jar])


def another_class_path(java: Path, jar: Path) -> Archive:
    other = jar.with_name("b.jar")
    other.touch()
    return archives.archive_of("broker", java, [jar, other])


def other_flags(java: Path, jar: Path) -> Archive:
    return archives.archive_of("broker", java, [jar], ["-XX:+UseZGC"])


@pytest.mark.parametrize("of_another", [another_jdk, another_jar, another_class_path, other_flags])
def test_that_of_another_jvm_is_not_found(java: Path, jar: Path, of_another: Callable[[Path, Path], Archive]) -> None:
    made(archives.archive_of("broker", java, [jar]))
    assert archives.start(of_another(java, jar)).state == archives.NONE_YET


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: data[:-1] + b"x", lambda _: b""], ids=["torn", "changed", "empty"]
)
def test_a_torn_or_changed_one_is_left_out_with_a_reason(
    java: Path, jar: Path, damage: Callable[[bytes], bytes]
) -> None:
    archive = made(archives.archive_of("broker", java, [jar]))
    archive.path.write_bytes(damage(archive.path.read_bytes()))
    start = archives.start(archive)
    assert start.options == ()
    assert start.state.startswith("left out")
    assert str(archive.path) in start.state
    assert archives.lacks(archive), "it is made anew"


def test_one_whose_jvm_was_killed_on_the_way_is_not_kept(java: Path, jar: Path) -> None:
    archive = archives.archive_of("broker", java, [jar])
    archives.making(archive)
    archive.part.write_bytes(b"\0\0\0\0classes")
    assert archives.seal(archive) == "the JVM of broker did not end writing its archive"
    assert archives.start(archive).state == archives.NONE_YET


def test_one_that_was_never_written(java: Path, jar: Path) -> None:
    archive = archives.archive_of("broker", java, [jar])
    archives.making(archive)
    assert archives.seal(archive).startswith("the JVM of broker wrote no archive; ")
    assert archives.seal(archive).endswith(f" are free in {archive.path.parent}")


def test_who_removes_archives_waits_for_who_makes_one(java: Path, jar: Path) -> None:
    archive = archives.archive_of("broker", java, [jar])
    heard: list[str] = []
    gone: list[Path] = []
    remover = threading.Thread(target=lambda: gone.extend(archives.remove("broker", heard.append)))
    with archives.alone(print):
        archives.making(archive)
        archive.part.write_bytes(HEAD)
        remover.start()
        wait_until(lambda: heard, deadline_s=20, what="the remover to say that it waits")
        said = archives.seal(archive)
    remover.join(20)

    assert (said, gone) == ("", [archive.path])
    assert not list(archives.folder().glob("broker-*"))


def test_a_cache_that_cannot_be_written(java: Path, jar: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(HarnessError, match=r"archives can't be written .* set XDG_CACHE_HOME"):
        archives.making(archives.archive_of("broker", java, [jar]))


def test_a_path_that_options_cannot_hold(
    java: Path, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    archive = archives.archive_of("broker", java, [jar])
    assert archives.start(archive).options == ()
    assert "blank" in archives.start(archive).state
    assert not archives.lacks(archive), "no run makes it in vain"
