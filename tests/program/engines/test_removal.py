"""What was made for an engine goes whole, by one at a time, never while a run uses it; a kill leaves nothing half."""

from __future__ import annotations

import errno
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.config import plan
from harness.drivers import one_run
from harness.engines import environments, fake, removal
from harness.engines import manifest as manifests
from harness.engines.manifest import load
from harness.install import jvm
from harness.model import HarnessError, UsageError
from harness.terminal.command_end import cache_folder
from harness.util.wait import wait_until

ALSO_FLINK = ["flink-batch", "flink-postgresql", "flink-iceberg"]
OWN = replace(fake.MANIFEST, id="own", packages="own")
NEW, OLD = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def engines(tmp_path, monkeypatch) -> Path:
    """Where the environments are, with one that is ready and its lock."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = cache_folder() / "engines"
    ready(place / f"own-{NEW}")
    return place


def ready(folder: Path) -> Path:
    folder.mkdir(parents=True)
    environments.stamp_of(folder).touch()
    with jvm.only_one(folder, print):
        pass
    return folder


def remove(manifest=OWN) -> list[str]:
    return [path.name for path in removal.remove(manifest, lambda _: None)]


def test_older_ones_go_too_and_what_killed_installations_left(engines):
    stays = [engines / name for name in (f"own-more-{NEW}", f"other-{NEW}", "own", f"own-{NEW}.d")]
    left = [f".own-{NEW}-cache", f".own-{OLD}-removed", f".own-{OLD}-fetch-a_1"]
    for folder in (*stays, engines / f"own-{OLD}", *(engines / name for name in left)):
        folder.mkdir()

    assert remove() == [*sorted(left), f"own-{NEW}", f"own-{OLD}"]
    assert all(folder.exists() for folder in stays)
    assert not [path for path in engines.iterdir() if path.is_dir() and path not in stays]
    assert remove() == []


def refuse(*_: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied", "there")


def test_what_was_removed_half_way_is_not_taken_for_whole(engines, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(shutil, "rmtree", refuse)
        with pytest.raises(HarnessError, match=rf"own-{NEW} could not be removed: Permission denied \(there\)\. The"):
            remove()

    assert not (engines / f"own-{NEW}").exists()
    assert remove() == [f".own-{NEW}-removed"]


def test_the_stamp_goes_before_the_name(engines, monkeypatch):
    monkeypatch.setattr(Path, "rename", refuse)

    with pytest.raises(HarnessError, match="could not be removed"):
        remove()

    assert (engines / f"own-{NEW}").exists()
    assert not environments.stamp_of(engines / f"own-{NEW}").exists()


@pytest.mark.parametrize("digest", [NEW, OLD])
def test_it_waits_for_whoever_installs_from_this_list_or_another(engines, digest):
    if digest == OLD:
        ready(engines / f"own-{OLD}")
    heard: list[str] = []
    with jvm.only_one(engines / f"own-{digest}", print):
        remover = threading.Thread(target=removal.remove, args=(OWN, heard.append))
        remover.start()
        wait_until(lambda: heard, deadline_s=30, what="the remover to say that it waits")
        assert environments.stamp_of(engines / f"own-{digest}").exists()
    remover.join()

    assert heard == [f"Another streamgauge is making own-{digest}; waiting for it ..."]
    assert not (engines / f"own-{digest}").exists()


def test_what_a_run_uses_is_not_removed(engines):
    with removal.in_use(OWN):
        with removal.in_use(replace(OWN, id="shares it")):
            pass
        with pytest.raises(UsageError, match=r"What was installed for own is in use. A run uses it"):
            remove()
        assert environments.stamp_of(engines / f"own-{NEW}").exists()

    assert remove() == [f"own-{NEW}"]


def test_a_run_says_that_it_uses_its_engine_before_it_looks_whether_it_is_there(engines, monkeypatch, tmp_path):
    def prepare(manifest, say):
        with pytest.raises(UsageError, match="in use"):
            remove()
        raise HarnessError("enough was seen")

    name, keys = plan.read_scenario("calm")
    spec, _ = plan.resolve(name, keys, {"engine": "fake"}, manifests.load)
    monkeypatch.setattr(environments, "prepare", prepare)
    with pytest.raises(HarnessError, match="enough"):
        one_run.drive(spec, OWN, tmp_path)

    assert remove() == [f"own-{NEW}"]


def test_a_cache_that_can_only_be_read_can_be_used(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    with removal.in_use(OWN):
        pass
    with pytest.raises(HarnessError, match="could not be removed: Not a directory"):
        remove()


@pytest.mark.parametrize(
    ("engine", "others"),
    [
        ("flink", ["flink-standalone", *ALSO_FLINK]),
        ("flink-standalone", ["flink", *ALSO_FLINK]),
        ("spark-tws", ["spark-pandas"]),
        ("spark-rtm", []),  # its jars are those of `spark`, which this program needs itself
        ("spark", []),
        ("kafka-streams", []),
        ("spark@4.1.1", []),
    ],
)
def test_who_shares_what_goes_is_known(engine, others):
    assert removal.sharing(load(engine)) == others


def test_the_command_says_what_went_and_who_used_it_too(engines):
    ready(engines / f"flink-{OLD}")

    def said(*words: str) -> str:
        return CliRunner().invoke(app.app, ["engines", *words], catch_exceptions=False).stdout

    gone = f"removed {engines / f'flink-{OLD}'}\n"
    others = " and ".join(["flink-standalone", *ALSO_FLINK])
    assert said("rm", "flink") == f"{gone}{others} used it too: the next use installs it again\n"
    assert said("rm", "flink") == "nothing was installed for flink\n"
    assert said("rm", "fake") == "nothing was installed for fake\n"
    assert said("add", "fake") == "fake is ready\n"
