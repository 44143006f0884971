"""What an address says about where it leads, and how a taken port is met."""

from __future__ import annotations

import socket

import pytest

from harness.model import HarnessError, KafkaAddress, RedisAddress, UsageError, redacted
from harness.services.addresses import (
    PortTaken,
    free_ports,
    is_loopback,
    listens_on_loopback,
    on_free_ports,
    reached_at,
    refuse_bind,
    split,
)
from harness.services.redis import external


def test_where_this_machine_cannot_listen_is_said_once():
    with pytest.raises(HarnessError, match=r"can't listen there \([^()]+\)\. Name the address of one of its own"):
        refuse_bind("192.0.2.77:5557")


@pytest.mark.parametrize("address", ["host", "host:", ":5557", "host:0", "host:65536", "host:+5", "host:\u0665"])
def test_no_address_is_not_split(address):
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        split(address)


def test_an_address_is_split():
    assert (split("10.0.0.5:5557"), split("[::1]:80")) == (("10.0.0.5", 5557), ("::1", 80))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:9092", True),
        ("localhost:9092", True),
        ("[::1]:9092", True),
        ("0.0.0.0:9092", True),
        ("kafka.example:9092", False),
        ("10.0.0.1:9092,10.0.0.2:9092", False),
        ("10.0.0.1:9092,127.0.0.1:9092", True),
        ("redis://127.0.0.1:6379/0", True),
        ("redis://user:127.0.0.1@10.0.0.1:6379/0", False),
        ("rediss://:secret@localhost/1", True),
        ("unix:///run/redis.sock", True),
        ("spark://master.example:7077", False),
    ],
)
def test_what_only_this_machine_can_reach(address, expected):
    assert is_loopback(address) is expected


def test_free_ports_differ():
    assert len(set(free_ports(20))) == 20


def test_a_taken_port_is_met_with_others_but_not_for_ever():
    tried: list[int] = []

    def taken_until(times: int, ports: list[int]) -> list[int]:
        tried.append(ports[0])
        if len(tried) <= times:
            raise PortTaken("taken")
        return ports

    assert len(on_free_ports(2, lambda ports: taken_until(1, ports))) == 2
    tried.clear()
    with pytest.raises(PortTaken):
        on_free_ports(1, lambda ports: taken_until(99, ports))
    assert len(tried) == 3


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:1/0", "redis://host:1/0"),
        ("redis://:secret@host:1/0", "redis://***@host:1/0"),
        ("redis://user:sec@ret@host:1/0", "redis://***@host:1/0"),
        ("redis://secret@host:1/0", "redis://***@host:1/0"),
        ("redis://secret:@host:1/0", "redis://***@host:1/0"),
        ("rediss://host/0?password=secret", "rediss://host/0?***"),
        ("rediss://host/0?password=sec@ret", "rediss://***"),
        ("redis://:sec?ret@host", "redis://***"),
        ("redis://:sec${env:RET}@host", "redis://***@host"),
        ("user:secret@host", "***"),
        ("secret@host", "***"),
        ("host:6379", "***"),
        ("host", "host"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_secrets(url, shown):
    assert redacted(url) == redacted(shown) == shown


@pytest.mark.parametrize(
    "url",
    [
        "redis://:${env:SECRET}@host:1/0",
        "redis://user:${env:SECRET}@host:1/0",
        "rediss://${env:LOGIN}:${env:SECRET}@host:1/0?ssl_ca_certs=${env:FILE}",
    ],
)
def test_what_the_environment_holds_is_no_secret_in_an_address(url):
    assert redacted(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://:secret@host",
        "redis://:sec/ret@host:1/0",
        "redis://:secret@host:port/0",
        "redis://:secret@host/name",
        "secret:6379",
    ],
)
def test_what_is_no_address_of_redis_is_refused_without_its_secret(url):
    with pytest.raises(UsageError, match="is not the address of a Redis database") as caught:
        external(url)
    assert "secret" not in str(caught.value)
    assert "sec/ret" not in str(caught.value)


def test_an_option_of_tls_that_jobs_in_java_do_not_know_is_refused():
    with pytest.raises(UsageError, match=r"option ssl_ca_path.*options are ssl_ca_certs") as caught:
        external("rediss://:secret@host:1/0?ssl_ca_certs=ca.pem&ssl_ca_path=/etc")
    assert "secret" not in str(caught.value)


def test_a_password_comes_from_the_environment_and_may_hold_anything(monkeypatch):
    monkeypatch.setenv("SECRET", "a/b@c")
    address = external("redis://:${env:SECRET}@host:1/2")
    assert address == RedisAddress("redis://:a%2Fb%40c@host:1/2", external=True)
    with pytest.raises(UsageError, match="variable NOT_THERE is not set"):
        external("redis://:${env:NOT_THERE}@host")


def test_addresses_do_not_show_their_secrets():
    secret = {"sasl.password": "secret"}
    assert "secret" not in repr(KafkaAddress("host:1", librdkafka=secret, kafka_python=secret, java=secret))
    assert "secret" not in repr(RedisAddress("redis://:secret@host"))


@pytest.mark.parametrize(
    ("address", "alone"),
    [
        ("127.0.0.1:5557", True),
        ("localhost:5557", True),
        ("[::1]:5557", True),
        ("0.0.0.0:5557", False),
        ("[::]:5557", False),
        ("10.0.0.5:5557", False),
        ("bench.example:5557", False),
    ],
)
def test_a_server_on_every_address_is_reached_by_others(address, alone):
    assert listens_on_loopback(address) is alone


def test_a_server_at_every_interface_is_reached_by_the_name_of_its_machine(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "build-7")

    assert [reached_at(f"{host}:5557") for host in ("0.0.0.0", "[::]")] == ["build-7:5557"] * 2
    assert [reached_at(f"{host}:5557") for host in ("10.0.0.5", "[::1]")] == ["10.0.0.5:5557", "[::1]:5557"]
