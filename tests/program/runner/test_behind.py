"""An engine that starts behind: a backlog waits in Kafka, and all of it is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from generators.fleet import Fleet, LoadConfig
from generators.harness_files import GO
from harness.cli import app
from harness.config import plan
from harness.engines import fake
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.measuring import measure
from harness.measuring.measurement import Quantity, Reconfiguration
from harness.model import INDEX_BITS, Outcome, UsageError
from harness.rundir.store import Store
from harness.runner.run import run
from harness.runner.run_kinds import Behind, stages
from harness.runner.screen import NullScreen
from harness.runner.world.fake import FakeWorld
from harness.util.texts import clock
from reports.evidence import Evidence
from reports.sections import backlog

SMALL = {
    "engine": "fake",
    "rate": 200,
    "duration": "30s",
    "window": "5s",
    "campaigns": 5,
    "probes": 10,
    "servers": 2,
    "disorder": "mobile",
    "fault": "none",
    "backlog": "1m",
}


def behind(folder, manifest=fake.MANIFEST, screen=None, **changes):
    spec, manifest = plan.resolve("test", SMALL | changes, {}, lambda *_: manifest)
    store = Store.create(folder, "test-fake")
    world = FakeWorld(spec, store, manifest)
    screen = screen or NullScreen()
    verdict = run(
        spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=screen, made_by=stages(spec)
    )
    return verdict, store


def test_all_of_a_backlog_waits_when_the_engine_starts_and_counts(tmp_path):
    verdict, store = behind(tmp_path)
    (told,), (epoch,) = store.history("backlog"), store.history("epoch")
    (ready,) = store.history("ready")
    planned = store.read_json("plan.json")

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert verdict.slack == 0
    assert told["at_ms"] >= epoch["epoch_ms"]
    assert planned["warm_up"]["total"] <= told["waiting"] < planned["warm_up"]["total"] + 100
    assert ready["after_ms"] > 0
    assert judge(StoredRun.open(store.path)) == verdict


class Kept:
    """A screen that nobody looks at; it keeps the phases, and the counts in each."""

    def __init__(self):
        self.phases, self.sent = [], {}

    def phase(self, name, waits_for=""):
        self.phases.append((name, waits_for))

    def update(self, facts):
        self.sent.setdefault(self.phases[-1], []).append((facts["sent"], facts["planned"]))


def test_the_screen_shows_how_far_a_backlog_is_sent(tmp_path):
    screen = Kept()
    _, store = behind(tmp_path, screen=screen)
    total = store.read_json("plan.json")["warm_up"]["total"]
    (sending,) = (each for each in screen.phases if each[0] == "backlog")

    assert f"{total:,} events of 60 s in Kafka" in sending[1]
    assert {planned for _, planned in screen.sent[sending]} == {total}
    assert screen.sent[sending] == sorted(screen.sent[sending])
    assert len({sent for sent, _ in screen.sent[sending]}) > 1


@pytest.mark.parametrize("left_ms", [1_000, 700_000])
def test_a_backlog_that_is_sent_early_shows_when_the_load_starts(left_ms):
    ticks, screen, epoch_ms = count(1_700_000_000_000, 250), Kept(), 1_700_000_000_000 + left_ms
    waiting: Any = object.__new__(Behind)
    waiting.screen, waiting.epoch_ms = screen, epoch_ms
    waiting.clock = SimpleNamespace(now_ms=lambda: next(ticks), pause=lambda _: None)
    waiting.fleet = SimpleNamespace(status=lambda: SimpleNamespace(sent=12_000))
    waiting.schedule = SimpleNamespace(total=18_000, warm_up_total=12_000)
    waiting.abort_causes = SimpleNamespace(watch_room=lambda _: None)
    screen.phase("backlog", "sent")

    waiting._await_load_start("all of it is in Kafka")

    shown = f"{clock(epoch_ms)}, when the load starts; all of it is in Kafka"
    assert screen.phases[1:] == ([("backlog", shown)] if left_ms > 2_000 else [])
    assert {*screen.sent[screen.phases[-1]]} == {(12_000, 12_000)}


def test_it_lies_unevenly_over_the_partitions(tmp_path):
    _, store = behind(tmp_path)
    log, schedule = store.read_table("log.parquet"), StoredRun.open(store.path).schedule
    server = log.column("event_id").to_numpy() >> INDEX_BITS
    of_backlog = (server >= schedule.spec.senders) & (server < 2 * schedule.spec.senders)
    counts = np.bincount(log.column("partition").to_numpy()[of_backlog], minlength=4)

    assert counts.sum() == schedule.warm_up_total
    assert counts[0] < 0.7 * counts[1:].mean()


@pytest.mark.parametrize(("bug", "word"), [("drop:1600", "lost"), ("double:1600", "duplicated")])
def test_one_event_too_few_or_too_many_is_found(tmp_path, bug, word):
    verdict, _ = behind(tmp_path, conf={"misbehave": bug})

    assert verdict.outcome is Outcome.FAIL
    assert word in verdict.words


def test_speed_is_of_the_load_and_its_certificate_too(tmp_path):
    verdict, store = behind(tmp_path)
    run = StoredRun.open(store.path)

    assert run.certificate.valid, run.certificate.reasons
    measured = measure.save(run, verdict)
    assert measured
    assert measured.events == run.schedule.load.total
    assert measured.catch_up
    assert measured.catch_up.waiting == next(store.history("backlog"))["waiting"]
    assert 60 <= measured.catch_up.oldest_s <= 61
    assert measured.catch_up.caught_up.value, measured.catch_up.caught_up.note
    assert measured.catch_up.per_s
    assert measured.catch_up.per_s > 200


def test_a_kill_while_it_catches_up_loses_nothing(tmp_path):
    verdict, _ = behind(tmp_path, fault="kill@c3:batch=2")

    assert verdict.outcome is Outcome.PASS, verdict.sentence


def test_a_warm_up_beside_it_is_refused():
    with pytest.raises(UsageError, match="Leave one of them out"):
        plan.resolve("test", SMALL | {"warm_up": "10s"}, {}, lambda *_: fake.MANIFEST)


def test_a_fleet_sends_a_backlog_whole_and_in_the_order_in_which_it_was_due(tmp_path):
    """What one server sends long after the others would be late by the fleet's doing."""
    spec, _ = plan.resolve("test", SMALL, {}, lambda *_: fake.MANIFEST)
    fleet = Fleet(LoadConfig(spec.tape, "confluent", "nowhere", "topic", {}, str(tmp_path)))
    (tmp_path / GO).write_text(json.dumps({"epoch_ms": 1_750_000_000_000, "zero_ns": 0}))
    assert fleet.started()
    backlog = list(fleet.backlog())
    due_us = [part.due_us for part in backlog]
    loads = [part for server in range(spec.tape.senders) for part in fleet.slices(server) if part]

    assert due_us == sorted(due_us)
    assert due_us[-1] <= 0
    assert sum(part.hi - part.lo for part in backlog) == fleet.schedule.warm_up_total
    assert sum(part.hi - part.lo for part in loads) == fleet.schedule.load.total
    assert fleet.owes_backlog


def test_the_screen_and_the_page_say_when_it_had_caught_up(tmp_path):
    dials = ["--rate", "300", "--backlog", "30s", "--duration", "36s", "--campaigns", "10", "--out", str(tmp_path)]
    answer = CliRunner().invoke(app.app, ["run", "catchup", "--engine", "fake", *dials], catch_exceptions=False)
    (page,) = tmp_path.glob("*/report.html")
    told = " ".join(answer.stdout.split())

    assert answer.exit_code == 0, answer.stdout
    assert "of 30 s waited, caught up: " in told
    assert "fresh again: " in told
    assert "30 s of backlog among them" in told
    assert "--backlog 30s" in page.read_text()
    assert "caught up</td>" in page.read_text()


def test_the_page_has_a_table_of_what_a_change_was_worth(tmp_path):
    verdict, store = behind(tmp_path)
    measured = measure.save(StoredRun.open(store.path), verdict)
    assert measured
    assert measured.catch_up
    figures = (Quantity(4.0), Quantity(300.0), Quantity(900.0), Quantity(8.0), Quantity(95.0))
    change = Reconfiguration("change-slots(to=2)@batch>=3", 5.0, 9000.0, *figures)
    changed = replace(measured.catch_up, new_orders=(change,))
    store.write_json("measurement.json", replace(measured, catch_up=changed))

    found = backlog.section(Evidence(store))

    assert found
    assert found.picture
    _, told = found.tables
    assert ("paid", "8.0 s", "after the change; more was done from then on") in told.rows


@pytest.mark.parametrize(
    ("bug", "words"),
    [("die", "crashed: "), ("mute", "stuck: no answer within 90 s"), ("latest", "lost: ")],
)
def test_one_that_does_not_come_back_is_told_by_what_it_did(tmp_path, bug, words):
    """It has the time of the backlog, a minute, beside what it claims to need."""
    verdict, _ = behind(tmp_path, conf={"misbehave": bug}, late_dropped_max="any")

    assert verdict.outcome is Outcome.FAIL
    assert verdict.sentence.startswith(words)


def test_an_engine_without_progress_is_judged_by_its_results(tmp_path):
    verdict, store = behind(tmp_path, manifest=replace(fake.MANIFEST, progress=False, evidence="none"), sink="fenced")

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert not verdict.slack
    measured = measure.save(StoredRun.open(store.path), verdict)
    assert measured
    assert measured.catch_up
    assert measured.catch_up.caught_up.value, "by what readers saw"
