"""Engines that behave badly, in whole runs: each ends at a deadline with a sentence, with its last lines, and with an
exit code that says whose fault it was; and nothing of it is left."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import psutil
import pytest

from harness.engines import environments
from harness.engines.environments import folder_of, prepare
from harness.install import jvm
from harness.model import EngineManifest, Exit, HarnessError, SinkClaim
from harness.services import logs, owners
from tests.engines.test_runs import check, command, start, told

BAD = Path(__file__).parent / "bad"
SMALL = ("calm", "--rate", "1000", "--duration", "5s", "--campaigns", "20", "--fault", "none")
NOBODY = "http://127.0.0.1:9/"  # the port of those who discard all, where nobody listens

pytestmark = pytest.mark.timeout(300)


def run_alone(folder, kind, *more):
    """Its answer, and what was left of it."""
    process = start(folder, *SMALL, "--engine", BAD / kind, *more)
    answer = told(process)
    assert answer["verdict"], answer["error"]
    return answer, left_of(process.pid)


@pytest.fixture
def run_bad(tmp_path, served):
    """The same, for those that leave the servers as they are."""
    return lambda kind: run_alone(tmp_path, kind, *served)


def left_of(pid: int) -> list[psutil.Process]:
    """What a harness that has ended left running."""
    found = psutil.process_iter()
    return [p for p in found if owners.environment_of(p).get(owners.OWNER_VARIABLE, "").startswith(f"{pid}:")]


def last_lines(answer) -> list[str]:
    return [witness["detail"] for witness in check(answer, "engine")["witnesses"]]


def shown(answer) -> str:
    return command("recheck", answer["run"]).stdout


def test_one_that_never_gets_ready_is_stuck_at_its_deadline(run_bad):
    answer, left = run_bad("silent")

    assert (answer["exit"], answer["words"], left) == (Exit.FAIL, ["stuck"], []), answer["sentence"]
    assert "no answer within 10 s (ready_s); 0 of 4 opening events have been counted" in answer["sentence"]
    assert last_lines(answer) == ["waiting for a licence"]


@pytest.mark.thorough
def test_counts_under_other_keys_than_its_manifest_says_are_no_answer(run_bad):
    answer, left = run_bad("key")

    assert (answer["exit"], left) == (Exit.FAIL, []), answer["sentence"]
    assert answer["words"][0] == "stuck"
    assert "the job wrote keys such as 'views/" in answer["sentence"]
    lines = [each["detail"] for each in check(answer, "engine")["witnesses"] if each["cell"] == "manifest.toml"]
    assert lines == ['results = "redis:template"', 'key = "views/{campaign}"', 'field = "from {window}"']
    assert all(f"\n      {line}\n" in shown(answer) for line in lines)
    where = check(answer, "phantom")["witnesses"][0]["cell"]
    assert "views/" in where, "what it did write is named, so that the mistake in the key can be seen"


def test_one_that_ends_at_once_has_its_last_lines_shown(run_bad):
    answer, left = run_bad("exits")

    assert (answer["exit"], answer["words"], left) == (Exit.FAIL, ["crashed"], []), answer["sentence"]
    assert "ended by itself with exit code 1" in answer["sentence"]
    assert last_lines(answer) == ["reading settings\ufffd", "no such table: impressions"]
    assert "      no such table: impressions\n" in shown(answer)
    assert (Path(answer["run"]) / "junit.xml").read_text().count("no such table") == 1


def test_one_that_says_a_gigabyte_fills_neither_the_disk_nor_the_page(run_bad):
    answer, left = run_bad("chatty")

    assert (answer["verdict"], left) == ("PASS", []), answer["sentence"]
    (log,) = (Path(answer["run"]) / "logs").glob("engine-*.log")
    assert log.stat().st_size <= logs.MOST_BYTES
    text = log.read_bytes()
    assert b"bytes were cut out here" in text
    assert text.endswith(b"out of words\n")


@pytest.mark.thorough
def test_one_that_hears_no_sigterm_is_killed_and_that_is_said(run_bad):
    answer, left = run_bad("stubborn")

    assert (answer["verdict"], left) == ("PASS", []), answer["sentence"]
    note = "it did not end within 30 s of SIGTERM and was killed"
    assert check(answer, "engine")["sentence"].endswith(note)
    assert f"\n  engine   {note}\n" in shown(answer)


def test_what_it_started_does_not_outlive_it(run_bad):
    answer, left = run_bad("parent")

    assert (answer["exit"], answer["words"], left) == (Exit.FAIL, ["crashed"], []), answer["sentence"]
    assert last_lines(answer) == ["gone, but not alone"]


def test_one_that_looks_for_what_is_expected_of_it_finds_nothing(run_bad):
    answer, left = run_bad("peeks")

    run = Path(answer["run"])
    (log,) = (run / "logs").glob("engine-*.log")
    assert (answer["verdict"], left) == ("PASS", []), answer["sentence"]
    assert "looked" in log.read_text()
    assert "found" not in log.read_text()
    assert (run / "expected.parquet").exists(), "it comes when the engine is gone"
    assert (run / "progress.jsonl").read_text().count("offsets") > 1, "what it told is kept"


TAKES = [("redis", "Redis"), pytest.param("topic", "Kafka", marks=pytest.mark.thorough)]


@pytest.mark.parametrize(("take", "service"), TAKES)
def test_one_that_takes_away_what_it_was_lent_gets_a_verdict_and_no_false_word(tmp_path, take, service):
    answer, left = run_alone(tmp_path, "takes", "--conf", f"take={take}")

    assert (answer["exit"], left) == (Exit.UNKNOWN, []), answer["sentence"]
    assert "unserved" in answer["words"]
    assert f"{service} at " in answer["sentence"]
    assert "run it again" in answer["sentence"]
    assert command("recheck", answer["run"]).returncode == Exit.UNKNOWN


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """An engine of ours with Python packages of its own, of which none is installed; its list is for the test to write.
    The index is nobody, and beside it there is a folder with one package."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "lock_file", lambda _: tmp_path / "requirements.lock")
    monkeypatch.setattr(environments, "BOOTSTRAP", tmp_path / "bootstrap.lock")
    monkeypatch.setattr(environments, "index_settings", lambda _: {"UV_DEFAULT_INDEX": NOBODY, "UV_HTTP_RETRIES": "0"})
    (tmp_path / "bootstrap.lock").touch()
    return EngineManifest(
        "ours", ("{python}",), str(tmp_path), shipped=True, sinks=(SinkClaim("s", "keep", "none"),), packages="ours"
    )


def wheel(folder: Path) -> str:
    """A package of one empty module; its sum."""
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_packages_that_nobody_hands_out_are_said_to_be_out_of_reach(tmp_path, shipped):
    (tmp_path / "requirements.lock").write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}\n")

    with pytest.raises(HarnessError, match="the package index was not reached") as refused:
        prepare(shipped, print)
    assert "installing the packages of ours" in str(refused.value)
    assert environments.missing(shipped) == ("Python packages",)


def test_a_package_that_is_not_the_pinned_one_is_refused(tmp_path, shipped, monkeypatch):
    wheel(tmp_path)
    monkeypatch.setattr(environments, "index_settings", lambda _: {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(tmp_path)})
    (tmp_path / "requirements.lock").write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}\n")

    with pytest.raises(HarnessError, match="a downloaded package is not the pinned one"):
        prepare(shipped, print)
    assert not (folder_of("ours") / "streamgauge.ready").exists()


def test_what_failed_once_is_made_anew_when_the_packages_are_there(tmp_path, shipped, monkeypatch):
    (tmp_path / "requirements.lock").write_text(f"tiny==1.0 --hash=sha256:{wheel(tmp_path)}\n")
    with pytest.raises(HarnessError):
        prepare(shipped, print)
    monkeypatch.setattr(environments, "index_settings", lambda _: {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(tmp_path)})

    ready = prepare(shipped, print)

    assert [*ready.python.parents[1].glob("lib/python*/site-packages/tiny.py")]
    assert environments.missing(shipped) == ()


def test_a_runtime_without_a_compiler_is_no_jdk(tmp_path, shipped, monkeypatch):
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setattr(jvm, "java", lambda: java)
    compiled = EngineManifest("ours", ("{java}",), str(tmp_path), True, shipped.sinks, java=("Ours.java",))

    with pytest.raises(HarnessError, match=r"a runtime without a compiler\. Install a JDK of version 17"):
        prepare(compiled, print)


def test_java_that_does_not_compile_is_quoted(tmp_path, shipped, monkeypatch):
    monkeypatch.setattr(environments, "jobs_folder", lambda _: tmp_path)
    (tmp_path / "Ours.java").write_text("class Ours { int x = nothing; }")
    compiled = EngineManifest("ours", ("{java}",), str(tmp_path), True, shipped.sinks, java=("Ours.java",))

    with pytest.raises(HarnessError, match=r"do not compile with .*cannot find symbol"):
        prepare(compiled, print)


def test_jars_out_of_reach_end_the_command_with_the_exit_code_of_our_own_trouble(tmp_path, monkeypatch):
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="nobody"/><resolvers>'
        f'<ibiblio name="nobody" m2compatible="true" root="{NOBODY}"/></resolvers></ivysettings>'
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STREAMGAUGE_IVY_SETTINGS", str(settings))

    added, ran = command("engines", "add", "spark"), command("run", "--engine", "spark", "--out", tmp_path / "runs")

    for done, first in ((added, "spark"), (ran, "services")):
        assert done.returncode == Exit.BROKEN
        assert f"The JVM artifacts of {first} could not be fetched: the Maven repository was not reached" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists(), "nothing was begun"
    listed = json.loads(command("engines", "--json").stdout)["engines"]
    assert next(each["missing"] for each in listed if each["engine"] == "spark") == ["jars"]


def test_an_engine_of_nobody_is_a_mistake_of_the_command(tmp_path):
    done = command("engines", "add", "sprak")

    assert done.returncode == Exit.USAGE
    assert "nearest: 'spark'" in done.stderr
