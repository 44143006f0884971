"""The matrix of the manifest: a right job is PASS whatever combination of fields it needs.

Sources that look alike to a run are one value here: a command can't be looked at while a run goes on, a hash can.
tests/services/test_results.py reads the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.config import plan
from harness.engines import fake, late
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import EngineManifest, Outcome, Progress, UsageError, Verdict
from harness.rundir.store import Store
from harness.runner.run import Run, run
from harness.runner.screen import NullScreen
from harness.runner.world.fake import FakeWorld
from harness.selftest import cheat
from harness.selftest.runs import SMALL, fake_run
from tests.program.covering import covering, meetings

FIELDS: Mapping[str, tuple[Any, ...]] = {
    "final": (True, False),
    "late": ("drop", "keep"),
    "progress": ("file", "group", "none"),
    "results": ("redis:compact", "command"),
    "evidence": ("none", "spark-checkpoint", "named"),
    "fault": ("none", "kill@t>=5s"),
    "disorder": ("none", "mobile", "late"),
}


def manifest_of(choice: Mapping[str, Any]) -> EngineManifest:
    claim = replace(fake.MANIFEST.sinks[0], late=choice["late"], final=choice["final"])
    has_group = choice["progress"] == "group" and choice["evidence"] != "spark-checkpoint"  # else it is refused
    return replace(
        fake.MANIFEST,
        sinks=(claim,),
        progress=choice["progress"] != "none",
        progress_group="counts" if has_group else "",
        results=choice["results"],
        read=("read",) if choice["results"] == "command" else (),
        evidence="spark-checkpoint" if choice["evidence"] == "spark-checkpoint" else "none",
    )


def judged(folder, choice: Mapping[str, Any], **more: Any) -> Verdict:
    dials = {"disorder": choice["disorder"], "fault": choice["fault"], "sink": "absolute", **more}
    verdict, store = fake_run(folder, manifest_of(choice), **dials)
    if choice["evidence"] != "named":
        return verdict
    _, known = fake_run(folder, manifest_of({**choice, "evidence": "spark-checkpoint"}), **dials)
    found = StoredRun(known).countable
    places = zip(found.events.partition[found.dropped], found.events.offset[found.dropped], strict=True)
    (store.path / late.FILE).write_text("".join(f"[{partition},{offset}]\n" for partition, offset in places))
    cheat.recompute_all(store)
    return judge(StoredRun(store))


MATRIX = covering(FIELDS)


def test_any_three_choices_meet():
    met = {meeting for choice in MATRIX for meeting in meetings(choice)}

    assert len(met) == sum(len(a) * len(b) * len(c) for a, b, c in combinations(FIELDS.values(), 3))
    assert len(MATRIX) < 40


@pytest.mark.parametrize("choice", MATRIX, ids=lambda choice: " ".join(map(str, choice.values())))
def test_a_right_job_passes(tmp_path, choice):
    verdict = judged(tmp_path, choice)

    assert verdict.outcome is Outcome.PASS, verdict.sentence


# A right job, and a manifest that says something else of it. docs/reference/job.md has it as a table, by field.

JOB = {"final": False, "late": "drop", "progress": "file", "results": "redis:compact", "evidence": "none"}
FINAL_JOB = {**JOB, "final": True}


class AnotherJob(FakeWorld):
    """What its engine does is said by another manifest than that of the run."""

    does: EngineManifest

    def _engine_of(self, manifest, *rest):
        engine = super()._engine_of(self.does, *rest)
        engine._checksum &= self.does.checksum
        return engine


def mistaken(folder, job: Mapping[str, Any], says: Mapping[str, Any], bug: str = "", **more: Any):
    """The verdict, and what the history says of the engine."""
    manifest = manifest_of({**job, **says})
    dials = {**SMALL, "sink": "absolute", "conf": {"misbehave": bug} if bug else {}, **more}
    spec, manifest = plan.resolve("test", dials, {}, lambda *_: manifest)
    store = Store.create(folder, "mistaken")
    world = type("Mistaken", (AnotherJob,), {"does": manifest_of(job)})(spec, store, manifest)
    verdict = run(spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=NullScreen())
    return verdict, world


def refused(folder, job: Mapping[str, Any], says: Mapping[str, Any], bug: str = "") -> str:
    with pytest.raises(UsageError) as error:
        mistaken(folder, job, says, bug)
    assert not list(Store.open(next(folder.iterdir())).history("epoch")), "it is refused before the load"
    return str(error.value)


@pytest.mark.parametrize("progress", ["file", "none"])
def test_final_results_that_the_manifest_forgets_are_found_before_the_load(tmp_path, progress):
    job = {**FINAL_JOB, "progress": progress}

    assert refused(tmp_path, job, {"final": False}).endswith("Add this line to its [[sinks]]: final = true")


def test_a_job_that_is_only_slow_to_start_counts_the_later_events_too(tmp_path, monkeypatch):
    monkeypatch.setattr(fake, "START_MS", 24_000)
    verdict, _ = mistaken(tmp_path, JOB, {})
    (store,) = map(Store.open, tmp_path.iterdir())

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert len(StoredRun(store).marks) == 3 * 4, "opening events, those that close their window, and closing events"


@pytest.mark.parametrize("final", [True, False])
def test_a_watermark_that_is_held_back_is_thought_of_where_nothing_is_answered(tmp_path, monkeypatch, final):
    monkeypatch.setattr(fake.FakeEngine, "_closed", lambda *_: [])
    verdict, _ = mistaken(tmp_path, FINAL_JOB, {"final": final})

    assert (verdict.outcome, verdict.words) == (Outcome.FAIL, ("stuck",))
    assert "its watermark is held back" in verdict.sentence


def beside_other_work(tmp_path, monkeypatch):
    monkeypatch.setattr(fake.FakeEngine, "_closed", lambda *_: [])
    monkeypatch.setattr(FakeWorld, "threads", lambda world: {(1, 1): (world.now_ms() * 10**5, world.now_ms() * 10**6)})
    return mistaken(tmp_path, FINAL_JOB, {})[0]


def test_a_job_that_has_read_all_of_the_log_is_stuck_beside_other_work_too(tmp_path, monkeypatch):
    verdict = beside_other_work(tmp_path, monkeypatch)

    assert (verdict.outcome, verdict.words) == (Outcome.FAIL, ("stuck",))
    assert "its watermark is held back" in verdict.sentence


def test_one_that_has_more_to_read_may_be_starved_or_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeWorld, "ends", lambda _: dict.fromkeys(range(4), 1_000_000))
    verdict = beside_other_work(tmp_path, monkeypatch)

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("starved",))
    assert "; or else " in verdict.sentence


@pytest.mark.parametrize(("is_back", "asked"), [(True, "ended"), (False, "unless_starved")])
def test_one_that_was_killed_and_is_not_back_may_be_starved_whatever_it_had_read_before(is_back, asked):
    """A right Spark job had no CPU to start again within 180 s, beside other tests, and was FAIL."""
    calls: list[str] = []
    causes = SimpleNamespace(
        ended=lambda *_: calls.append("ended"), unless_starved=lambda *_: calls.append("unless_starved")
    )
    run: Any = SimpleNamespace(
        poller=SimpleNamespace(unless_away=lambda *_: {0: 10}),
        log=SimpleNamespace(ends=None),
        fault=SimpleNamespace(settled=lambda: is_back),
        abort_causes=causes,
        engine=SimpleNamespace(progress=lambda: SimpleNamespace(offsets={0: 10})),
    )

    with suppress(AttributeError):  # the report is none
        Run._stuck(run, "no answer within 180 s", 0)

    assert calls == [asked]


def test_progress_that_is_promised_and_never_written_is_found_before_the_load(tmp_path):
    assert refused(tmp_path, JOB, {}, "untold").endswith("add this line above [[sinks]]: progress = false")


def test_a_group_that_commits_nothing_is_found_before_the_load(tmp_path):
    said = refused(tmp_path, JOB, {"progress": "group"}, "untold")

    assert "the consumer group counts committed no offsets of the run's topic" in said
    assert said.endswith("If it commits no offsets, write above [[sinks]]: progress = false")


@pytest.mark.parametrize("job", [JOB, FINAL_JOB])
def test_a_job_that_commits_as_seldom_as_kafka_streams_passes(tmp_path, monkeypatch, job):
    monkeypatch.setattr(fake, "CHECKPOINT_MS", 30_000)
    verdict = judged(tmp_path, {**job, "progress": "group", "fault": "kill@t>=5s", "disorder": "mobile"})

    assert verdict.outcome is Outcome.PASS, verdict.sentence


def test_progress_that_is_promised_may_be_that_of_a_group(tmp_path):
    assert 'write: progress = "group:NAME"' in refused(tmp_path, JOB, {}, "untold")


def test_no_batch_of_a_group_is_waited_for(tmp_path):
    verdict = judged(tmp_path, {**JOB, "progress": "group", "fault": "kill@batch=3", "disorder": "none"})

    assert verdict.outcome is Outcome.UNKNOWN
    assert "consumer group, and these do not show batch>=3" in verdict.sentence


def test_an_engine_whose_machine_does_not_let_it_run_is_not_taken_for_one_that_reports_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeWorld, "threads", lambda world: {(1, 1): (world.now_ms() * 10**5, world.now_ms() * 10**6)})

    assert mistaken(tmp_path, JOB, {}, "untold")[0].outcome is Outcome.PASS


def test_a_checkpoint_that_is_promised_and_not_there_is_found_before_the_load(tmp_path):
    assert 'evidence = "none"' in refused(tmp_path, JOB, {"evidence": "spark-checkpoint"}, "untold")


def test_progress_that_the_manifest_denies_is_found_before_the_load(tmp_path):
    assert refused(tmp_path, JOB, {"progress": "none"}).endswith("progress = false. Remove that line.")


@pytest.mark.parametrize("job", [JOB, FINAL_JOB, {**JOB, "late": "keep"}])
def test_progress_that_stays_behind_makes_no_right_result_wrong(tmp_path, job):
    verdict, _ = mistaken(tmp_path, job, {}, "told-to:9", disorder="mobile")
    (engine,) = (check for check in verdict.checks if check.name == "engine")

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert "add this line to its manifest: progress = false" in engine.sentence


@pytest.mark.parametrize(("bug", "word"), [("drop:100", "lost"), ("stall", "stuck"), ("double:100", "duplicated")])
def test_progress_that_stays_behind_excuses_nothing(tmp_path, monkeypatch, bug, word):
    told = fake.FakeEngine.progress

    def first(engine):
        engine.first = getattr(engine, "first", None) or told(engine)
        return engine.first

    monkeypatch.setattr(fake.FakeEngine, "progress", first)
    verdict, _ = mistaken(tmp_path, JOB, {}, bug)

    assert (verdict.outcome, verdict.words) == (Outcome.FAIL, (word,)), verdict.sentence


def test_progress_that_runs_ahead_of_the_results_makes_no_right_result_wrong(tmp_path, monkeypatch):
    """As that of a consumer whose client commits by a timer."""
    monkeypatch.setattr(fake.FakeEngine, "progress", ahead)
    verdict, _ = mistaken(tmp_path, JOB, {}, "flush:8")

    assert verdict.outcome is Outcome.PASS, verdict.sentence


def ahead(engine):
    ends = {p: len(records) for p, records in enumerate(engine._log)}
    return Progress(engine._clock.wall_ms, engine._committed, 0, ends) if engine._committed >= 0 else None


def test_a_manifest_that_says_final_of_a_job_that_counts_at_once_makes_no_right_result_wrong(tmp_path):
    verdict, _ = mistaken(tmp_path, JOB, {"final": True}, disorder="late")

    assert verdict.outcome is Outcome.PASS, verdict.sentence


@pytest.mark.parametrize(
    ("job", "late", "outcome", "words"),
    [
        ("keep", "drop", Outcome.PASS, "events counted right"),
        ("drop", "keep", Outcome.FAIL, 'its manifest has late = "keep"'),
    ],
)
def test_what_a_manifest_says_of_late_events(tmp_path, job, late, outcome, words):
    verdict, _ = mistaken(tmp_path, {**JOB, "late": job}, {"late": late}, disorder="late")

    assert (verdict.outcome, words in verdict.sentence) == (outcome, True), verdict.sentence


def test_evidence_that_the_manifest_leaves_out_costs_no_verdict(tmp_path):
    verdict, _ = mistaken(tmp_path, {**JOB, "evidence": "spark-checkpoint"}, {"evidence": "none"}, disorder="late")

    assert verdict.outcome is Outcome.PASS, verdict.sentence


def judged_as(folder, does: EngineManifest, says: EngineManifest, **more: Any) -> tuple[Outcome | None, str]:
    """None: it was refused."""
    try:
        spec, manifest = plan.resolve("test", {**SMALL, "sink": does.sinks[0].name, **more}, {}, lambda *_: says)
    except UsageError as error:
        return None, str(error)
    store = Store.create(folder, "mistaken")
    world = type("Mistaken", (AnotherJob,), {"does": does})(spec, store, manifest)
    verdict = run(spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=NullScreen())
    return verdict.outcome, verdict.sentence


def claims(field: str, value: Any) -> EngineManifest:
    """Of the right job, in its manifest or in that of its sink."""
    own = manifest_of(JOB)
    if hasattr(own, field):
        return replace(own, **{field: value})
    return replace(own, sinks=(replace(own.sinks[0], **{field: value}),))


NOW_AND_THEN, FORGETS = {"conf": {"misbehave": "flush:8"}}, {"conf": {"misbehave": "forget"}}
KILL, AT_C3, EXECUTOR = ({"fault": fault} for fault in ("kill@t>=5s", "kill@c3:batch=3", "kill-executor@t>=5s"))
PASS, UNKNOWN, FAIL, REFUSED = Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL, None
OTHERWISE = [
    ("guarantee", "none", KILL, PASS, "counted right"),
    ("resumes", False, {}, PASS, "counted right"),
    ("resumes", False, KILL, UNKNOWN, "its manifest says resumes = false"),
    ("resumes", True, {**KILL, **FORGETS}, FAIL, "lost"),
    ("executors", False, EXECUTOR, UNKNOWN, "its manifest lacks executors = true"),
    ("executors", True, EXECUTOR, UNKNOWN, "has no executor here"),
    ("crash_points", (), AT_C3, UNKNOWN, "no crash point c3 (crash_points: none)"),
    ("crash_points", ("c1", "c3"), AT_C3, UNKNOWN, "crash_points"),
    ("in_order", True, {}, UNKNOWN, "in_order = true in the manifest"),
    ("times", ("event",), {"time": "ingestion"}, REFUSED, "one of event"),
    ("checksum", False, {"checksum": True}, REFUSED, "checksum = true"),
    ("checksum", True, {"checksum": True}, UNKNOWN, "checksum = true in the manifest"),
    ("history", False, {"history": "10s"}, REFUSED, "history = true"),
    ("ready_s", 1.0, {}, FAIL, "no answer within 1 s (ready_s)"),
    ("ready_s", 600.0, {}, PASS, "counted right"),
    ("drain_s", 1.0, NOW_AND_THEN, FAIL, "drain_s"),
    ("drain_s", 600.0, NOW_AND_THEN, PASS, "counted right"),
    ("bookkeeping", ("mine:*",), {}, PASS, "counted right"),
]


@pytest.mark.parametrize(("field", "value", "dials", "outcome", "words"), OTHERWISE)
def test_a_field_that_says_something_else_of_a_right_job(tmp_path, monkeypatch, field, value, dials, outcome, words):
    monkeypatch.setattr(fake.FakeEngine, "arm", lambda *_: None)  # it does not look for crash points
    found, sentence = judged_as(tmp_path, replace(manifest_of(JOB), checksum=False), claims(field, value), **dials)

    assert (found, words in sentence) == (outcome, True), (found, sentence)


def test_keys_of_its_own_that_the_manifest_leaves_out_are_named_with_the_line(tmp_path):
    does = replace(manifest_of(JOB), sinks=(fake.MANIFEST.sink("fenced"),))
    says = replace(does, sinks=(replace(does.sinks[0], bookkeeping=()),))
    found, sentence = judged_as(tmp_path, does, says)

    assert (found, "bookkeeping = ['fence:*'] in its manifest" in sentence) == (FAIL, True), sentence


def test_the_table_of_the_document_has_the_fields_that_are_tried_here():
    text = (Path(__file__).parents[3] / "docs" / "reference" / "job.md").read_text(encoding="utf-8")
    section = text.partition("## When the manifest is wrong about it")[2].partition("\n## ")[0]
    columns = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)

    assert {name for column in columns for name in re.findall(r"`(\w+)`", column)} == {
        *(field for field, *_ in OTHERWISE),
        *("final", "late", "progress", "evidence"),
    }
