"""Three brokers and a controller that begins badly: without it no broker ever answers, and nobody waits for that."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.model import HarnessError
from harness.services.addresses import PortTaken
from harness.services.kafka_cluster import BROKERS, CONTROLLER, EmbeddedCluster


def child(*, ended: bool, said: str = "") -> SimpleNamespace:
    return SimpleNamespace(
        alive=lambda: not ended,
        tail=lambda _lines: [said],
        returncode=lambda: 1,
        last_words=lambda: said,
        stop=lambda _deadline_s: True,
    )


@pytest.mark.parametrize(
    ("said", "expected"), [("java.net.BindException: Address already in use", PortTaken), ("no room", HarnessError)]
)
def test_a_controller_that_ended_is_not_waited_for(tmp_path: Path, monkeypatch, said, expected):
    cluster = EmbeddedCluster(tmp_path, tmp_path, "java")
    nodes = {str(cluster._settings_of(CONTROLLER)): child(ended=True, said=said)}
    monkeypatch.setattr(cluster, "_format", lambda *_: None)
    monkeypatch.setattr(cluster, "_spawn_broker", lambda settings: nodes.get(str(settings), child(ended=False)))

    with pytest.raises(expected, match=said):
        cluster._start_at(list(range(40_000, 40_001 + len(BROKERS))))
