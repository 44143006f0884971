"""Kafka: a real broker as a child process, and the control plane (topics, offsets, record deletion) of any Kafka.

The broker is one KRaft node that is controller and broker at once. Its data folder is leased, so it is deleted after
the run: it may hold gigabytes. Its log stays. The mappings of a KafkaAddress hold security settings only, never the
servers themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import confluent_kafka
import psutil

from harness.install.jvm import ENGLISH
from harness.model import HarnessError, KafkaAddress
from harness.services import kafka_storage
from harness.services.addresses import LOOPBACK, PortTaken, is_open
from harness.services.children import Child, spawn
from harness.services.embedded import Embedded
from harness.services.owners import lease_folder, release_folder
from harness.util.texts import named
from harness.util.wait import wait_until

SETTINGS = "server.properties"
NODE = 1
UNCLEAN = 1  # the election type in Kafka's protocol
FORMAT_DEADLINE_S = 120.0  # long, for busy machines: a dead process is noticed at once
READY_DEADLINE_S = 120.0
SLOWEST_START_MS = 600_000
# The broker shares the cores with the engine under test. The second compiler takes more CPU in a run than its code
# saves, also at the highest rate, and a multi-threaded collector gains nothing: docs/evidence/own-cost.md.
FRUGAL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LEADER_DEADLINE_S = 30.0
# A run is judged from its log: retention must not delete any of it, and timestamps are those of the sender.
TOPIC_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}


class EmbeddedKafka(Embedded[KafkaAddress]):
    """A freshly formatted data folder and one broker on it; `stop` deletes the folder."""

    name, ports = "Kafka", 2

    def __init__(
        self,
        folder: Path,
        jars: Path,
        java: str | Path,
        *,
        heap: str = "1g",
        engine_at: str = "",
        jvm_options: Sequence[str] = (),
        stop_deadline_s: float = 0.0,
    ) -> None:
        """`engine_at` is the broker address that the engine gets, if it connects through a proxy. `stop_deadline_s`
        defaults to 0: usually nothing that a broker does on a clean stop is worth a wait."""
        super().__init__(folder / "kafka.log")
        self._data = folder / "kafka-data"
        self._jars, self._classpath = jars, ":".join(map(str, in_order(jars)))
        self._java, self._heap = str(java), heap
        self._jvm_options, self.stop_deadline_s = tuple(jvm_options), stop_deadline_s
        self._engine_at, self.behind_proxy = engine_at, ""  # the latter: the address that the proxy forwards to
        self._cluster = ""
        if engine_at:
            self.ports = 3

    def stop(self) -> None:
        super().stop()
        release_folder(self._data)

    def restart(self) -> None:
        """Restart a broker that has ended, on its data and at its port, and wait until it answers."""
        if self.child.alive():
            raise HarnessError("The embedded Kafka can't be restarted while it still runs.")
        wait_until(
            self._came_back,
            deadline_s=READY_DEADLINE_S,
            what=f"the port of the embedded Kafka at {self.address.bootstrap} to be free again",
            state=self.child.last_words,
        )

    def serves(self) -> bool:
        """Return whether it can answer: it runs, listens, and is not stopped by a signal."""
        with suppress(psutil.NoSuchProcess):
            stopped = psutil.Process(self.child.pid).status() == psutil.STATUS_STOPPED
            return self.child.alive() and not stopped and self.listens()
        return False

    def listens(self) -> bool:
        return any(is_open(server) for server in self.address.bootstrap.split(","))

    def properties(self, broker_port: int, controller_port: int) -> dict[str, str]:
        """Return the server's configuration: one node, one replica, no retention, no automatic topics."""
        return {
            "process.roles": "broker,controller",
            "node.id": str(NODE),
            "controller.quorum.voters": f"{NODE}@{LOOPBACK}:{controller_port}",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{broker_port},CONTROLLER://{LOOPBACK}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{broker_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._data / "log"),
            "auto.create.topics.enable": "false",
            "log.retention.ms": "-1",
            "default.replication.factor": "1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # One thread per task: with many, each works with cold caches and wakes the next. One thread receives more
            # than the ad servers can send.
            "num.network.threads": "1",
            "num.io.threads": "1",
            # No idle records of the controller, two a second by default.
            "metadata.max.idle.interval.ms": "0",
            # The cleaner allocates this buffer at its start, 128 MiB by default. It has little to clean.
            "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
            # By default Kafka gives up if a busy machine delays its start by more than a minute.
            "initial.broker.registration.timeout.ms": str(SLOWEST_START_MS),
        }

    def _start_at(self, ports: list[int]) -> KafkaAddress:
        cluster = kafka_storage.new_id()
        lease_folder(self._data)
        (self._data / "tmp").mkdir()
        settings = self._data / SETTINGS
        properties = self.properties(*ports[:2])
        if self._engine_at:
            self.behind_proxy = f"{LOOPBACK}:{ports[2]}"
            properties = with_engine_listener(properties, self.behind_proxy, self._engine_at)
        write_settings(settings, properties)
        self._format({NODE: self._data / "log"}, cluster)
        return self._begin(KafkaAddress(f"{LOOPBACK}:{ports[0]}"), cluster)

    def _came_back(self) -> bool:
        """Clients that keep reconnecting may hold its port for a moment."""
        with suppress(PortTaken):
            self._begin(self.address, self._cluster)
            return True
        return False

    def _begin(self, address: KafkaAddress, cluster: str) -> KafkaAddress:
        self._cluster = cluster
        settings = self._data / SETTINGS
        self._child = self._spawn_broker(settings)
        self._await_answer(self._child, address)
        return address

    def _await_answer(self, broker: Child, address: KafkaAddress) -> None:
        wait_until(
            lambda: _refuse_ended(self.child, broker) and _answers(address, self._cluster),
            deadline_s=READY_DEADLINE_S,
            what=f"the embedded Kafka at {address.bootstrap} to answer",
            state=broker.last_words,
        )

    def _format(self, nodes: Mapping[int, Path], cluster: str) -> None:
        """Format the folder of each node. `nodes` maps node ids to folders."""
        features = self._features()
        for node, folder in nodes.items():
            kafka_storage.write(folder, node, cluster, features)

    def _features(self) -> Path:
        """Return the cached features; else run Kafka's own tool and cache its output where possible."""
        kept = kafka_storage.kept_features(self._jars)
        if kept.exists():
            return kept
        made = self._data / "made-by-the-tool"
        self._run_tool({**self.properties(1, 2), "log.dirs": str(made)})
        with suppress(OSError):
            kafka_storage.keep(made / kafka_storage.FEATURES, self._jars)
        return made / kafka_storage.FEATURES

    def _run_tool(self, properties: Mapping[str, str]) -> None:
        settings = self._data / "tool.properties"
        write_settings(settings, properties)
        arguments = ["kafka.tools.StorageTool", "format", "-t", kafka_storage.new_id(), "-c", str(settings)]
        tool = self._spawn_java("kafka-format", arguments)
        try:
            wait_until(
                lambda: not tool.alive(),
                deadline_s=FORMAT_DEADLINE_S,
                what="the storage of the embedded Kafka to be formatted",
                state=tool.last_words,
            )
        finally:
            tool.kill_group()
        if tool.returncode():
            raise HarnessError(
                f"The storage of the embedded Kafka could not be formatted (exit {tool.returncode()}). "
                f"{tool.last_words()}"
            )

    def _spawn_broker(self, settings: Path) -> Child:
        # The compression codecs unpack native libraries into the temporary folder; this one is deleted with the data.
        options = [f"-Xmx{self._heap}", f"-Djava.io.tmpdir={self._data / 'tmp'}"]
        options += ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-XX:+ExitOnOutOfMemoryError", *self._jvm_options]
        broker = self._spawn_java("kafka", [*options, "kafka.Kafka", str(settings)])
        broker.go_first()  # a load that waits for its broker is not open-loop
        return broker

    def _spawn_java(self, name: str, arguments: list[str]) -> Child:
        return spawn([self._java, *ENGLISH, *FRUGAL, "-cp", self._classpath, *arguments], name=name, log=self.log)


def in_order(jars: Path) -> list[Path]:
    """Return the broker's class path. An archive of classes is valid for this order only."""
    return sorted(jars.glob("*.jar"))


def write_settings(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def with_engine_listener(properties: Mapping[str, str], listens: str, advertised: str) -> dict[str, str]:
    """Add a listener for the engine that advertises the proxy's address."""
    more = {
        "listeners": f"ENGINE://{listens}",
        "advertised.listeners": f"ENGINE://{advertised}",
        "listener.security.protocol.map": "ENGINE:PLAINTEXT",
    }
    return {**properties, **{key: f"{properties[key]},{value}" for key, value in more.items()}}


def _refuse_ended(*processes: Child) -> bool:
    """Raise if any has ended. Without its controller no broker of a cluster ever answers."""
    for process in processes:
        if not process.alive():
            kind = PortTaken if any("Address already in use" in line for line in process.tail(500)) else HarnessError
            raise kind(f"The embedded Kafka ended while starting (exit {process.returncode()}). {process.last_words()}")
    return True


def _answers(address: KafkaAddress, cluster: str) -> bool:
    """Check readiness by protocol. The cluster id proves that our broker answers, not another run's."""
    with suppress(HarnessError), _admin(address, "metadata") as admin:
        description = admin.describe_cluster()
        return bool(description["cluster_id"] == cluster and description["brokers"])
    return False


def create_topic(address: KafkaAddress, name: str, partitions: int, *, appended: bool = False) -> str:
    """Create a topic, and wait until every partition has a leader: sending earlier may fail. Return the broker's topic
    id; "" from a broker that assigns none. `appended` selects timestamps of the append instead of the sender's."""
    config = TOPIC_CONFIG | ({"message.timestamp.type": "LogAppendTime"} if appended else {})
    with _admin(address, f"topic {name}") as admin:
        given: str = admin.create(name, partitions, config)
        _await_leaders(admin, address, name, partitions)
        return given


def _await_leaders(admin: Any, address: KafkaAddress, name: str, partitions: int) -> None:
    wait_until(
        lambda: admin.served(name) == list(range(partitions)),
        deadline_s=LEADER_DEADLINE_S,
        what=f"a leader of each of the {partitions} partitions of topic {name} in Kafka at {address.bootstrap}",
        state=lambda: f"partitions with a leader: {admin.served(name)}.",
    )


def delete_topic(address: KafkaAddress, name: str) -> None:
    with _admin(address, f"topic {name}") as admin:
        admin.delete_topics([name])


def delete_topics(address: KafkaAddress, ids: Mapping[str, str]) -> dict[str, str]:
    """Delete topics by their ids (given by name): a new topic with the same name stays. Return the topics that remain
    with the broker's reason. A topic that is already gone is no failure."""
    with _admin(address, f"topics {', '.join(ids)}") as admin:
        stays: dict[str, str] = admin.delete_by_id(ids)
        return stays


def topic_ids(address: KafkaAddress) -> dict[str, str]:
    """Return name -> id of each topic that this user may see."""
    with _admin(address, "all topics") as admin:
        return {str(each["name"]): str(each["topic_id"]) for each in admin.describe_topics()}


def delete_groups_holding(address: KafkaAddress, names: Collection[str]) -> dict[str, str]:
    """Delete consumer groups whose name contains one of these. Return those that remain, with reasons."""
    with _admin(address, "consumer groups") as admin:
        stays: dict[str, str] = admin.delete_groups_holding(names)
        return stays


def topic_id(address: KafkaAddress, name: str) -> str:
    """Return the id that distinguishes a topic from an earlier one with the same name."""
    with _admin(address, f"topic {name}") as admin:
        (description,) = admin.describe_topics([name])
        return str(description["topic_id"])


def add_partitions(address: KafkaAddress, name: str, total: int) -> None:
    """Raise the number of partitions to `total`, and wait until each has a leader."""
    with _admin(address, f"topic {name}") as admin:
        admin.create_partitions({name: total})
        _await_leaders(admin, address, name, total)


def leaders(address: KafkaAddress, name: str) -> dict[int, int]:
    """Return the leader of each partition; -1 if it has none."""
    return {part["partition_index"]: part["leader_id"] for part in _partitions(address, name)}


def in_sync(address: KafkaAddress, name: str) -> dict[int, set[int]]:
    """Return the in-sync replicas of each partition."""
    return {part["partition_index"]: set(part["isr_nodes"]) for part in _partitions(address, name)}


def replicas(address: KafkaAddress, name: str) -> dict[int, set[int]]:
    """Return the brokers that store each partition."""
    return {part["partition_index"]: set(part["replica_nodes"]) for part in _partitions(address, name)}


def usable_bytes(address: KafkaAddress) -> dict[int, int]:
    """Return the free disk space of each broker that reports it (Kafka 3.3 and newer)."""
    with _admin(address, "the folders of its logs") as admin:
        found: dict[int, int] = admin.usable_bytes()
        return found


def elect_uncleanly(address: KafkaAddress, name: str, partitions: Collection[int]) -> None:
    """Elect any live replica as leader of each partition without one, even if it lacks records."""
    with _admin(address, f"topic {name}") as admin:
        admin.elect_leaders(UNCLEAN, {name: sorted(partitions)})


def _partitions(address: KafkaAddress, name: str) -> list[dict[str, Any]]:
    with _admin(address, f"topic {name}") as admin:
        (description,) = admin.describe_topics([name])
        return sorted(description["partitions"], key=lambda part: int(part["partition_index"]))


def beginning_offsets(address: KafkaAddress, topic: str) -> dict[int, int]:
    """Return the first existing offset per partition."""
    return _offsets(address, topic, "earliest")


def end_offsets(address: KafkaAddress, topic: str) -> dict[int, int]:
    """Return the offset of the next record per partition."""
    return _offsets(address, topic, "latest")


def stable_offsets(address: KafkaAddress, topic: str) -> dict[int, int]:
    """Return the last stable offsets: a read-committed reader stops at the first open transaction."""
    return _offsets(address, topic, "stable")


def begin_group(address: KafkaAddress, group: str, topic: str) -> None:
    """Commit the beginning offsets for a group whose consumers would start at the end of a new topic."""
    places = [
        confluent_kafka.TopicPartition(topic, partition, offset)
        for partition, offset in beginning_offsets(address, topic).items()
    ]
    settings = {"bootstrap.servers": address.bootstrap, "group.id": group, "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({**address.librdkafka, **settings})  # it waits for the group's coordinator
    try:
        consumer.commit(offsets=places, asynchronous=False)
    except confluent_kafka.KafkaException as error:
        raise HarnessError(
            f"Kafka at {address.bootstrap} did not let group {group} start at the beginning of topic {topic} "
            f"({named(error)}). Check that no other consumer uses this group, which the manifest names."
        ) from error
    finally:
        consumer.close()


def delete_records(address: KafkaAddress, topic: str, before: Mapping[int, int]) -> None:
    """Delete all records below the given offset of each partition."""
    with _admin(address, f"topic {topic}") as admin:
        admin.delete_before(topic, before)


def _offsets(address: KafkaAddress, topic: str, which: str) -> dict[int, int]:
    with _admin(address, f"topic {topic}") as admin:
        offsets: dict[int, int] = admin.offsets(topic, which)
        return offsets


def _admin(address: KafkaAddress, subject: str) -> AbstractContextManager[Any]:
    """Import the client late: its large library would take a fifth of the start of every command."""
    from harness.services import kafka_admin

    return kafka_admin.administering(address, subject)
