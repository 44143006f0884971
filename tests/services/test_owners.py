"""Two owners side by side, one of which dies; and `up` and `down`, whose owner is the keeper."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.model import HarnessError, KafkaAddress, RedisAddress
from harness.services import kafka, keeper
from harness.services.owners import is_alive, is_running, owner_mark, sweep
from harness.services.redis import connect
from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.usefixtures("own_state")


class Owner:
    """The process of owner.py, and what it started."""

    def __init__(self, folder: Path, jars: Path, java: Path) -> None:
        folder.mkdir()
        self.folder = folder
        command = [sys.executable, "-m", "tests.services.owner", str(folder), str(jars), str(java)]
        self.process = subprocess.Popen(command, cwd=ROOT)

    def wait(self) -> None:
        wait_until(
            self._is_ready, deadline_s=90, what="the owner's services", state=lambda: str(list(self.folder.iterdir()))
        )
        bootstrap, url = (self.folder / "addresses").read_text().split()
        self.kafka, self.redis = KafkaAddress(bootstrap), RedisAddress(url)
        self.children = psutil.Process(self.process.pid).children(recursive=True)
        assert len(self.children) >= 2

    def _is_ready(self) -> bool:
        assert self.process.poll() is None
        return (self.folder / "addresses").exists()

    def serves(self) -> bool:
        with connect(self.redis) as client:
            return client.ping() is True and "any" not in kafka.topic_ids(self.kafka)

    def is_gone(self) -> bool:
        return not any(map(is_running, self.children)) and not (self.folder / "kafka-data").exists()


def test_an_owner_is_not_dead_because_time_began_elsewhere_for_who_looks():
    """In another time namespace every process has another start: a sweep there would end all runs of the machine."""
    there = ["unshare", "-T", "--boottime", "100000", "-f", sys.executable, "-c"]
    if subprocess.run([*there, ""], capture_output=True, check=False).returncode:
        pytest.skip("NO TIME NAMESPACE WAS TRIED: it needs root and Linux")
    asked = f"from harness.services.owners import is_dead; print(is_dead({owner_mark()!r}))"
    done = subprocess.run([*there, asked], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_the_death_of_an_owner_clears_its_services_and_not_a_siblings(tmp_path, jars, java):
    """The sibling is a keeper, so that `up` and `down` are seen here as well."""
    dead = Owner(tmp_path / "dead", jars, java)
    assert keeper.status() is None
    assert keeper.down() is False
    services, started = keeper.up(jars, java)
    try:
        dead.wait()
        assert started
        assert dead.serves()
        dead.process.kill()
        dead.process.wait()
        assert any(str(dead.folder) in sentence for sentence in sweep())
        assert dead.is_gone()
        assert (dead.folder / "kafka.log").exists()

        assert keeper.up(jars, java) == (services, False)
        assert not any(services.folder in sentence for sentence in sweep())
        assert "any" not in kafka.topic_ids(KafkaAddress(services.kafka))
        with connect(RedisAddress(services.redis)) as client:
            client.set("key", "value")
        belongings = psutil.Process(services.keeper_pid).children(recursive=True)
        assert len(belongings) >= 2
    finally:
        dead.process.kill()
        dead.process.wait()
        assert keeper.down() is True
    assert keeper.status() is None
    assert not is_alive(services.owner)
    assert not any(map(is_running, belongings))
    assert sorted(path.name for path in Path(services.folder).iterdir()) == ["kafka.log", "keeper.log", "redis.log"]


def test_what_a_killed_keeper_leaves_is_swept(jars, java):
    services, _ = keeper.up(jars, java)
    belongings = psutil.Process(services.keeper_pid).children(recursive=True)
    os.kill(services.keeper_pid, signal.SIGKILL)
    wait_until(lambda: keeper.status() is None, deadline_s=20, what="the keeper to be gone")
    assert any("kafka-data" in sentence for sentence in sweep())
    assert not any(map(is_running, belongings))
    assert keeper.down() is False


def test_a_keeper_that_cannot_start_says_why(tmp_path, java):
    with pytest.raises(HarnessError, match=r"did not come up(.|\n)*StorageTool"):
        keeper.up(tmp_path, java)
    assert keeper.status() is None
