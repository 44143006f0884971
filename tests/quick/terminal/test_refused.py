"""Each error of the two clients ends in a sentence that says what to try; none is called unexpected."""

from __future__ import annotations

import inspect
import signal

import kafka.errors
import pytest
import redis.exceptions
from confluent_kafka import KafkaError, KafkaException

from harness.model import HarnessError, Stopped
from harness.terminal import command_end
from harness.terminal.command_end import UnexpectedError

CLASSES = sorted(
    {
        each
        for module in (redis.exceptions, kafka.errors)
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Exception) and each.__module__ == module.__name__
    },
    key=lambda each: (each.__module__, each.__name__),
)
NUMBERS = sorted(
    value
    for name, value in inspect.getmembers(KafkaError)
    if name.lstrip("_").isupper() and isinstance(value, int) and value
)


def of(kind: type[Exception]) -> Exception:
    """One of each class, whatever it takes to make it."""
    if kind.__name__ in ("AskError", "MovedError"):
        return kind("1 127.0.0.1:1")
    return kind("too bad")


def test_each_class_of_both_clients_has_a_sentence():
    for kind in CLASSES:
        said = command_end.known(of(kind))

        assert not isinstance(said, UnexpectedError), kind
        assert "To try: " in str(said), kind
        assert "report a bug" not in str(said), kind
    assert len(CLASSES) > 100


def test_each_error_of_librdkafka_has_its_name_and_number():
    for number in NUMBERS:
        error = KafkaError(number)
        said = str(command_end.known(KafkaException(error)))
        assert error.name() in said
        assert number < 0 or f"error {number}:" in said
    assert len(NUMBERS) > 100


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (redis.exceptions.NoPermissionError("this user has no permissions"), r"NOPERM: this user.*ACL SETUSER"),
        (redis.exceptions.ReadOnlyError("You can't write against a read only replica."), r"READONLY: .*name the prim"),
        (redis.exceptions.OutOfMemoryError("command not allowed"), r"OOM: .*raise maxmemory"),
        (redis.exceptions.ResponseError("MISCONF Redis is configured to save"), r"MISCONF: Redis is.*to disk"),
        (kafka.errors.GroupAuthorizationFailedError("g"), r"GROUP_AUTHORIZATION_FAILED, error 30: g\..*grant"),
        (KafkaException(KafkaError(KafkaError.NOT_ENOUGH_REPLICAS)), r"NOT_ENOUGH_REPLICAS, error 19:.*min\.insync"),
    ],
)
def test_what_the_server_said_stands_beside_what_to_do(error, words):
    with pytest.raises(HarnessError, match=words):
        raise command_end.known(error)


def test_an_error_of_nobody_else_is_still_unexpected(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert isinstance(command_end.known(ValueError("ours")), UnexpectedError)


@pytest.mark.parametrize(
    ("number", "again", "code", "name"),
    [
        (signal.SIGINT, False, 130, "Ctrl-C"),
        (signal.SIGTERM, False, 143, "SIGTERM"),
        (signal.SIGTERM, True, 143, "SIGTERM, a second signal"),
    ],
)
def test_a_program_that_a_signal_ends_has_the_usual_exit_code_and_names_the_signal(number, again, code, name):
    stopped = Stopped(number, again=again)

    assert (stopped.code, stopped.exit_code) == (code, code)
    assert (stopped.name, stopped.again) == (name, again)
