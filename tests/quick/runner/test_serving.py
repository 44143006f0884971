"""Asking Kafka and Redis: when once more, when not, and what is said of one that is gone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import redis

from harness.model import HarnessError
from harness.results import redis_scan
from harness.results.redis_scan import UnreadableError
from harness.runner.world import serving
from harness.runner.world.base import ServiceGone
from harness.runner.world.serving import Serving

CLOSED = redis.ConnectionError("Connection closed by server.")
RUNS = SimpleNamespace(alive=lambda: True, log=Path("a/logs/redis.log"))


def ended(code):
    return SimpleNamespace(alive=lambda: False, returncode=lambda: code, log=Path("a/logs/redis.log"))


def of(child):
    return Serving("Redis", lambda: "redis://here", lambda: child)


class RefusingCall:
    """Refuses so many times, then answers."""

    def __init__(self, refusals, error=CLOSED):
        self.refusals, self.error, self.times = refusals, error, 0

    def __call__(self):
        self.times += 1
        if self.times <= self.refusals:
            raise self.error
        return "counts"


@pytest.mark.parametrize("child", [RUNS, None])
def test_a_look_is_taken_again_when_somebody_closed_the_connection(child):
    ask = RefusingCall(1)

    assert of(child).retry(ask, again=True) == "counts"
    assert ask.times == 2


def test_a_request_that_changes_something_is_not_made_again():
    ask = RefusingCall(1)

    with pytest.raises(ServiceGone, match="Connection closed by server"):
        of(RUNS).call(ask)
    assert ask.times == 1


def test_what_a_fault_keeps_away_is_not_waited_for():
    ask = RefusingCall(1)

    with pytest.raises(ServiceGone):
        of(RUNS).retry(ask, again=False)
    assert ask.times == 1


@pytest.mark.parametrize(("code", "how"), [(0, "with exit code 0"), (-9, "by signal 9")])
def test_a_process_that_has_ended_is_not_waited_for_and_its_log_is_named(code, how):
    ask = RefusingCall(9)

    with pytest.raises(ServiceGone) as gone:
        of(ended(code)).retry(ask, again=True)
    assert ask.times == 1
    assert str(gone.value) == (f"Redis at redis://here is gone: its process ended {how} (its log is logs/redis.log)")


def test_one_that_runs_and_refuses_is_quoted(monkeypatch):
    monkeypatch.setattr(serving, "ASK_AGAIN_S", 0.0)
    ask = RefusingCall(99, redis.AuthenticationError("NOAUTH Authentication required."))

    with pytest.raises(ServiceGone) as gone:
        of(RUNS).retry(ask, again=True)
    assert str(gone.value) == (
        "Redis at redis://here runs but does not answer: NOAUTH: Authentication required. To try: put user and "
        "password into the address (its log is logs/redis.log)"
    )
    with pytest.raises(ServiceGone, match=r"Redis at redis://here no longer answers: Kafka .* refused$"):
        of(None).call(RefusingCall(1, HarnessError("Kafka at there refused.")))


@pytest.mark.parametrize("error", [UnreadableError("no table yet"), KeyError("a bug")])
def test_what_is_no_refusal_of_a_service_stays_what_it_is(error):
    with pytest.raises(type(error)):
        of(RUNS).retry(RefusingCall(1, error), again=True)


class Answering:
    """A client of Redis whose pipelines answer each command alike."""

    def __init__(self, answer):
        self.answer, self.commands = answer, 0

    def pipeline(self, transaction):
        assert not transaction
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.commands = 0

    def hgetall(self, _name):
        self.commands += 1

    def execute(self, raise_on_error):
        assert not raise_on_error
        return [self.answer] * self.commands


def test_a_refusal_of_one_command_is_no_look_at_the_results():
    refused = redis.exceptions.NoPermissionError("this user has no permissions to run the 'hgetall' command")

    with pytest.raises(redis.exceptions.NoPermissionError):
        redis_scan.counts_only(Answering(refused), ["a", "b"])  # type: ignore[arg-type]


def test_a_key_of_another_type_is_an_answer():
    wrong = redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")

    assert redis_scan.counts_only(Answering(wrong), ["a"]) == {"a": str(wrong)}  # type: ignore[arg-type]
