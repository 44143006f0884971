"""The client of Kafka's control plane, whatever Kafka it is. Ask for it by harness/services/kafka.py."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError, KafkaTimeoutError, UnknownTopicOrPartitionError, for_code
from kafka.net.inet import KafkaNetSocket
from kafka.protocol.consumer.offsets import IsolationLevel

from harness.model import HarnessError, KafkaAddress
from harness.services.addresses import is_open
from harness.texts import named

REQUEST_TIMEOUT_MS = 15_000
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
        except KafkaError as error:
            raise HarnessError(
                f"Kafka at {address.bootstrap} refused a request about {subject} ({named(error)})."
            ) from error


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
                "address is right, and whether its security settings are in the file of --kafka-config: a server that "
                "hangs up at once wants other ones."
            ) from error
