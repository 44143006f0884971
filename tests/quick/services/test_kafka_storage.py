"""A data folder for Kafka without its tool, and what of the tool's work is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.services import kafka_storage
from harness.services.kafka import EmbeddedKafka


class Broker(EmbeddedKafka):
    """Of its tool we only count the runs."""

    asked = 0

    def _run_tool(self, properties):
        self.asked += 1
        folder = Path(properties["log.dirs"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / kafka_storage.FEATURES).write_bytes(b"features")


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path, tmp_path / "services-1", "java")


def test_each_node_has_an_id_of_its_own_and_the_features_of_all(tmp_path, broker, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    broker._format({node: tmp_path / str(node) / "log" for node in (1, 2)}, "cluster")
    one, two = ((tmp_path / node / "log" / "meta.properties").read_text().splitlines() for node in "12")
    assert one[:3] == ["version=1", "cluster.id=cluster", "node.id=1"]
    assert two[:3] == ["version=1", "cluster.id=cluster", "node.id=2"]
    assert one[3].startswith("directory.id=")
    assert one[3] != two[3]
    assert (tmp_path / "2" / "log" / "bootstrap.checkpoint").read_bytes() == b"features"


def test_the_tool_is_asked_once_for_each_version(tmp_path, broker, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, second = broker._features(), broker._features()
    assert (broker.asked, first.read_bytes(), second.read_bytes()) == (1, b"features", b"features")
    assert [path.name for path in second.parent.iterdir()] == ["services-1.bootstrap.checkpoint"]
    other = Broker(tmp_path, tmp_path / "services-2", "java")
    other._features()
    assert other.asked == 1


def test_where_nothing_can_be_kept_the_tool_is_asked_each_time(tmp_path, broker, monkeypatch):
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):
        assert broker._features().read_bytes() == b"features"
    assert broker.asked == 2
