"""Another job takes the engine's place in the middle of a run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from harness.cli import app
from harness.config import plan
from harness.drivers import one_run, replay
from harness.engines import fake
from harness.engines.job import OURS, Job
from harness.engines.manifest import load
from harness.engines.process import ProcessEngine
from harness.experiments import upgrade
from harness.experiments.chaos import Seen
from harness.experiments.upgrade import Upgraded, Word
from harness.faults.job import copied
from harness.faults.registry import parse
from harness.install.origin import ROOT
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.measuring import measure, recovery
from harness.measuring.exposure import NOT_LOOKED_AT, REPLACED, exposure
from harness.measuring.measurement import Lack, Quantity
from harness.model import (
    CheckResult,
    Exit,
    FaultReport,
    FaultSpec,
    Outcome,
    UsageError,
    Verdict,
)
from harness.services import children
from harness.terminal.command_end import ended
from harness.util.wait import wait_until
from tests.program.runner.test_run import SMALL, fake_run
from tests.quick.cases import placed

UPGRADES = ROOT / "examples" / "upgrades"


@pytest.mark.parametrize(
    ("stop", "when"),
    [*product(["kill", "clean"], ["offset>=50%", "t>=5s", "batch>=3"]), ("kill", "c3:batch=3")],
)
def test_the_same_job_on_a_copy_of_its_state_counts_right(tmp_path, stop, when):
    verdict, store, _ = fake_run(tmp_path, fault=f"change-job(stop={stop})@{when}", disorder="mobile")
    (told,) = store.history("fault")

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert told["report"]["landed"]
    assert "runs fake" in told["report"]["proof"]


def test_a_state_without_its_last_batch_is_found(tmp_path):
    verdict, _, _ = fake_run(tmp_path, fault="change-job@batch>=8", conf={"misbehave": "stale-state"}, sink="absolute")

    assert verdict.outcome is Outcome.FAIL, verdict.sentence
    assert "lost" in verdict.words


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, Word.RIGHT),
        ({"conf": {"misbehave": "stale-state"}}, Word.WRONG),
        ({"fault": "change-job@batch>=900"}, Word.UNKNOWN),
    ],
)
def test_what_came_of_it_has_a_word(tmp_path, changes, word):
    verdict, store, _ = fake_run(tmp_path, **{"fault": "change-job@batch>=8", "sink": "absolute"} | changes)
    found = upgrade.judged(verdict, StoredRun(store).faults, 0)

    assert found.word is word, found.sentence
    assert (found.outcome is Outcome.PASS) == (word is Word.RIGHT)


ASKED = {"sink": "absolute", "campaigns": 60, "rate": 1000}


@pytest.mark.parametrize(
    ("fault", "bug", "word"),
    [
        (upgrade.fault("same", "kill", "batch>=16", means="carry", asks="counts=click"), "", Word.RIGHT),
        (upgrade.fault("same", "clean", "batch>=16", means="carry", asks="by=ad"), "", Word.RIGHT),
        (upgrade.fault("same", "kill", "batch>=16", means="carry", asks="counts=click"), "deaf", Word.IGNORED),
        (upgrade.fault("same", "kill", "batch>=16", means="carry", asks="counts=click"), "empty-state", Word.PARTIAL),
        (upgrade.fault("same", "kill", "batch>=16", means="carry", asks="counts=click"), "half-state", Word.WRONG),
        (upgrade.fault("same", "kill", "batch>=16", means="carry", asks="window=10s"), "", Word.COLLISION),
    ],
)
def test_another_question_has_words_of_its_own(tmp_path, fault, bug, word):
    verdict, store, _ = fake_run(tmp_path, **ASKED, fault=fault, conf={"misbehave": bug} if bug else {})
    stored = StoredRun(store)
    found = upgrade.judged(verdict, stored.faults, 0)

    assert found.word is word, found.sentence
    assert judge(stored) == verdict  # from the files alone
    if word is Word.RIGHT:
        assert "as declared (carry)" in found.sentence


def test_no_speed_is_that_of_two_questions(tmp_path):
    fault = upgrade.fault("same", "kill", "batch>=16", means="carry", asks="counts=click")
    verdict, store, _ = fake_run(tmp_path, **ASKED, fault=fault)

    assert measure.withheld(StoredRun(store).spec, verdict, None, "").startswith("the question changes on the way")


def wrong_value(folder: Path, fault: str, bug: str = "") -> Quantity:
    _, store, _ = fake_run(folder, **ASKED, fault=fault, conf={"misbehave": bug} if bug else {})
    (found,) = recovery.of_run(StoredRun(store), "")
    return found.quantities["wrong_value_s"]


def test_what_a_reader_was_shown_is_held_against_the_question_of_its_time(tmp_path):
    carried = upgrade.fault("same", "kill", "batch>=16", means="carry", asks="counts=click")

    assert wrong_value(tmp_path, carried) == Quantity(0.0, "no cell was seen wrong")
    half = wrong_value(tmp_path, carried, "half-state")
    assert (half.value, half.lack) == (None, Lack.NO_END)
    assert "never corrected" in half.note


def test_what_was_written_and_not_committed_is_right_until_the_new_job_is_there(tmp_path):
    """At c3 the old job has written a batch that the state does not hold."""
    fault = upgrade.fault("same", "kill", "c3:batch=16", means="carry", asks="counts=click")
    _, store, _ = fake_run(tmp_path, **ASKED, fault=fault)
    stored = StoredRun(store)
    shown, change = exposure(stored), stored.change

    assert change is not None
    assert len(shown.cell)
    assert shown.from_s.min() == pytest.approx((change.landed_ms - stored.epoch_ms) / 1000)


@pytest.mark.parametrize(
    ("means", "asks", "why"),
    [
        ("carry", "by=ad", NOT_LOOKED_AT),
        ("fresh", "counts=click", REPLACED),
        ("carry", "window=20s", "windows of two lengths lie in the same cells of the store"),
    ],
)
def test_where_nobody_can_know_what_was_right_meanwhile_the_reason_is_told(tmp_path, means, asks, why):
    found = wrong_value(tmp_path, upgrade.fault("same", "kill", "batch>=16", means=means, asks=asks))

    assert found == Quantity(None, why, lack=Lack.UNKNOWN)


def test_a_job_that_stops_loudly_is_a_refusal_and_quoted():
    spec = FaultSpec("change-job@batch>=8", "change-job")
    report = FaultReport(spec, landed=True, healed=True, proof="p", refused="it stopped loudly: exit code 1, 'no'")
    verdict = Verdict(Outcome.PASS, "right", 0, (), {})

    found = upgrade.judged(verdict, (report,), 3)
    assert found == Upgraded(Word.REFUSED, "it stopped loudly: exit code 1, 'no'", 3)
    assert found.outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("sentence", "word", "said"),
    [
        ("", Word.RIGHT, "the old job left no state that could be copied; the new one went on all the same, and all"),
        ("duplicated: 9 events too many", Word.WRONG, "counts again: the old job left no state that could be copied"),
        ("lost: 9 events are missing", Word.WRONG, "lost: 9 events are missing"),
    ],
)
def test_a_job_that_leaves_no_state_is_said_to_count_again_what_it_had_counted(sentence, word, said):
    report = FaultReport(FaultSpec("change-job@t>=5s", "change-job"), True, True, "p", stateless=True)
    outcome = Outcome.FAIL if sentence else Outcome.PASS
    checks = (CheckResult("counts", outcome, sentence, word=sentence.partition(":")[0]),)
    found = upgrade.judged(Verdict(outcome, sentence, 0, checks, {}), (report,), 0)

    assert (found.word, found.outcome) == (word, outcome)
    assert found.sentence.startswith(said)
    assert sentence in found.sentence


def test_a_foreign_job_without_progress_may_be_changed_too(tmp_path):
    verdict, store, _ = fake_run(tmp_path, manifest=fake.SILENT, fault="change-job@t>=5s", sink="absolute")
    (told,) = store.history("fault")

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert "it went on and changed its results" in told["report"]["proof"]


def test_two_jobs_differ_in_their_manifests_and_in_their_programs(tmp_path):
    (tmp_path / "old.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "new.py").write_text("a = 1\nb = 3\n")
    old, new = (
        replace(fake.MANIFEST, id=name, home=str(tmp_path), command=("{python}", f"{{home}}/{name}.py"))
        for name in ("old", "new")
    )
    lines = upgrade.difference(old, new)

    assert {"-b = 2", "+b = 3", "-id = old", "+id = new"} <= set(lines)
    assert upgrade.changed(lines) == 6
    assert not upgrade.difference(old, old)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("change-job(to=spark)@batch>=2", "results to different locations"),
        ("change-job(stop=gently)@batch>=2", "stop = gently is not one of kill, clean"),
        ("change-job(to=nothing-such)@batch>=2", "nothing-such"),
        ("change-job(stop=clean)@c3:batch=3", "can't end cleanly"),
        ("change-job(counts=click)@batch>=2", "nothing declares the correct results"),
        ("change-job(conf=nothing)@batch>=2", "is not KEY=VALUE"),
        ("change-job(state=none)@batch>=2", "without a state"),
        ("change-job(conf=execution.state-recovery.path=/nowhere/at/all)@batch>=2", "no savepoint at /nowhere/at/all"),
        ("change-job(conf=execution.state-recovery.path=file:///no%20where)@batch>=2", "no savepoint at file:///no"),
        ("change-job(state=half)@batch>=2", "state = half is not one of copy, none"),
        ("change-job(means=carry)@batch>=2", "the question does not change"),
        ("change-job(counts=click, means=maybe)@batch>=2", "means = maybe is not one of"),
    ],
)
def test_a_job_that_can_not_take_its_place_is_refused_before_anything_starts(tmp_path, fault, words):
    spec, manifest = plan.resolve("test", SMALL | {"fault": fault}, {}, lambda *_: fake.MANIFEST)
    with pytest.raises(UsageError, match=words):
        one_run.refuse_the_impossible(spec, manifest)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--means", "carri"],
            "--means = 'carri' is not right: one of same, carry, fresh, anew is expected (nearest: 'carry')",
        ),
        (["--state", "half"], "--state = 'half' is not right: one of copy, none is expected"),
        (["--stop", "klil"], "--stop = 'klil' is not right: one of kill, clean is expected (nearest: 'kill')"),
        (["--asks", "clicks"], "--asks = 'clicks' is not right: counts=click, by=ad or window=20s is expected"),
        (["--asks", "by=ad"], "declares the correct results: give means, one of carry, fresh, anew."),
    ],
)
def test_a_mistake_is_told_of_the_flag_that_was_typed(words, told, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = ["upgrade", "--from", "spark", "--to", "spark", *words]

    assert ended(asked, lambda: app.called(asked)) == Exit.USAGE

    said = " ".join(capsys.readouterr().err.split())
    assert told in said
    assert "--fault" not in said


def test_an_upgrade_is_a_fault_that_says_only_what_is_asked():
    words = upgrade.fault("spark", "kill", "t>=5s", state="", conf="a.b=c=d", means="carry", asks="counts=click, by=ad")

    assert words == "change-job(to=spark, stop=kill, conf=a.b=c=d, means=carry, counts=click, by=ad)@t>=5s"
    assert parse(words).options["conf"] == "a.b=c=d"
    assert upgrade.fault("spark", "clean", "t>=5s") == "change-job(to=spark, stop=clean)@t>=5s"


def test_a_bracket_may_hold_the_sign_of_a_moment():
    fault = parse("change-job(to=spark@4.1.3)@offset>=50%")

    assert fault.options["to"] == "spark@4.1.3"
    assert fault.when.kind == "offset"


@pytest.mark.parametrize(
    "plan", sorted(path.parent for path in UPGRADES.glob("*/plan.json")), ids=lambda path: path.name
)
def test_a_committed_plan_can_be_run_again_and_says_what_is_expected_of_that(plan):
    stored = StoredRun.open(plan)
    spec, manifest = replay.planned(stored)
    ours = load(spec.engine)

    assert (manifest.home, manifest.command, manifest.java) == (ours.home, ours.command, ours.java)
    assert replay.how(stored).outcome is Outcome.FAIL
    found = upgrade.judged(stored.verdict, stored.faults, 0)
    lines = (UPGRADES / "README.md").read_text().splitlines()
    assert f"| {found.word}" in next(line for line in lines if line.startswith(f"| `{plan.name}` |"))


@pytest.mark.parametrize(("words", "same"), [(("collision",), True), (("lost",), False)])
def test_of_what_has_a_name_the_class_hangs_on_the_batch_that_the_change_met(words, same):
    before = replay.Ended(Outcome.FAIL, words, Seen.EXACTLY_ONCE, ())

    assert replay.compared("a", before, "b", replace(before, seen=Seen.NONE)).same is same


OLD = """
import json, pathlib, signal, sys, time
state = pathlib.Path(json.load(open(sys.argv[1]))["checkpoint"])
state.mkdir(parents=True, exist_ok=True)
(state / "written").write_text("by the old job")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
(state / "up").touch()
while True:
    time.sleep(0.01)
"""
NEW = OLD.replace('"by the old job"', '(state / "written").read_text() + ", and the new one"')


def test_a_job_finds_a_copy_of_the_state_and_the_old_one_its_own(tmp_path):
    for name, text in (("old", OLD), ("new", NEW)):
        (tmp_path / f"{name}.py").write_text(text)
    old, new = (
        replace(fake.MANIFEST, id=name, home=str(tmp_path), command=("{python}", f"{{home}}/{name}.py", "{config}"))
        for name in ("old", "new")
    )
    state = tmp_path / "state"
    engine = ProcessEngine(
        old, config(tmp_path, str(state)), logs=tmp_path, evidence=tmp_path, private=tmp_path, env={}
    )
    with children.guard():
        engine.start()
        wait_until((state / "up").exists, deadline_s=30, what="the old job to be up")
        ended = engine.end()
        own = engine.job
        (state / "up").unlink()
        copy = Path(copied(own.checkpoint, 2))
        engine.swap_job(Job(new, OURS, str(copy)))
        engine.restart()
        wait_until((copy / "up").exists, deadline_s=30, what="the new job to be up")
        command = engine.members()[0].command
        engine.kill()
        engine.swap_job(own)
        engine.restart()
        wait_until((state / "up").exists, deadline_s=30, what="the old job to be up again")
        engine.stop()

    assert "exit code 0)" in ended
    assert (copy / "written").read_text() == "by the old job, and the new one"
    assert (state / "written").read_text() == "by the old job"
    assert str(tmp_path / "new.py") in command


def config(folder, checkpoint):
    return placed(folder, checkpoint=checkpoint, sink="absolute")
