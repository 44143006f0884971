"""What a Kafka of others refuses is named before a run, with the right or the setting to grant."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from generators.encode import Batch
from generators.producers import ConfluentProducer
from harness.model import HarnessError, KafkaAddress
from harness.services import kafka, kafka_rights, made
from harness.services.addresses import free_ports
from harness.services.kafka_rights import NO_DELETE, Refusal, Wants, reach, refusals
from harness.services.kafka_security import external
from harness.util.wait import wait_until
from tests.services.guarded import GROUP, PASSWORD, PREFIX, TOPIC, TRANSACTION, GuardedKafka

if not shutil.which("openssl"):
    pytest.skip("NOT TESTED: rights, as there is no openssl to make certificates with", allow_module_level=True)

ALL = Wants(transactions=True, bytes_per_s=2_500_000)


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def address_of(broker: GuardedKafka, file: Path) -> KafkaAddress:
    return external(broker.place, file)


def refusals_soon(address: KafkaAddress) -> list[Refusal]:
    """Once the broker goes by a setting that its controller has: that takes a moment."""
    return wait_until(lambda: refusals(address, ALL), deadline_s=30, what="the broker to go by its setting")


def only(found: list[Refusal]) -> Refusal:
    (refusal,) = found
    return refusal


def test_a_user_with_the_documented_rights_is_refused_nothing_and_nothing_stays(broker):
    assert refusals(address_of(broker, broker.user("all")), ALL) == []
    assert not [name for name in kafka.topic_ids(broker.address) if name.startswith(PREFIX)]


@pytest.mark.parametrize(
    ("user", "missing", "name", "grant"),
    [
        ("no-create", (TOPIC, "CREATE"), "TOPIC_AUTHORIZATION_FAILED", "--operation Create"),
        ("no-write", (TOPIC, "WRITE"), "TOPIC_AUTHORIZATION_FAILED", "--operation Write"),
        ("no-read", (TOPIC, "READ"), "TOPIC_AUTHORIZATION_FAILED", "--operation Read"),
        ("no-group", (GROUP, "READ"), "GROUP_AUTHORIZATION_FAILED", f"--group {PREFIX}"),
        (
            "no-transaction",
            (TRANSACTION, "WRITE"),
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            f"--transactional-id {PREFIX}",
        ),
    ],
)
def test_a_missing_right_is_named_with_kafkas_error_and_the_command_that_grants_it(broker, user, missing, name, grant):
    refusal = refusals(address_of(broker, broker.user(user, (missing,))), ALL)[0]

    assert refusal.name == name
    assert f"{name}, error " in refusal.sentence
    assert grant in refusal.sentence


def test_a_topic_that_may_not_be_deleted_is_said_with_the_command_that_does(broker):
    refusal = only(refusals(address_of(broker, broker.user("no-delete", ((TOPIC, "DELETE"),))), ALL))

    assert refusal.name == NO_DELETE
    assert "TOPIC_AUTHORIZATION_FAILED, error 29" in refusal.sentence
    assert "--delete --topic streamgauge-check-" in refusal.sentence


def test_small_batches_are_refused(broker):
    address = address_of(broker, broker.user("small"))
    with broker.set(message_max_bytes="1000"):
        assert "takes batches of up to 1,000 bytes" in only(refusals_soon(address)).sentence


def test_replicas_that_are_not_there_are_named():
    """Not by the broker of these tests: since 4.0 one replica is enough for a topic that has only one."""
    refusal = kafka_rights._refusal(KafkaAddress("any:9092"), 1, KafkaError(KafkaError.NOT_ENOUGH_REPLICAS))
    assert refusal.name == "NOT_ENOUGH_REPLICAS"
    assert "min.insync.replicas" in refusal.sentence


def test_a_quota_below_the_load_is_named_and_one_above_is_none(broker):
    address = address_of(broker, broker.user("slow"))
    broker.limit("slow", producer_byte_rate=50_000.0)
    assert "throttles this user" in only(refusals(address, ALL)).sentence
    broker.limit("quick", producer_byte_rate=50_000_000.0)
    assert refusals(address_of(broker, broker.user("quick")), ALL) == []


def test_the_load_knows_for_how_long_it_was_throttled(broker):
    address = address_of(broker, broker.user("held"))
    name = made.of_this_run_alone(f"{PREFIX}held")
    made.create(address, name, 1)
    producer = ConfluentProducer(address.bootstrap, name, address.librdkafka)
    broker.limit("held", producer_byte_rate=50_000.0)
    for number in range(2_000):
        producer.offer(0, Batch.of([{"value": bytes(1_000), "key": f"{number:012x}".encode()}]))
    producer.finish(5.0)

    assert producer.pauses.longest_ms > 100
    made.delete_own(address, name)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("${env:TEST_PASSWORD}", "wrong-secret", "_AUTHENTICATION.*user, password or sasl.mechanism"),
        ("SCRAM-SHA-256", "SCRAM-SHA-512", "_AUTHENTICATION.*user, password or sasl.mechanism"),
        ("ca.crt", "stranger.crt", "_SSL.*ssl.ca.location"),
        ("SASL_SSL", "PLAINTEXT", "could not be reached"),
    ],
)
def test_why_nobody_gets_through_is_said_without_the_secret(broker, tmp_path, monkeypatch, before, after, why):
    monkeypatch.setattr(kafka_rights, "CONNECT_S", 3.0)
    text = broker.user("known").read_text().replace(before, after)
    if after == "PLAINTEXT":
        text = "security.protocol=PLAINTEXT\n"
    (tmp_path / "wrong.properties").write_text(text)

    with pytest.raises(HarnessError, match=why) as caught:
        reach(address_of(broker, tmp_path / "wrong.properties"))

    assert "wrong-secret" not in str(caught.value)


def test_nobody_there_is_said():
    (port,) = free_ports(1)
    with pytest.raises(HarnessError, match="no process listens there"):
        reach(KafkaAddress(f"127.0.0.1:{port}", external=True))
