"""The client of Kafka's control plane, for embedded and external Kafka. Use it through harness/services/kafka.py."""

from __future__ import annotations

import logging
import re
import socket
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import (
    BrokerResponseError,
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.net.inet import KafkaNetSocket
from kafka.protocol.consumer.offsets import IsolationLevel

from harness.model import HarnessError, KafkaAddress
from harness.services.addresses import is_open
from harness.util.texts import named, shown

REQUEST_TIMEOUT_MS = 15_000
NO_ID = str(uuid.UUID(int=0))
GONE = ("OK", "GroupIdNotFoundError")  # replies for a group that is deleted, or never existed
OFFSETS = {
    "earliest": (OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED),
    "latest": (OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED),
    "stable": (OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED),
}

logging.getLogger("kafka").addHandler(logging.NullHandler())  # errors arrive as exceptions


class _Admin(KafkaAdminClient):  # type: ignore[misc]
    """A client that closes itself when it cannot be opened; the original leaks a thread and a socket."""

    _closed = False

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except KafkaTimeoutError:
            self.close()
            raise

    def create(self, topic: str, partitions: int, configs: Mapping[str, str]) -> str:
        """Return the topic id that the broker assigned, or ""."""
        asked = {topic: {"num_partitions": partitions, "configs": configs}}
        (told,) = self.create_topics(asked, raise_errors=False)["topics"]
        if told["error_code"]:  # the client's own error quotes the whole request
            raise for_code(told["error_code"])(told.get("error_message") or topic)
        given = str(told.get("topic_id") or NO_ID)
        return "" if given == NO_ID else given

    def delete_by_id(self, ids: Mapping[str, str]) -> dict[str, str]:
        """Return the topics that remain, and why. A broker without ids deletes by name."""
        stays = {}
        for name, given in ids.items():
            try:
                self.delete_topics([uuid.UUID(given) if given else name])
            except (UnknownTopicOrPartitionError, UnknownTopicIdError):
                continue
            except KafkaError as error:
                stays[name] = said_by_kafka(error)
        return stays

    def delete_groups_holding(self, names: Collection[str]) -> dict[str, str]:
        """The names alone identify groups: they contain the run's random bits, so none is foreign."""
        found = [group["group_id"] for group in self.list_groups()]
        own = [group for group in found if any(name in group for name in names)]
        answers = self.delete_groups(own) if own else {}
        return {group: answer for group, answer in answers.items() if answer not in GONE}

    def offsets(self, topic: str, which: str) -> dict[int, int]:
        offset, isolation = OFFSETS[which]
        asked = {TopicPartition(topic, partition): offset for partition in self._led(topic)}
        found = self.list_partition_offsets(asked, isolation)
        return {place.partition: at.offset for place, at in sorted(found.items())}

    def delete_before(self, topic: str, before: Mapping[int, int]) -> None:
        self.delete_records({TopicPartition(topic, partition): offset for partition, offset in before.items()})

    def usable_bytes(self) -> dict[int, int]:
        """Return the free bytes of each broker's largest log folder; a broker that does not report them is left out."""
        found = {}
        for each in self.describe_log_dirs({}):
            sizes = [folder.get("usable_bytes", -1) for folder in each["log_dirs"] if not folder["error_code"]]
            if max(sizes, default=-1) >= 0:
                found[each["broker"]] = max(sizes)
        return found

    def served(self, topic: str) -> list[int]:
        """Return the partitions with a leader; none while the topic has not reached all brokers."""
        with suppress(UnknownTopicOrPartitionError):
            return self._led(topic)
        return []

    def _led(self, topic: str) -> list[int]:
        (description,) = self.describe_topics([topic])
        if description["error_code"]:
            raise for_code(description["error_code"])(f"topic {topic}")
        return sorted(part["partition_index"] for part in description["partitions"] if part["leader_id"] >= 0)


class _Socket(KafkaNetSocket):  # type: ignore[misc]
    """A socket that closes when it cannot connect; the original leaks one per refusal until garbage collection."""

    SCHEMES = ("closing",)

    async def sock_connect(self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class _Complaints(logging.Handler):
    """Collects why each connection attempt failed: the final error says only that the time is up."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        attempt, _, why = record.getMessage().partition(" failed: ")
        if "onnection to " in attempt:
            self.said.append(why.rpartition(" (backoff")[0] or why)

    def __enter__(self) -> _Complaints:
        logging.getLogger("kafka.net.manager").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafka.net.manager").removeHandler(self)


@contextmanager
def administering(address: KafkaAddress, subject: str) -> Iterator[Any]:
    """Yield an admin client whose errors name the Kafka server but never its settings."""
    with _open(address) as admin:
        try:
            yield admin
        except (KafkaError, RuntimeError) as error:  # RuntimeError: it found no controller
            raise HarnessError(
                f"Kafka at {address.bootstrap} refused a request about {subject} ({said_by_kafka(error)})."
            ) from error


def _suspect(why: str) -> str:
    """Return the settings that may have caused the failure."""
    if re.search("uthentication|SASL|credentials|password", why):
        return "the right user, password and sasl.mechanism"
    if re.search("SSL|certificate|verify", why):
        return "the right ssl.ca.location"
    return "the security.protocol of that port, user, password and sasl.mechanism"


def said_by_kafka(error: Exception) -> str:
    """Format an error with name and number of Kafka's protocol."""
    number, name = getattr(error, "errno", None), getattr(error, "message", "")
    if not isinstance(error, BrokerResponseError) or not name:
        return named(error)
    return shown(f"{name}, error {number}: {' '.join(map(str, error.args))}")


def _open(address: KafkaAddress) -> _Admin:
    servers = [server for server in address.bootstrap.split(",") if is_open(server)]
    with _Complaints() as complaints:
        try:
            if not servers:  # the client would retry for long, and leak a socket for each refusal
                raise ConnectionRefusedError("no process listens there")
            return _Admin(
                bootstrap_servers=servers,
                bootstrap_timeout_ms=REQUEST_TIMEOUT_MS,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                proxy_url=f"{_Socket.SCHEMES[0]}://",
                **address.kafka_python,
            )
        except (KafkaError, OSError) as error:
            why = "; ".join(dict.fromkeys(complaints.said)) or named(error)
            raise HarnessError(
                f"Kafka at {address.bootstrap} could not be reached ({why}). Check that it runs, that the address "
                f"is right, and that the file of --kafka-config has {_suspect(why)}."
            ) from error
