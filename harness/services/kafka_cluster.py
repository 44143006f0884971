"""Kafka as three brokers with three replicas of every record, and one controller: for faults that replicas survive.

The controller is a separate node that no fault hits. So two of three brokers may be gone and the leaders and in-sync
replicas are still known.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.model import HarnessError, KafkaAddress
from harness.services.addresses import LOOPBACK
from harness.services.children import Child
from harness.services.kafka import NODE, SETTINGS, EmbeddedKafka, write_settings
from harness.services.kafka_storage import new_id
from harness.services.owners import lease_folder

CONTROLLER = NODE
BROKERS = (2, 3, 4)
REPLICATED = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    # Detect a lost broker soon, but not at the first hiccup of a busy machine.
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
}


class EmbeddedCluster(EmbeddedKafka):
    """An `EmbeddedKafka` whose own process is the controller; `brokers` maps node ids to the others."""

    def __init__(self, folder: Path, jars: Path, java: str | Path, *, jvm_options: Sequence[str] = ()) -> None:
        super().__init__(folder, jars, java, heap="512m", jvm_options=jvm_options)
        self.ports = 1 + len(BROKERS)
        self.brokers: dict[int, Child] = {}

    def stop(self) -> None:
        """Stop the brokers first: they report to the controller."""
        for broker in self.brokers.values():
            broker.stop(self.stop_deadline_s)
        self.brokers = {}
        super().stop()

    def children(self) -> tuple[Child, ...]:
        return (*super().children(), *self.brokers.values())

    def restart_broker(self, node: int) -> None:
        """Restart a broker that has ended, on its data and at its port. It answers once its replicas are in sync."""
        if self.brokers[node].alive():
            raise HarnessError(f"Broker {node} can't be restarted while it still runs.")
        self.brokers[node] = self._spawn_broker(self._settings_of(node))

    def _start_at(self, ports: list[int]) -> KafkaAddress:
        self._cluster = new_id()
        lease_folder(self._data)
        (self._data / "tmp").mkdir()
        for node, port in zip((CONTROLLER, *BROKERS), ports, strict=True):
            self._write_settings(node, port, ports[0])
        self._format({node: self._log_of(node) for node in (CONTROLLER, *BROKERS)}, self._cluster)
        self._child = self._spawn_broker(self._settings_of(CONTROLLER))
        self.brokers = {node: self._spawn_broker(self._settings_of(node)) for node in BROKERS}
        addresses = [KafkaAddress(f"{LOOPBACK}:{port}") for port in ports[1:]]
        for broker, address in zip(self.brokers.values(), addresses, strict=True):
            self._await_answer(broker, address)
        return KafkaAddress(",".join(address.bootstrap for address in addresses))

    def _write_settings(self, node: int, port: int, controller_port: int) -> None:
        folder = self._settings_of(node).parent
        folder.mkdir()
        properties = {**self.properties(port, controller_port), **REPLICATED}
        properties |= {"node.id": str(node), "log.dirs": str(self._log_of(node))}
        if node == CONTROLLER:
            properties |= {"process.roles": "controller", "listeners": f"CONTROLLER://{LOOPBACK}:{controller_port}"}
            del properties["advertised.listeners"]
        else:
            properties |= {"process.roles": "broker", "listeners": f"PLAINTEXT://{LOOPBACK}:{port}"}
        write_settings(self._settings_of(node), properties)

    def _settings_of(self, node: int) -> Path:
        return self._data / f"node-{node}" / SETTINGS

    def _log_of(self, node: int) -> Path:
        return self._settings_of(node).parent / "log"
