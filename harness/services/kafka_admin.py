"""The client of Kafka's control plane, whatever Kafka it is. Ask for it by harness/services/kafka.py."""

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
GONE = ("OK", "GroupIdNotFoundError")  # what a broker answers of a group that is deleted, or was not there
OFFSETS = {
    "earliest": (OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED),
    "latest": (OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED),
    "stable": (OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED),
}

logging.getLogger("kafka").addHandler(logging.NullHandler())  # what matters arrives as an exception


class _Admin(KafkaAdminClient):  # type: ignore[misc]
    """Closes itself when it cannot be opened; the original leaves a thread and a socket behind."""

    _closed = False

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except KafkaTimeoutError:
            self.close()
            raise

    def create(self, topic: str, partitions: int, configs: Mapping[str, str]) -> str:
        """The id that the broker gave it; "" where it gave none."""
        asked = {topic: {"num_partitions": partitions, "configs": configs}}
        (told,) = self.create_topics(asked, raise_errors=False)["topics"]
        if told["error_code"]:  # raised by the client, it would quote the whole request
            raise for_code(told["error_code"])(told.get("error_message") or topic)
        given = str(told.get("topic_id") or NO_ID)
        return "" if given == NO_ID else given

    def delete_by_id(self, ids: Mapping[str, str]) -> dict[str, str]:
        """What stays, and why. A broker that gave no id deletes by name."""
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
        """By their names alone, of which nobody else can have one."""
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

    def served(self, topic: str) -> list[int]:
        """The partitions that have a leader; none while the topic is still on its way to all brokers."""
        with suppress(UnknownTopicOrPartitionError):
            return self._led(topic)
        return []

    def _led(self, topic: str) -> list[int]:
        (description,) = self.describe_topics([topic])
        if description["error_code"]:
            raise for_code(description["error_code"])(f"topic {topic}")
        return sorted(part["partition_index"] for part in description["partitions"] if part["leader_id"] >= 0)


class _Socket(KafkaNetSocket):  # type: ignore[misc]
    """Closed when it cannot be connected; the original leaves it to the garbage collector, one for each refusal."""

    SCHEMES = ("closing",)

    async def sock_connect(self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class _Complaints(logging.Handler):
    """Why each attempt to connect failed: the error that comes in the end says only that time is up."""

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
    """A client of the control plane, whose errors say which Kafka was meant; the settings are never part of them."""
    with _open(address) as admin:
        try:
            yield admin
        except (KafkaError, RuntimeError) as error:  # RuntimeError: it found no controller
            raise HarnessError(
                f"Kafka at {address.bootstrap} refused a request about {subject} ({said_by_kafka(error)})."
            ) from error


def _suspect(why: str) -> str:
    """Which of the settings the reason points at."""
    if re.search("uthentication|SASL|credentials|password", why):
        return "the right user, password and sasl.mechanism"
    if re.search("SSL|certificate|verify", why):
        return "the right ssl.ca.location"
    return "the security.protocol of that port, user, password and sasl.mechanism"


def said_by_kafka(error: Exception) -> str:
    """An error with the name and the number that Kafka's protocol has for it."""
    number, name = getattr(error, "errno", None), getattr(error, "message", "")
    if not isinstance(error, BrokerResponseError) or not name:
        return named(error)
    return shown(f"{name}, error {number}: {' '.join(map(str, error.args))}")


def _open(address: KafkaAddress) -> _Admin:
    servers = [server for server in address.bootstrap.split(",") if is_open(server)]
    with _Complaints() as complaints:
        try:
            if not servers:  # the client itself would try for long, and leave a socket open for each refusal
                raise ConnectionRefusedError("nobody listens there")
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
                f"Kafka at {address.bootstrap} could not be reached ({why}). Look whether it runs, whether that "
                f"address is right, and whether the file of --kafka-config has {_suspect(why)}."
            ) from error
