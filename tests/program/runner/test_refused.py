"""A server of others refuses an engine, or throws its results away: runs in the fake world, each with a verdict."""

from __future__ import annotations

import pytest

from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import Outcome
from harness.runner.world.base import Spoiled
from harness.runner.world.fake import FakeWorld
from tests.program.runner.test_run import fake_run

REFUSED = "Kafka at there does not let this user commit: GROUP_AUTHORIZATION_FAILED, error 30: no"
EVICTED = "Redis at there has evicted keys since this run began (evicted_keys +4,178)"
CUT = "records of topic t in Kafka were deleted, but not by this run: partition 0 starts at offset 500"
THROTTLED = "Kafka at there throttled the load of this run for up to 9,800 ms (throttle_time_ms)"
STAYS = "Topic t stays in Kafka at there, which refused the deletion (TOPIC_AUTHORIZATION_FAILED, error 29: t)"


class Refusing(FakeWorld):
    def refused(self) -> str:
        return REFUSED


class Evicting(FakeWorld):
    def spoiled(self) -> Spoiled:
        return Spoiled(results=EVICTED)


class Cut(FakeWorld):
    def spoiled(self) -> Spoiled:
        return Spoiled(log=CUT)


class Throttling(FakeWorld):
    def spoiled(self) -> Spoiled:
        return Spoiled(load=THROTTLED)


class Leaving(FakeWorld):
    def stays(self) -> tuple[str, ...]:
        return (STAYS,)


def test_an_engine_that_its_server_refuses_is_unserved_and_not_crashed(tmp_path):
    verdict, store, _ = fake_run(tmp_path, Refusing, fault="none", conf={"misbehave": "die"})

    assert verdict.outcome is Outcome.UNKNOWN, verdict.sentence
    assert verdict.sentence.startswith(f"unserved: {REFUSED}")
    assert judge(StoredRun.open(store.path)) == verdict


@pytest.mark.parametrize(
    ("world", "bug", "why"), [(Evicting, "drop:50", EVICTED), (Cut, "double:1", CUT)], ids=["evicted", "cut"]
)
def test_counts_that_the_server_explains_are_nobodys_fault(tmp_path, world, bug, why):
    verdict, store, _ = fake_run(tmp_path, world, fault="none", conf={"misbehave": bug})

    assert verdict.outcome is Outcome.UNKNOWN, verdict.sentence
    assert verdict.sentence.startswith(f"unserved: {why}, which may be the cause: ")
    assert judge(StoredRun.open(store.path)) == verdict


def test_evictions_do_not_explain_what_was_counted_twice(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Evicting, fault="none", conf={"misbehave": "double:1"})
    assert verdict.outcome is Outcome.FAIL, verdict.sentence


def test_evictions_take_nothing_from_counts_that_are_right(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Evicting, fault="none")
    assert verdict.outcome is Outcome.PASS, verdict.sentence


def test_a_load_that_was_throttled_is_not_the_one_that_was_planned(tmp_path):
    verdict, store, _ = fake_run(tmp_path, Throttling, fault="none")

    assert verdict.outcome is Outcome.UNKNOWN, verdict.sentence
    assert verdict.sentence.startswith(f"unserved: {THROTTLED}")
    assert judge(StoredRun.open(store.path)) == verdict


def test_a_load_that_was_throttled_explains_no_wrong_count(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Throttling, fault="none", conf={"misbehave": "double:1"})
    assert verdict.outcome is Outcome.FAIL, verdict.sentence


def test_what_stays_in_a_server_of_others_is_in_the_verdict(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Leaving, fault="none")
    assert verdict.outcome is Outcome.PASS
    (engine,) = (check for check in verdict.checks if check.name == "engine")
    assert STAYS in engine.sentence
