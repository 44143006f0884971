"""Checks what an external Kafka permits this user, with trials on our own topic, group and transaction, which are
deleted again. A run that would fail by a missing right or a limit is refused beforehand; after a failed run the same
checks show whether the broker refuses now what the run needs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from harness.model import HarnessError, KafkaAddress
from harness.services import made
from harness.services.addresses import is_open
from harness.services.kafka import TOPIC_CONFIG
from harness.util.texts import shown
from harness.util.wait import ends_within

CONNECT_S, ANSWER_S = 10.0, 5.0
BATCH_BYTES = 1_000_000  # the load's largest batch, generators/producers.py
QUOTA_WINDOW_S = 10  # a broker's quota is a mean over this time
MOST_TRIAL_BYTES = 2_000_000
PREFIX = "streamgauge-"
LONGEST = 300
SETTLING_S, AGAIN_S = 10.0, 0.2
# A broker that has just started answers these until it has elected leaders and coordinators.
SETTLING = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
# librdkafka retries after these, which is of no use.
FINAL = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED)
HINTS = {
    KafkaError._AUTHENTICATION: (
        "user, password or sasl.mechanism in the file of --kafka-config is not what the broker expects"
    ),
    KafkaError._SSL: (
        "ssl.ca.location must name the CA of the broker's certificate, and ssl.certificate.location the client "
        "certificate if the broker requires one"
    ),
}
UNREACHED = (
    "check that it runs, that the address is right, and that security.protocol fits this port: a broker "
    "without TLS or login closes the connection of a client with them, and vice versa"
)


class Wants(NamedTuple):
    """The needs of a run from Kafka."""

    transactions: bool = False
    bytes_per_s: float = 0.0


@dataclass(frozen=True)
class Refusal:
    """One thing that the broker refuses, with the right to grant. `name` is the error of Kafka's protocol."""

    name: str
    sentence: str


def reach(address: KafkaAddress) -> None:
    """Raise HarnessError with the reason if no client can connect. Takes at most CONNECT_S."""
    if not any(is_open(server) for server in address.bootstrap.split(",")):
        raise HarnessError(
            f"Kafka at {address.bootstrap} could not be reached: no process listens there. To try: check that it "
            f"runs, and that the address is right."
        )
    said: list[KafkaError] = []
    client = AdminClient(_settings(address, error_cb=said.append))
    answer = client.describe_cluster(request_timeout=CONNECT_S)
    end_s = time.monotonic() + CONNECT_S
    while not answer.done() and time.monotonic() < end_s and not any(each.code() in FINAL for each in said):
        client.poll(0.1)
    if answer.done() and not answer.exception():
        return
    telling = [each for each in said if each.code() in FINAL] or [
        each for each in said if each.code() != KafkaError._ALL_BROKERS_DOWN
    ]
    why = telling[0] if telling else None
    words = _words(why) if why else "no answer"
    hint = HINTS.get(why.code(), UNREACHED) if why else UNREACHED
    raise HarnessError(f"Kafka at {address.bootstrap} could not be reached: {words}. To try: {hint}.")


def refusals(address: KafkaAddress, wants: Wants) -> list[Refusal]:
    """Return what this user is refused. The trial's own topic is deleted; if that is refused, the last refusal says so,
    and no run needs that right."""
    name = made.of_this_run_alone(f"{PREFIX}check")
    found: list[Refusal] = []
    trials: tuple[Callable[[], None], ...] = (
        lambda: _create(address, name),
        lambda: _write(address, name),
        lambda: _read(address, name),
        lambda: _commit(address, name),
        *([lambda: _transact(address, name)] if wants.transactions else []),
    )
    try:
        for number, trial in enumerate(trials):
            try:
                settled(trial)
            except KafkaException as error:
                found.append(_refusal(address, number, error.args[0]))
                if number == 0:
                    return found
        found += _limits(address, name, wants)
    finally:
        for sentence in made.delete_own(address, name):
            found.append(Refusal(NO_DELETE, sentence))
    return found


def settled(trial: Callable[[], None]) -> None:
    """Repeat a trial that a broker refuses only while it elects."""
    end_s = time.monotonic() + SETTLING_S
    while True:
        try:
            return trial()
        except KafkaException as error:
            if error.args[0].code() not in SETTLING or time.monotonic() > end_s:
                raise
        ends_within(AGAIN_S, threading.Event())


NO_DELETE = "delete"  # no run needs it: the refusal names the topic that stays

# Each trial and the flags of kafka-acls that grant it.
TRIALS = (
    ("create topics", f"--operation Create --operation Describe --operation Alter --topic {PREFIX}"),
    ("write to topics", f"--operation Write --operation Describe --topic {PREFIX}"),
    ("read topics", f"--operation Read --operation Describe --topic {PREFIX} --group {PREFIX}"),
    ("commit offsets in groups", f"--operation Read --operation Describe --group {PREFIX}"),
    ("open transactions", f"--operation Write --operation Describe --transactional-id {PREFIX}"),
)


def refuses_group(address: KafkaAddress, topic: str, group: str) -> str:
    """Return why this user may not read a group's offsets, or "". Commit nothing: it may be foreign."""
    with closing(confluent_kafka.Consumer(_settings(address, **{"group.id": group}))) as consumer:
        try:
            consumer.committed([TopicPartition(topic, 0)], ANSWER_S)
        except KafkaException as error:
            if error.args[0].name().endswith("AUTHORIZATION_FAILED"):
                return (
                    f"Kafka at {address.bootstrap} does not let this user use the group {group}: "
                    f"{_words(error.args[0])}. Grant it: kafka-acls --bootstrap-server {address.bootstrap} --add "
                    f"--allow-principal User:NAME --operation Read --operation Describe --group {group}"
                )
    return ""


def _refusal(address: KafkaAddress, number: int, error: KafkaError) -> Refusal:
    what, flags = TRIALS[number]
    seen = (
        f"Kafka at {address.bootstrap} does not let this user {what} whose name begins with {PREFIX}: {_words(error)}."
    )
    if error.name().endswith("AUTHORIZATION_FAILED"):
        how = f"Grant it: kafka-acls --bootstrap-server {address.bootstrap} --add --allow-principal User:NAME {flags} "
        return Refusal(error.name(), f"{seen} {how}--resource-pattern-type prefixed")
    if error.code() in (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
        how = "Start the missing brokers, or lower min.insync.replicas to the number of replicas."
        return Refusal(error.name(), f"{seen} {how}")
    return Refusal(error.name(), f"{seen} Ask the administrator of that Kafka which policy or setting refuses this.")


def _words(error: KafkaError) -> str:
    """Format name and number of Kafka's protocol; librdkafka's own errors have a name only."""
    number = f", error {error.code()}" if error.code() > 0 else ""
    return f"{error.name()}{number}: {shown(' '.join(str(error.str()).split()).rstrip('.'), LONGEST)}"


def _settings(address: KafkaAddress, **more: Any) -> dict[str, Any]:
    return {**address.librdkafka, "bootstrap.servers": address.bootstrap, "log_level": 0, **more}


def _create(address: KafkaAddress, name: str) -> None:
    with _in_kafkas_words():
        made.create(address, name, 1)


@contextmanager
def _in_kafkas_words() -> Iterator[None]:
    """Convert an error of the admin client into one of confluent_kafka."""
    try:
        yield
    except HarnessError as error:
        number = getattr(error.__cause__, "errno", None)
        if not isinstance(number, int) or number <= 0:
            raise
        raise KafkaException(KafkaError(number, " ".join(map(str, error.__cause__.args)))) from error  # type: ignore[union-attr]


def _write(address: KafkaAddress, name: str) -> None:
    """Send once without retries: a retried send ends in a time-out without a reason."""
    refused: list[KafkaError] = []
    producer = confluent_kafka.Producer(_settings(address, acks="all", retries=0))
    producer.produce(name, b"trial", partition=0, on_delivery=lambda error, _: refused.extend([error] if error else []))
    if producer.flush(ANSWER_S):
        producer.purge()
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT, f"no confirmation within {ANSWER_S:g} s"))
    if refused:
        raise KafkaException(refused[0])


def _read(address: KafkaAddress, name: str) -> None:
    settings = _settings(address, **{"group.id": name, "enable.auto.commit": False, "auto.offset.reset": "error"})
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(name, 0, 0)])
        end_s = time.monotonic() + ANSWER_S
        while time.monotonic() < end_s:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if (error := message.error()) is None:
                return
            if error.code() == KafkaError._AUTO_OFFSET_RESET:  # nothing was written, so nothing can be read
                return
            if error.code() > 0:
                raise KafkaException(error)


def _commit(address: KafkaAddress, name: str) -> None:
    with closing(confluent_kafka.Consumer(_settings(address, **{"group.id": name}))) as consumer:
        consumer.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)


def _transact(address: KafkaAddress, name: str) -> None:
    producer = confluent_kafka.Producer(_settings(address, **{"transactional.id": name}))
    producer.init_transactions(ANSWER_S)


def _limits(address: KafkaAddress, name: str, wants: Wants) -> Iterator[Refusal]:
    """Yield broker settings that would later refuse a load."""
    where, settings = f"Kafka at {address.bootstrap}", _described(address, name)
    if 0 < (largest := int(settings.get("max.message.bytes", 0))) < BATCH_BYTES:
        yield Refusal(
            "max.message.bytes",
            f"{where} takes batches of up to {largest:,} bytes (message.max.bytes), and the load sends up to "
            f"{BATCH_BYTES:,}. Raise message.max.bytes there to {BATCH_BYTES + 48_576:,}.",
        )
    for key, wanted in TOPIC_CONFIG.items():
        if settings.get(key, wanted) != wanted:
            yield Refusal(key, f"{where} created a trial topic with {key} = {settings[key]}, and a run needs {wanted}.")
    if wants.bytes_per_s and not (0 < largest < BATCH_BYTES) and (late_ms := _throttled_ms(address, name, wants)):
        yield Refusal(
            "quota",
            f"{where} throttles this user: after {_trial_bytes(wants):,} bytes it requested a pause of {late_ms:,} "
            f"ms, and the load is about {wants.bytes_per_s:,.0f} bytes/s. Raise the quota producer_byte_rate of "
            f"this user, "
            "or lower --rate.",
        )


def _described(address: KafkaAddress, name: str) -> dict[str, str]:
    """Return {} if this user may not ask or no reply comes in time: a run can go on without."""
    resource = ConfigResource(ResourceType.TOPIC, name)
    client = AdminClient(_settings(address))  # keep a reference: replies arrive only while it exists
    with suppress(KafkaException, TimeoutError):
        (answer,) = client.describe_configs([resource], request_timeout=ANSWER_S).values()
        return {key: str(entry.value) for key, entry in answer.result(ANSWER_S).items()}
    return {}


def _trial_bytes(wants: Wants) -> int:
    return round(min(MOST_TRIAL_BYTES, wants.bytes_per_s * QUOTA_WINDOW_S))


def _throttled_ms(address: KafkaAddress, name: str, wants: Wants) -> int:
    """Return the longest pause that the broker imposed on a burst of at most one quota window of the load."""
    paused: list[int] = []
    told = _settings(
        address, throttle_cb=lambda event: paused.append(round(event.throttle_time * 1000)), **{"linger.ms": 5}
    )
    producer, record = confluent_kafka.Producer(told), bytes(10_000)
    for _ in range(_trial_bytes(wants) // len(record)):
        producer.produce(name, record, partition=0)
    producer.flush(ANSWER_S)
    producer.purge()
    producer.poll(0)
    return max(paused, default=0)
