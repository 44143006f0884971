"""Kafka or Redis is gone in mid-run, and no planned fault did it: whole runs in the fake world, each with a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.engines import fake
from harness.judging.facts import facts_of
from harness.judging.judge import judge
from harness.judging.stored_run import LOG, OBSERVED, StoredRun
from harness.model import Exit, HarnessError, Outcome
from harness.results.redis_scan import UnreadableError
from harness.rundir.store import Store
from harness.runner.world.base import ServiceGone
from harness.runner.world.fake import FakeWorld
from reports import result as results
from reports import run_page
from reports.sections import cells
from tests.program.runner.test_run import Silent, fake_run

REDIS, KAFKA = "Redis at nowhere has ended, with exit code 0", "Kafka at nowhere has no topic of this run"


class Gone(FakeWorld):
    """A world whose service goes at a moment of the run; it may be back when all is read."""

    service, when, is_back_to_be_read = REDIS, "load", False
    _marks = 0
    _is_read = False

    def gone(self):
        return self.service if self._has_come() else ""

    def stop_observing(self):
        self._is_read = True
        return super().stop_observing()

    def send(self, marks):
        self._ask(KAFKA)
        super().send(marks)
        self._marks += 1

    def rows(self):
        self._ask(REDIS)
        return super().rows()

    def snapshot(self):
        self._ask(REDIS)
        return super().snapshot()

    def ends(self):
        self._ask(KAFKA)
        return super().ends()

    def read(self):
        self._ask(KAFKA)
        return super().read()

    def _ask(self, service):
        if service == self.service and self._has_come():
            raise ServiceGone(service)

    def _has_come(self):
        if self._is_read:
            return not self.is_back_to_be_read
        moments = {"opening": self._marks > 0, "load": self._sent > 500, "drain": self.status().finished}
        return moments.get(self.when, False)


def without(service, when):
    return type("GoneHere", (Gone,), {"service": service, "when": when})


def named(verdict, name):
    return next(check for check in verdict.checks if check.name == name)


@pytest.mark.parametrize("manifest", [fake.MANIFEST, fake.SILENT], ids=["progress", "silent"])
@pytest.mark.parametrize("service", [REDIS, KAFKA], ids=["redis", "kafka"])
@pytest.mark.parametrize("when", ["opening", "load", "drain", "read"])
def test_a_service_that_goes_in_mid_run_makes_it_unknown_and_nothing_lost(tmp_path, service, when, manifest):
    verdict, store, _ = fake_run(tmp_path, without(service, when), manifest=manifest, fault="none")

    assert verdict.outcome is Outcome.UNKNOWN, verdict.sentence
    assert verdict.words[0] == "unread"
    assert service in verdict.sentence
    assert not {"lost", "duplicated", "phantom", "early", "late-dropped"} & {*verdict.words}, verdict.words
    assert store.has(OBSERVED) is (service == KAFKA)
    assert store.has(LOG) is (service == REDIS)
    assert {entry["why"] for entry in store.history("unread")} == {service}
    state = store.last_value("engine", "report", dict)["state"]
    assert state == ("drained" if when == "read" else "unserved")
    assert judge(StoredRun.open(store.path)) == verdict


@pytest.mark.parametrize("service", [REDIS, KAFKA], ids=["redis", "kafka"])
def test_the_page_and_the_other_reports_are_made_of_such_a_run(tmp_path, service):
    from harness.drivers import one_run

    verdict, store, _ = fake_run(tmp_path, without(service, "load"), fault="none")

    result = one_run.report(StoredRun(store), verdict, Silent())
    one_run.write_page(store, Silent())
    page = (store.path / "report.html").read_text()
    assert service in page
    assert "all of them right" not in page
    assert service in (store.path / "junit.xml").read_text()
    assert result.verdict.outcome is Outcome.UNKNOWN
    assert results.read(store.path).measurement is None
    marks = cells.grid_of(facts_of(StoredRun.open(store.path))).marks
    assert marks == (), "no cell is drawn as wrong that nobody could read"
    run_page.write(Store.open(store.path))


@pytest.mark.parametrize(
    ("service", "bug", "word"),
    [
        (REDIS, "garble:50", "unreadable"),
        (KAFKA, "garble:50", "unreadable"),
        (KAFKA, "double:1", "duplicated"),
        (KAFKA, "stranger:50", "phantom"),
    ],
)
def test_what_was_seen_to_be_wrong_stays_wrong(tmp_path, service, bug, word):
    verdict, store, _ = fake_run(tmp_path, without(service, "drain"), fault="none", conf={"misbehave": bug})

    assert verdict.outcome is Outcome.FAIL, verdict.sentence
    assert verdict.sentence.startswith(f"{word}: ")
    assert judge(StoredRun.open(store.path)) == verdict


class WithoutBooks(Gone):
    """The fleet was killed while it waited for Kafka, before it wrote what it had sent."""

    service, when = KAFKA, "drain"

    def certify(self):
        self._sends = []
        return super().certify()


def test_counts_are_not_too_many_where_nobody_knows_what_was_sent(tmp_path):
    verdict, _, _ = fake_run(tmp_path, WithoutBooks, fault="none")

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("unread", "unserved")), verdict.sentence


@pytest.mark.parametrize("bug", ["drop:10", "honest"])
@pytest.mark.parametrize("service", [REDIS, KAFKA], ids=["redis", "kafka"])
def test_what_nobody_could_read_is_neither_lost_nor_right(tmp_path, service, bug):
    conf = {} if bug == "honest" else {"misbehave": bug}
    verdict, _, _ = fake_run(tmp_path, without(service, "read"), fault="none", conf=conf)

    assert verdict.outcome is Outcome.UNKNOWN, verdict.sentence
    assert named(verdict, "lost").outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("bug", ["die", "stall"])
@pytest.mark.parametrize("service", [REDIS, KAFKA], ids=["redis", "kafka"])
def test_an_engine_that_ends_or_stops_without_its_services_is_not_blamed(tmp_path, service, bug):
    verdict, _, _ = fake_run(tmp_path, without(service, "opening"), fault="none", conf={"misbehave": bug})

    assert verdict.outcome is Outcome.UNKNOWN, verdict.sentence
    assert named(verdict, "engine").word == "unserved"


@pytest.mark.parametrize("service", [REDIS, KAFKA], ids=["redis", "kafka"])
@pytest.mark.parametrize("when", ["opening", "load", "drain"])
def test_a_service_that_the_kernel_killed_is_told_as_a_want_of_memory(tmp_path, service, when):
    def memory(world):
        return replace(FakeWorld.memory(world), killed=int(world._has_come()))

    killed = type("Killed", (Gone,), {"service": service, "when": when, "memory": memory})
    verdict, _, _ = fake_run(tmp_path, killed, fault="none")

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.words[-1] == "no-memory"
    assert verdict.sentence.startswith("no-memory: the machine ran out of memory: the kernel killed 1 process")
    assert service in verdict.sentence


class BackAgain(Gone):
    when, is_back_to_be_read = "drain", True


def test_a_service_that_is_back_when_all_is_read_leaves_nothing_unread(tmp_path):
    verdict, store, _ = fake_run(tmp_path, BackAgain, fault="none")

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.sentence.startswith(f"unserved: {REDIS}")
    assert "no planned fault was active" in verdict.sentence
    assert store.has(OBSERVED)
    assert store.has(LOG)


class Striking(Gone):
    """A fault that asks the service which is gone already."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._poll_of_fault = self.fault.poll
        self.fault.poll = self._poll_fault  # type: ignore[method-assign]

    def _poll_fault(self, now):
        if self._has_come():
            raise OSError("connection refused")
        self._poll_of_fault(now)


def test_a_fault_that_finds_the_service_gone_is_no_break_of_the_harness(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Striking, fault="kill@t>=14s")

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.sentence.startswith("unserved: Redis at nowhere")


class Broken(FakeWorld):
    """Every service is there, and the harness breaks."""

    def ends(self):
        raise HarnessError("a bug")


def test_what_no_service_explains_is_still_an_error(tmp_path):
    with pytest.raises(HarnessError, match="a bug"):
        fake_run(tmp_path, Broken, fault="none")

    assert ServiceGone.__mro__[1] is HarnessError, f"not caught it ends with exit code {Exit.BROKEN:d} and its sentence"


class Unprinted(FakeWorld):
    """What prints the results fails from the end of the drain on."""

    def rows(self):
        if self.fault.over() and self._recorder is None and self._epoch_ms is not None:
            raise UnreadableError("`read.py` was to print the results and ended with exit code 1: it said nothing")
        return super().rows()


def test_results_of_a_drained_engine_that_nobody_can_print_are_unread(tmp_path):
    verdict, store, _ = fake_run(tmp_path, Unprinted, fault="none")

    assert verdict.outcome is Outcome.UNKNOWN, verdict.sentence
    assert verdict.sentence.startswith("unread: the results could not be read: `read.py` was to print the results")
    assert not store.has(OBSERVED)


def test_a_file_that_was_put_there_afterwards_is_no_answer(tmp_path):
    verdict, store, _ = fake_run(tmp_path, without(REDIS, "load"), fault="none")
    store.write_table(OBSERVED, {name: [] for name in ("key", "field", "value", "kind")})

    again = judge(StoredRun.open(store.path))
    assert (again.outcome, again.words) == (Outcome.UNKNOWN, ("edited",))
    (store.path / "digests.json").unlink()
    assert judge(StoredRun.open(store.path)).outcome is Outcome.UNKNOWN
    assert verdict.outcome is Outcome.UNKNOWN
