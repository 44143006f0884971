"""Java is found and judged, jars are compared and kept: with programs of paper and an Ivy that only pretends."""

from __future__ import annotations

import hashlib
import re
import stat
import threading
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import plan
from harness.drivers import one_run
from harness.engines import manifest as manifests
from harness.install import ivy, jvm
from harness.install.ivy import Artifact
from harness.install.progress import Amount
from harness.model import HarnessError
from harness.terminal.command_end import cache_folder
from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]

# ---------------------------------------------------------------- Java


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "11" 2018-09-25', 11),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.2" 2024-01-16', 21),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_what_java_says_of_itself(said, version):
    assert jvm.parse_java_version(said) == version


def paper_java(folder: Path, said: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch):
    """A machine without Java, and no memory of the one that was found before."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    jvm.java.cache_clear()
    yield
    jvm.java.cache_clear()


def test_java_home_comes_before_path(no_java, tmp_path, monkeypatch):
    on_path = paper_java(tmp_path / "path", 'openjdk version "17.0.1"')
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert jvm.java() == on_path
    jvm.java.cache_clear()
    at_home = paper_java(tmp_path / "home", 'openjdk version "21"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert jvm.java() == at_home


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('openjdk version "11.0.2" 2019-01-15', r"Java 17 or newer is needed, .*/bin/java is Java 11\. Install"),
        ("no runtime here", r"should name a version; it said: no runtime here\. Install"),
        ("", r"should name a version; it said: nothing, exit code 0\. Install"),
    ],
)
def test_a_java_that_will_not_do_is_named(no_java, tmp_path, monkeypatch, said, words):
    paper_java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(HarnessError, match=words):
        jvm.java()


def test_no_java_at_all(no_java, tmp_path, monkeypatch):
    with pytest.raises(HarnessError, match=r"none was found: JAVA_HOME is not set and no java is on PATH\. Install"):
        jvm.java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(HarnessError, match=r"JAVA_HOME is .*, but there is no program .*/bin/java\. Unset"):
        jvm.java()


def test_without_java_a_run_is_refused_before_anything_of_it_is_written(no_java, tmp_path, monkeypatch):
    spec, manifest = plan.resolve("calm", {}, {"engine": "reference"}, manifests.load)

    with pytest.raises(HarnessError, match=r"no java is on PATH\. Install"):
        one_run.answer(spec, manifest, tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- Comparing

contents = st.dictionaries(st.from_regex(r"[a-c]\.jar", fullmatch=True), st.binary(max_size=3), max_size=3)


def fill(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def sums(files: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


@given(contents, contents)
def test_exactly_the_files_that_differ_are_named(tmp_path_factory, pinned, there):
    folder = fill(tmp_path_factory.mktemp("jars"), there)
    named = {clause.split()[0] for clause in jvm.differences(sums(pinned), folder)}
    assert named == {name for name in pinned.keys() | there.keys() if pinned.get(name) != there.get(name)}


def test_each_kind_of_difference_has_its_words(tmp_path):
    folder = fill(tmp_path, {"same.jar": b"s", "other.jar": b"o", "extra.jar": b"e"})
    pinned = sums({"same.jar": b"s", "other.jar": b"x", "absent.jar": b"a"})
    absent, extra, other = jvm.differences(pinned, folder)
    assert (absent, extra) == ("absent.jar is missing", "extra.jar is not pinned")
    assert re.fullmatch(r"other\.jar has the sum [0-9a-f]{12}\.\.\., pinned is [0-9a-f]{12}\.\.\.", other)
    assert len(jvm.differences(pinned, tmp_path / "nothing")) == len(pinned)


def test_sums_are_read_as_they_are_written(tmp_path):
    written = sums({"b.jar": b"b", "a.jar": b"a"})
    jvm.write_sums(tmp_path / "jars.sha256", written)
    assert jvm.read_sums(tmp_path / "jars.sha256") == written
    with pytest.raises(HarnessError, match="cannot be read"):
        jvm.read_sums(tmp_path / "none")


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("services", "kafka_2.13-4.3.1.jar"),
        ("kafka-tools", "kafka-tools-4.3.1.jar"),
        ("spark", "spark-sql-kafka-0-10_2.13-4.2.0.jar"),
    ],
)
def test_the_shipped_sets_are_pinned(which, expected):
    source = jvm.source_folder(which)
    pinned = jvm.read_sums(source / "jars.sha256")
    assert expected in pinned
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in pinned.values())
    for revision in re.findall(r'name="([^"]+)" rev="([^"]+)"', (source / "ivy.xml").read_text()):
        assert f"{'-'.join(revision)}.jar" in pinned
    assert "://" not in (source / "ivy.xml").read_text()
    places = ivy.read_artifacts(source / "jars.lock")
    assert {each.name for each in places} == pinned.keys()
    assert all(each.name == "-".join(each.path.parts[-3:-1]) + ".jar" for each in places), "Ivy asks for no classifier"


def test_the_connector_fits_the_spark_that_is_installed():
    spark = re.search(r"^pyspark==([\d.]+)$", (ROOT / "requirements/run.in").read_text(), re.MULTILINE)
    assert spark
    assert f"spark-sql-kafka-0-10_2.13-{spark[1]}.jar" in jvm.read_sums(jvm.source_folder("spark") / "jars.sha256")


def test_kafka_s_tools_are_those_of_the_broker_on_whose_jars_they_run():
    broker = jvm.read_sums(jvm.source_folder("services") / "jars.sha256")
    (tools,) = jvm.read_sums(jvm.source_folder("kafka-tools") / "jars.sha256")

    assert tools.replace("kafka-tools-", "kafka-clients-") in broker


def test_an_unknown_set_is_named():
    with pytest.raises(HarnessError, match="no set of JVM artifacts named nothing"):
        jvm.jars("nothing")


# ---------------------------------------------------------------- Keeping

GOOD = {"a.jar": b"aaa", "b.jar": b"bbb"}


class PretendedIvy:
    """Brings what it is told to bring, and counts."""

    def __init__(self) -> None:
        self.brings = GOOD
        self.calls = 0
        self.asked: list[str] = []
        self.gate: threading.Event | None = None

    def resolve(self, _which: str, scratch: Path, *_: object) -> list[Artifact]:
        self.calls += 1
        if self.gate:
            assert self.gate.wait(30)
        return [at(path) for path in sorted(fill(scratch / "jars", self.brings).iterdir())]

    def fetch(self, _which: str, artifacts: Sequence[Artifact], scratch: Path, *_: object) -> None:
        self.asked = [each.name for each in artifacts]
        fill(scratch / "jars", {name: data for name, data in self.brings.items() if name in self.asked})


def at(jar: Path) -> Artifact:
    return Artifact(PurePosixPath("org/toys", jar.stem, "1", jar.name), jar.stat().st_size)


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedIvy:
    """A harness with one set, "toy", an empty cache, and an Ivy without network."""
    source = tmp_path / "harness/engines/toy"
    source.mkdir(parents=True)
    (source / "ivy.xml").write_text("<ivy-module/>")
    jvm.write_sums(source / "jars.sha256", sums(GOOD))
    pretended = PretendedIvy()
    monkeypatch.setattr(jvm, "_HARNESS", tmp_path / "harness")
    monkeypatch.setattr(jvm, "_resolve", pretended.resolve)
    monkeypatch.setattr(jvm, "_fetch_artifacts", pretended.fetch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return pretended


@pytest.fixture
def placed(pretended: PretendedIvy, tmp_path: Path) -> PretendedIvy:
    """The same, and it is known where in a repository the jars lie."""
    places = [Artifact(PurePosixPath("org/toys", Path(name).stem, "1", name), len(data)) for name, data in GOOD.items()]
    ivy.write_artifacts(tmp_path / "harness/engines/toy/jars.lock", places)
    return pretended


def in_cache(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "cache/streamgauge/jars").iterdir() if not p.name.endswith(".lock"))


def test_jars_are_fetched_once(pretended, tmp_path):
    folder = jvm.jars("toy")
    assert folder.parent == tmp_path / "cache/streamgauge/jars"
    assert jvm.sums_of(folder) == sums(GOOD)
    assert jvm.classpath("toy") == f"{folder}/*"
    assert jvm.jars("toy") == folder
    assert pretended.calls == 1
    assert in_cache(tmp_path) == [folder.name]


def test_other_pins_are_another_folder(pretended, tmp_path):
    before = jvm.jars("toy")
    pretended.brings = {"c.jar": b"ccc"}
    jvm.write_sums(tmp_path / "harness/engines/toy/jars.sha256", sums(pretended.brings))
    assert jvm.jars("toy") != before
    assert pretended.calls == 2


def test_jars_that_are_not_the_pinned_ones_are_named_and_not_kept(pretended, tmp_path):
    pretended.brings = {"b.jar": b"???", "evil.jar": b"!"}
    with pytest.raises(HarnessError, match=r"not as pinned in .*jars\.sha256: a\.jar is missing; evil\.jar is not"):
        jvm.jars("toy")
    assert in_cache(tmp_path) == []


def test_a_damaged_folder_is_fetched_again(pretended, capsys):
    folder = jvm.jars("toy")
    (folder / "a.jar").write_bytes(b"")
    heard: list[str] = []
    assert jvm.jars("toy", heard.append) == folder
    assert jvm.sums_of(folder) == sums(GOOD)
    assert "a.jar has the sum" in heard[0]
    assert heard[0].endswith("fetching them again.")


def test_what_a_killed_fetch_left_is_removed(pretended, tmp_path):
    name = jvm.jar_folder("toy").name
    fill(tmp_path / f"cache/streamgauge/jars/.{name}-fetch-dead/jars", GOOD)
    assert jvm.jars("toy").name == name
    assert in_cache(tmp_path) == [name]


def test_what_has_come_before_a_fetch_was_broken_off_is_not_fetched_again(placed, tmp_path):
    """Even if the jar that Ivy had finished lay in a cache of its own, and another one was not whole."""
    name = jvm.jar_folder("toy").name
    dead = tmp_path / f"cache/streamgauge/jars/.{name}-fetch-dead"
    fill(dead / "0/ivy/cache/org.toys/a/jars", {"a.jar": b"aaa", "b.jar.part": b"b"})
    assert jvm.amount(["toy"]) == Amount(4, 6)

    assert jvm.sums_of(jvm.jars("toy")) == sums(GOOD)
    assert placed.asked == ["b.jar"]
    assert in_cache(tmp_path) == [name]
    assert jvm.amount(["toy"]) == Amount(6, 6)


def test_a_fetch_that_fails_keeps_the_jars_that_are_as_pinned(placed, tmp_path):
    name = jvm.jar_folder("toy").name
    placed.brings = {"a.jar": b"aaa", "b.jar": b"???"}
    with pytest.raises(HarnessError, match=r"b\.jar has the sum"):
        jvm.jars("toy")
    assert in_cache(tmp_path) == [f".{name}-fetch-kept"]

    placed.brings = GOOD
    jvm.jars("toy")
    assert placed.asked == ["b.jar"]
    assert in_cache(tmp_path) == [name]


def test_what_was_fetched_of_other_pins_is_not_taken(placed, tmp_path):
    fill(tmp_path / "cache/streamgauge/jars/.toy-0123456789abcdef-fetch-kept", GOOD)
    jvm.jars("toy")
    assert placed.asked == ["a.jar", "b.jar"]


def test_what_another_checkout_fetches_for_other_pins_stays(pretended, tmp_path):
    live = fill(tmp_path / "cache/streamgauge/jars/.toy-0123456789abcdef-fetch-live/jars", GOOD)
    jvm.jars("toy")
    assert jvm.sums_of(live) == sums(GOOD)


def test_two_at_once_fetch_once(pretended):
    pretended.gate = threading.Event()
    heard: list[str] = []
    threads = [threading.Thread(target=jvm.jars, args=("toy", heard.append)) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: heard, deadline_s=30, what="the second to say that it waits")
    pretended.gate.set()
    for thread in threads:
        thread.join()
    assert pretended.calls == 1
    assert heard == [f"Another streamgauge is making {jvm.jar_folder('toy').name}; waiting for it ..."]


def test_a_cache_that_cannot_be_written_is_a_sentence(pretended, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(HarnessError, match=r"The cache folder .* cannot be written: Not a directory\. Make it"):
        jvm.jars("toy")


def test_the_cache_is_where_the_user_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for ignored in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == tmp_path / ".cache/streamgauge"


def test_main_names_the_folders_or_the_reason(pretended, tmp_path, capsys):
    assert jvm.main(["toy"]) == 0
    assert capsys.readouterr().out == f"{jvm.jar_folder('toy')}\n"
    assert jvm.main(["nothing"]) == 4
    assert capsys.readouterr().err.startswith("streamgauge: There is no set of JVM artifacts named nothing")
    pretended.brings = {"c.jar": b"ccc"}
    assert jvm.main(["--pin", "toy"]) == 0
    assert jvm.read_sums(tmp_path / "harness/engines/toy/jars.sha256") == sums(pretended.brings)
    places = ivy.read_artifacts(tmp_path / "harness/engines/toy/jars.lock")
    assert places == [Artifact(PurePosixPath("org/toys/c/1/c.jar"), 3)]
