"""What a broker refuses while it elects leaders and coordinators is no missing right."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.services import kafka_rights


def trial(*codes: int):
    """It meets these errors in turn, and then none."""
    left = list(codes)

    def tried() -> None:
        if left:
            raise KafkaException(KafkaError(left.pop(0)))

    return tried, left


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(kafka_rights, "AGAIN_S", 0.01)


@pytest.mark.parametrize("code", kafka_rights.SETTLING)
def test_a_broker_that_elects_is_asked_again(code):
    tried, left = trial(code, code, code)

    kafka_rights.settled(tried)

    assert left == []


def test_a_right_that_is_missing_is_told_at_once():
    tried, left = trial(KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.NOT_COORDINATOR)

    with pytest.raises(KafkaException) as refused:
        kafka_rights.settled(tried)
    assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert len(left) == 1


def test_a_broker_that_goes_on_electing_is_told(monkeypatch):
    monkeypatch.setattr(kafka_rights, "SETTLING_S", 0.05)
    tried, _ = trial(*[KafkaError.NOT_COORDINATOR] * 1000)

    with pytest.raises(KafkaException):
        kafka_rights.settled(tried)
