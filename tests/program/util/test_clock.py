"""A clock that steps in the middle of a run, a machine that sleeps, a harness that is stopped: nothing is fooled."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import psutil
import pytest

from generators import fleet
from generators.fleet import Fleet, LoadConfig
from harness.config import plan
from harness.engines import fake
from harness.engines.fake_memory import FakeClock
from harness.experiments.folder import BEGUN, FINISHED
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.load.fleet import Load
from harness.measuring import measure, recovery
from harness.measuring.measurement import Lack
from harness.metering import clock_steps
from harness.metering.clock_steps import AWAY_MS, KIND, POLL_EVERY_S, STEP_MS, ClockWatch, Noticing, Oddity
from harness.model import Outcome
from harness.results.sampler import PlainObserver, Polled
from harness.rundir.store import Store
from harness.runner.run import run
from harness.runner.screen import NullScreen
from harness.runner.world.fake import FakeWorld
from harness.selftest.runs import SMALL, fake_run
from harness.util.clock import Clock, Reading
from harness.util.wait import wait_until
from reports import listing, run_page, screen
from reports import result as results
from reports.exports import junit, machine, markdown
from workloads.registry import results_of

POLL_MS = round(POLL_EVERY_S * 1000)
IN_THE_LOAD_MS = 9000  # after the beginning of a small fake run
HOUR_MS = 3_600_000


class Hands:
    """Three clocks, each moved by hand."""

    def __init__(self) -> None:
        self.wall_ns, self.monotonic_ns, self.boot_ns = 1_750_000_000 * 10**9, 5 * 10**9, 5 * 10**9

    def clock(self) -> Clock:
        return Clock(wall_ns=lambda: self.wall_ns, monotonic_ns=lambda: self.monotonic_ns, boot_ns=lambda: self.boot_ns)

    def pass_s(self, seconds: int) -> None:
        self.wall_ns += seconds * 10**9
        self.monotonic_ns += seconds * 10**9
        self.boot_ns += seconds * 10**9


@pytest.mark.parametrize("step_s", [-3, 3, -86_400])
def test_the_clock_of_a_run_does_not_step(step_s):
    hands = Hands()
    clock = hands.clock()
    begun_ms = clock.now_ms()

    hands.pass_s(10)
    hands.wall_ns += step_s * 10**9
    hands.pass_s(10)

    assert (begun_ms, clock.now_ms()) == (1_750_000_000_000, 1_750_000_020_000)
    assert clock.read() == Reading(1_750_000_020_000, step_s * 1000, 0)


def test_a_clock_that_is_handed_on_as_a_number_is_the_same_one():
    hands = Hands()
    hands.pass_s(7)
    clock = hands.clock()
    hands.wall_ns -= 60 * 10**9

    other = Clock(clock.zero_ns, wall_ns=lambda: hands.wall_ns, monotonic_ns=lambda: hands.monotonic_ns)

    assert other.now_us() == clock.now_us()


def test_a_process_that_loses_its_cpu_between_two_clocks_sees_no_step():
    """The monotonic clock is read before and after the other one; once a second passes there."""
    moments_ns = itertools.chain([0, 10**9, 10**9, 10**9], itertools.repeat(10**9))

    clock = Clock(wall_ns=lambda: 5 * 10**9, monotonic_ns=lambda: next(moments_ns))

    assert clock.zero_ns == 4 * 10**9


class Unsent:
    """A producer that is never asked."""


def test_the_fleet_goes_by_the_clock_that_it_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet, "make_producer", lambda *_: Unsent())
    spec, _ = plan.resolve("test", SMALL, {}, lambda *_: fake.MANIFEST)
    servers = Fleet(LoadConfig(spec.tape, "confluent", "nowhere", "topic", {}, str(tmp_path)))
    an_hour_ahead = Clock(Clock().zero_ns + HOUR_MS * 10**6)
    load = Load(spec, "topic", tmp_path, tmp_path)
    (tmp_path / "load").mkdir()
    servers.folder = tmp_path / "load"

    assert not servers.started()
    load.go(an_hour_ahead.now_ms(), an_hour_ahead)

    assert servers.started()
    assert 0 <= servers.now_us() < HOUR_MS * 1000 / 2


def test_the_observer_goes_by_the_clock_that_it_is_given():
    spec, _ = plan.resolve("test", SMALL, {}, lambda *_: fake.MANIFEST)
    hands = Hands()
    names = results_of(spec.tape).keys
    looked = [[b"1750000000000", b"1"], *([] for _ in names[1:])]
    observer = PlainObserver(lambda _: [Polled(looked, set())], lambda: None, names, spec.tape, hands.clock())
    observer.start()
    sampled = observer.stop()

    assert set(sampled.columns["at_us"].tolist()) == {1_750_000_000_000_000}


def noticed(*readings: Reading) -> list[tuple[str, int, int]]:
    noticing = Noticing(Reading(0, 0, 0))
    return [(odd.what, odd.by_ms, odd.ahead_ms) for each in readings for odd in noticing.check(each)]


def test_a_step_is_noticed_once():
    assert noticed(Reading(250, -3000, 0), Reading(500, -3000, 0)) == [("step", -3000, -3000)]
    assert noticed(Reading(250, 3000, 0), Reading(500, -1000, 0)) == [("step", 3000, 3000), ("step", -4000, -1000)]


def test_what_is_less_than_a_step_is_none_until_it_adds_up():
    assert noticed(*(Reading(250 * n, n % 2 * (STEP_MS - 1), 0) for n in range(9))) == []
    assert noticed(*(Reading(250 * n, 20 * n, 0) for n in range(4))) == [("step", 60, 60)]


def test_a_machine_that_slept_did_not_step_although_its_clock_went_on():
    assert noticed(Reading(250, 60_000, 60_000)) == [("sleep", 60_000, 60_000)]
    assert noticed(Reading(250, 58_000, 60_000)) == [("sleep", 60_000, 58_000), ("step", -2000, 58_000)]


def test_a_harness_that_did_not_run_was_away():
    assert noticed(Reading(POLL_MS + AWAY_MS - 1, 0, 0)) == []
    assert noticed(Reading(POLL_MS + AWAY_MS, 0, 0)) == [("away", AWAY_MS, 0)]


def test_what_the_watch_notices_is_in_the_history_at_once(tmp_path):
    hands = Hands()
    store = replace(Store.create(tmp_path, "run"), clock=hands.clock())
    watch = ClockWatch(store)
    watch.start()
    hands.wall_ns -= 3 * 10**9
    wait_until(lambda: list(store.history("clock")), deadline_s=10, what="the step in the history")
    watch.stop()

    assert store.values("clock", "oddity", Oddity) == [Oddity("step", 1_750_000_000_000, -3000, -3000)]
    assert clock_steps.ahead_ms(store) == (-3000, 0)


def test_two_threads_that_tell_at_once_tear_no_line(tmp_path):
    store, long = Store.create(tmp_path, "run"), "x" * 100_000

    def tell(kind: str) -> None:
        for _ in range(50):
            store.tell(kind, text=long)

    tellers = [threading.Thread(target=tell, args=(kind,)) for kind in ("one", "other")]
    for each in tellers:
        each.start()
    for each in tellers:
        each.join()

    assert len([*store.history("one", "other")]) == 100


def test_a_watch_that_was_never_started_can_be_stopped(tmp_path):
    store = Store.create(tmp_path, "run")
    watch = ClockWatch(store)

    watch.stop()

    assert watch._thread.ident is None
    assert [*store.history(KIND)] == []


def stepped(folder, by_ms: int, **changes):
    clock = FakeClock(steps=((IN_THE_LOAD_MS, by_ms),))
    verdict, store = fake_run(folder, clock=clock, **changes)
    store.write_json("verdict.json", verdict)
    return verdict, store


@pytest.mark.parametrize("by_ms", [-3000, 3000, -60_000, -HOUR_MS, HOUR_MS])
def test_a_right_run_stays_right_when_the_clock_steps_and_gives_no_speed(tmp_path, by_ms):
    verdict, store = stepped(tmp_path, by_ms)
    measured = measure.save(StoredRun(store), verdict)
    result = results.read(store.path)

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert measured is None
    way = "ahead" if by_ms > 0 else "back"
    assert result.withheld.startswith(f"the machine's clock was set {way} by {abs(by_ms) / 1000:,.1f} s, noticed ")
    assert result.withheld.endswith(" s after the load began")
    assert judge(StoredRun.open(store.path)) == verdict


@pytest.mark.parametrize("by_ms", [-HOUR_MS, HOUR_MS])
def test_a_step_before_the_first_progress_is_no_other_unit_of_time(tmp_path, by_ms):
    """A fresh virtual machine sets its clock while the engine starts."""
    verdict, _ = fake_run(tmp_path, clock=FakeClock(steps=((500, by_ms),)))

    assert verdict.outcome is Outcome.PASS, verdict.sentence


@pytest.mark.parametrize("by_ms", [-60_000, 60_000])
def test_a_wrong_run_stays_wrong_when_the_clock_steps(tmp_path, by_ms):
    verdict, _ = stepped(tmp_path, by_ms, conf={"misbehave": "drop:100"})

    assert verdict.outcome is Outcome.FAIL
    assert verdict.words == ("lost",)


def test_every_report_says_that_the_clock_stepped(tmp_path):
    verdict, store = stepped(tmp_path, -3000)
    measure.save(StoredRun(store), verdict)
    result = results.read(store.path)
    words = "the machine's clock was set back by 3.0 s, noticed"

    assert "  speed    withheld: the machine's clock was set back by 3.0 s" in "\n".join(screen.lines(result))
    assert f"The clocks: {words}" in markdown.as_text(result)
    assert machine.as_object("run", result)["clock"].startswith(words)
    properties = ElementTree.fromstring(junit.as_xml(result)).iter("property")
    assert {each.get("name"): each.get("value", "") for each in properties}["clock"].startswith(words)
    run_page.write(store)
    page = (store.path / "report.html").read_text()
    assert page.count("clock was set back by 3.0 s") >= 2
    assert "The counts are judged anyway" in page


def test_the_screen_of_a_wrong_run_says_it_too(tmp_path):
    verdict, store = stepped(tmp_path, -3000, conf={"misbehave": "drop:100"})
    measure.save(StoredRun(store), verdict)

    assert "  clock    the machine's clock was set back by 3.0 s" in "\n".join(screen.lines(results.read(store.path)))


def test_what_was_taken_from_the_machine_stands_beside_the_speed(tmp_path):
    verdict, store = fake_run(tmp_path)
    words = "the quota of 1.5 cores ran out in 30% of its periods"
    store.tell("taken", words=words)
    store.write_json("verdict.json", verdict)
    assert measure.save(StoredRun(store), verdict) is not None
    result = results.read(store.path)
    properties = ElementTree.fromstring(junit.as_xml(result)).iter("property")
    run_page.write(store)

    assert verdict.outcome is Outcome.PASS
    assert f"  machine  {words}" in screen.lines(result)
    assert f"The machine: {words}." in markdown.as_text(result)
    assert machine.as_object("run", result)["taken"] == words
    assert {each.get("name"): each.get("value") for each in properties}["taken"] == words
    assert f"The machine: {words}." in (store.path / "report.html").read_text()


def test_a_run_of_an_older_version_is_judged_as_before(tmp_path):
    """It has no lines about clocks."""
    verdict, store = fake_run(tmp_path)
    measure.save(StoredRun(store), replace(verdict))
    store.write_json("verdict.json", verdict)

    assert list(store.history("clock")) == []
    assert clock_steps.ahead_ms(store) == (0, 0)
    result = results.read(store.path)
    assert (result.clock, result.taken) == ("", "")


def test_no_time_of_a_recovery_is_told_when_the_clock_stepped(tmp_path):
    verdict, store = stepped(tmp_path, -3000, fault="kill@c3:batch=3")
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    (recovered,) = recovery.of_run(StoredRun(store), "")

    assert recovered.quantities
    assert {each.lack for each in recovered.quantities.values()} == {Lack.WITHHELD}


def test_the_same_recovery_is_told_when_it_did_not(tmp_path):
    _, store = fake_run(tmp_path, fault="kill@c3:batch=3")
    (recovered,) = recovery.of_run(StoredRun(store), "")

    assert any(each.value is not None for each in recovered.quantities.values())


class Stopped(FakeWorld):
    """The harness is stopped for longer than any deadline, as by Ctrl-Z. Fleet and engine go on."""

    when: Callable[[FakeWorld], bool]
    so_far = 0  # beats at which it was that moment already
    was_stopped = False

    def pause(self, seconds: float) -> None:
        super().pause(seconds)
        self.so_far += self.when(self)
        if not self.was_stopped and self.so_far == LATER:
            self.was_stopped = True
            super().pause(max(fake.MANIFEST.ready_s, fake.MANIFEST.drain_s) + 10)


LATER = 10  # beats: in the middle of what the harness waits for then


def is_started(world: FakeWorld) -> bool:
    return world.engine.starts > 0


def is_loaded(world: FakeWorld) -> bool:
    return world.status().finished


def is_done(world: FakeWorld) -> bool:
    """By its own word, and the results are about to have stood still for long enough."""
    progress = world.engine.progress()
    return is_loaded(world) and progress is not None and progress.offsets == world.ends()


@pytest.mark.parametrize(
    ("when", "tells"),
    [(is_started, True), (is_loaded, True), (is_done, True), (is_loaded, False)],
    ids=["started", "loaded", "done", "loaded, no progress"],
)
def test_a_deadline_that_passed_while_the_harness_was_stopped_is_none(when, tells, tmp_path):
    spec, manifest = plan.resolve("test", SMALL, {}, lambda *_: replace(fake.MANIFEST, progress=tells))
    store = Store.create(tmp_path, "fake")
    world = Stopped(spec, store, manifest)
    world.when = when
    verdict = run(spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=NullScreen())

    assert world.was_stopped
    assert verdict.outcome is Outcome.PASS, verdict.sentence


def test_that_the_harness_was_away_matters_only_while_it_looks_on(tmp_path):
    store = Store.create(tmp_path, "run")
    for at_ms in (1000, 20_000, 200_000):
        clock_steps.tell(store, Oddity("away", at_ms, 5000, 0))
    store.tell("epoch", at_ms=9000, epoch_ms=10_000)
    store.tell("engine", at_ms=100_000)

    assert clock_steps.in_words(store) == "the harness did not run for 5.0 s, noticed 10.0 s after the load began"


def test_a_clock_that_steps_again_and_again_is_told_in_a_few_words(tmp_path):
    store = Store.create(tmp_path, "run")
    for number in range(1, 101):
        clock_steps.tell(store, Oddity("step", number, 100, 100 * number))

    assert clock_steps.in_words(store).endswith("0.1 s before the load; and 97 more like it")
    assert clock_steps.ahead_ms(store) == (0, 10_000)


def test_a_step_before_the_load_is_told_as_such(tmp_path):
    store = Store.create(tmp_path, "run")
    clock_steps.tell(store, Oddity("step", 1000, 120_000, 120_000))
    store.tell("epoch", at_ms=9000, epoch_ms=10_000)

    assert clock_steps.in_words(store) == "the machine's clock was set ahead by 120.0 s before the load"


def test_a_run_lives_as_long_as_its_process_whatever_the_clock_says(tmp_path, monkeypatch):
    """What psutil tells of a start moves with the machine's clock."""
    store = Store.create(tmp_path, "run")
    began_s = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: began_s - 3600)

    assert store.alive()


def test_an_experiment_that_ended_after_the_clock_was_set_back_has_ended(tmp_path):
    store = Store(tmp_path)
    store.tell(BEGUN, at_ms=HOUR_MS, owner="nobody")
    store.tell(FINISHED, at_ms=0, outcome="PASS", sentence="all right")
    last = listing._last(store, BEGUN, FINISHED)

    assert last is not None
    assert last["kind"] == FINISHED
