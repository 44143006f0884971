"""Another job takes an engine's place: where it began, by the state that it found or by its own word."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.engines import environments
from harness.engines.base import Member, Reached, RestartOffsets
from harness.engines.job import Job, Surroundings
from harness.engines.manifest import load
from harness.faults import registry
from harness.faults.base import Fault
from harness.faults.job import runs, settings_of
from harness.faults.registry import parse
from harness.faults.run_at_poll import Moment
from harness.model import Change, FaultReport
from harness.services import kafka
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults import TOTAL, report_of
from tests.quick.faults.test_faults_downtime import Downed, at, told

ASKED = "change-job(counts=click, means=carry)@now"
FLINK = "/envs/flink-1f/bin/python"


@dataclass
class Changing(Downed):
    """Knows the first offsets of its state while it is down, or tells them when it has gone on."""

    job: Job = field(default_factory=lambda: Job(load("flink")))
    on_disk: tuple[int, ...] = ()
    by_its_word: tuple[int, ...] = ()
    program: str = FLINK

    def swap_job(self, job: Job) -> None:
        self.job = job

    def restart_offsets(self) -> RestartOffsets:
        assert not self.running
        return RestartOffsets(self.on_disk, self.on_disk)

    def restored(self) -> RestartOffsets:
        assert self.running
        return RestartOffsets(self.by_its_word)

    def members(self) -> tuple[Member, ...]:
        return (Member(7, 1, (self.program, "flink.py", str(self.config_path)), leads=True),)


def changed(engine: Changing, monkeypatch) -> Fault:
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    fault = registry.create(replace(SPEC, fault=parse(ASKED), engine="flink", sink="absolute"), load("flink"))
    at(fault, engine)
    return fault


@pytest.mark.parametrize(
    ("on_disk", "by_its_word", "seam"),
    [((3, 4), (), (3, 4)), ((3, 4), (5, 6), (3, 4)), ((), (5, 6), (5, 6)), ((), (), ())],
)
def test_the_seam_is_what_the_state_says_and_where_nobody_can_read_that_what_the_job_says(
    tmp_path, monkeypatch, on_disk, by_its_word, seam
):
    engine = Changing(config_path=tmp_path / "engine.json", newest=told(40), on_disk=on_disk, by_its_word=by_its_word)
    fault = changed(engine, monkeypatch)

    assert engine.changes[0]["options"]["streamgauge.counts"] == "click"
    engine.newest = told(50)
    for now_ms in (200, 300, 400):
        at(fault, engine, now_ms)

    report = report_of(fault)
    assert (report.landed, report.healed, report.restored) == (True, True, seam), report.proof
    assert "runs flink: flink.py, by flink-1f" in report.proof


def test_another_question_is_asked_by_the_run_config_and_its_window(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    engine = Changing(config_path=tmp_path / "engine.json", newest=told(40))
    asked = parse("change-job(counts=click, window=20s, means=fresh)@now")
    at(registry.create(replace(SPEC, fault=asked, engine="flink", sink="absolute"), load("flink")), engine)

    assert engine.changes[0]["window_ms"] == 20_000
    assert {*engine.changes[0]["options"]} - {*load("flink").options} == {"streamgauge.counts"}


def looked(fault: Fault, engine: Changing, now_ms: int, changed_ms: int, since_ms: int) -> FaultReport:
    """When the results were last seen to change, which is all that is known of a job without progress."""
    changed = Change(changed_ms, since_ms)
    fault.poll(Moment(now_ms, 1, engine, None, TOTAL, changed=changed))  # type: ignore[arg-type]
    return report_of(fault)


@pytest.mark.parametrize("files", [(), ("chk-1",)])
def test_a_job_without_progress_goes_on_by_its_results_and_may_have_left_no_state(tmp_path, monkeypatch, files):
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    for name in files:
        (tmp_path / "state" / name).mkdir(parents=True)
    silent = replace(load("flink"), progress=False)
    engine = Changing(
        manifest=silent, job=Job(silent), checkpoint=tmp_path / "state", config_path=tmp_path / "engine.json"
    )
    spec = replace(SPEC, fault=parse("change-job@now"), engine="flink", sink="absolute")
    fault = registry.create(spec, silent)

    looked(fault, engine, 100, 90, 40)
    assert engine.story[-1] == "restart"
    assert looked(fault, engine, 200, 90, 40).landed
    looked(fault, engine, 3000, 2900, 90)
    assert not fault.settled(), "the look before began when the old job was at work"
    looked(fault, engine, 3100, 3050, 2900)
    report = looked(fault, engine, 3200, 3050, 2900)

    assert (fault.over(), report.healed, report.stateless) == (True, True, not files)
    assert "it went on and changed its results" in report.proof
    assert ("no state was left to copy" in report.proof) == (not files)


def test_a_job_without_progress_that_writes_nothing_any_more_gets_the_old_one_back(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    silent = replace(load("flink"), progress=False)
    engine = Changing(manifest=silent, job=Job(silent), config_path=tmp_path / "engine.json")
    fault = registry.create(replace(SPEC, fault=parse("change-job@now"), engine="flink", sink="absolute"), silent)
    late_ms = round(silent.ready_s * 1000) + 1000

    for now_ms in (100, 200, 300, late_ms):
        looked(fault, engine, now_ms, 90, 40)
    looked(fault, engine, late_ms + 1000, late_ms + 900, late_ms - 100)
    assert not fault.settled(), "the look before began when the job that writes nothing was at work"
    report = looked(fault, engine, late_ms + 5000, late_ms + 4000, late_ms + 3000)

    assert "no progress for" in report.refused
    assert report.refused.endswith("its own state were restored")
    assert report.healed


def test_who_stops_at_the_state_of_another_query_is_quoted_and_the_old_job_has_its_own_again(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "chk-1").write_text("of the old job")
    own = Job(load("flink"), Surroundings(Path(FLINK)), str(tmp_path / "state"))
    engine = Changing(job=own, checkpoint=tmp_path / "state", config_path=tmp_path / "engine.json", newest=told(40))
    fault = registry.create(
        replace(SPEC, fault=parse("change-job@now"), engine="flink", sink="absolute"), load("flink")
    )
    at(fault, engine)
    copy = Path(engine.job.checkpoint)
    (copy / "chk-1").write_text("half read by the new one")
    at(fault, engine, 200)
    engine.running, engine.code = False, 1
    at(fault, engine, 300)
    engine.restart()
    engine.newest = told(50)
    at(fault, engine, 400)

    report = report_of(fault)
    assert report.refused.startswith("it stopped loudly: exit code 1, ")
    assert "java.io.EOFException: cut" in report.refused
    assert (report.landed, report.healed, report.stateless) == (True, True, False)
    assert engine.job == own
    assert (tmp_path / "state" / "chk-1").read_text() == "of the old job"


@pytest.mark.parametrize("stops", [True, False])
def test_who_does_only_what_the_old_job_had_planned_has_not_gone_on(tmp_path, monkeypatch, stops):
    engine = Changing(config_path=tmp_path / "engine.json", newest=told(40), on_disk=(25, 25))
    fault = changed(engine, monkeypatch)
    at(fault, engine, 200)
    engine.newest = told(50)  # the batch that was planned
    at(fault, engine, 300)
    if stops:
        engine.running, engine.code = False, 1
    late_ms = 400 if stops else round(load("flink").ready_s * 1000) + 1000
    at(fault, engine, late_ms)
    engine.running = True
    engine.newest = told(60)
    at(fault, engine, late_ms + 100)

    report = report_of(fault)
    assert (report.landed, report.healed) == (True, True)
    assert report.refused.startswith(
        "it stopped loudly: exit code 1" if stops else "it made progress once, and none for 180 s"
    )


def test_a_process_that_is_not_yet_the_job_proves_nothing(tmp_path, monkeypatch):
    engine = Changing(config_path=tmp_path / "engine.json", newest=told(40), program="/ours/bin/python")
    fault = changed(engine, monkeypatch)

    at(fault, engine, 200)
    assert not report_of(fault).landed
    engine.program = FLINK
    at(fault, engine, 300)
    assert report_of(fault).landed


def test_a_new_topic_is_made_with_as_many_partitions_and_told_to_the_new_job_alone(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    monkeypatch.setattr(kafka, "create_topic", lambda *of_it: made.append(of_it))
    spec = replace(SPEC, fault=parse("change-job(topic=new)@now"), engine="flink", sink="absolute")
    engine = Changing(config_path=tmp_path / "engine.json", newest=told(40))
    field = SimpleNamespace(kafka_address="there", topic="of-the-run", disk=None)
    fault = registry.create(spec, load("flink"))
    fault.poll(Moment(100, 1, engine, engine.newest, TOTAL, field))  # type: ignore[arg-type]

    assert made == [("there", "of-the-run.next", SPEC.tape.partitions)]
    assert engine.changes == [{"topic": "of-the-run.next"}]


def test_a_job_without_state_that_goes_on_anew_begins_where_the_old_one_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    spark = load("spark")
    job = Job(spark, Surroundings(Path(FLINK)), str(tmp_path / "state"))
    asked = parse("change-job(counts=click, state=none, means=anew)@now")
    engine = Changing(config_path=tmp_path / "engine.json", newest=told(40), job=job, on_disk=(3, 4))
    field = SimpleNamespace(kafka_address="there", topic="of-the-run", disk=None)
    fault = registry.create(replace(SPEC, fault=asked, engine="spark", sink=spark.sinks[0].name), spark)
    for now_ms in (100, 200):
        fault.poll(Moment(now_ms, 1, engine, engine.newest, TOTAL, field))  # type: ignore[arg-type]
        engine.at = Reached("c1", 4, 1)  # it stands still, as it was asked to

    begins = engine.changes[0]["options"]["streamgauge.source.startingOffsets"]
    assert json.loads(begins) == {"of-the-run": {"0": 3, "1": 4}}


@pytest.mark.parametrize(
    ("engine", "topic", "why"),
    [("flink", "other", "topic = other is not one of same, new"), ("fake", "new", "no Kafka topic")],
)
def test_another_topic_that_can_not_be_is_said(engine, topic, why):
    manifest = load(engine)
    spec = replace(SPEC, fault=parse(f"change-job(topic={topic})@now"), engine=engine, sink=manifest.sinks[0].name)

    assert any(why in need for need in registry.create(spec, manifest).needs)


def test_a_stored_plan_that_is_older_than_an_option_has_its_usual_value():
    fault = parse("change-job@now")
    older = replace(fault, options={key: value for key, value in fault.options.items() if key != "topic"})

    assert registry.create(replace(SPEC, fault=older, engine="flink", sink="absolute"), load("flink")).needs == ()


@pytest.mark.parametrize("engine", ["spark", "flink", "flink-standalone", "flink-java", "kafka-streams"])
def test_these_know_another_question(engine):
    manifest = load(engine)
    spec = replace(SPEC, fault=parse(ASKED), engine=engine, sink=manifest.sinks[0].name)

    assert registry.create(spec, manifest).needs == ()


@pytest.mark.parametrize(
    ("conf", "settings"),
    [
        ("", {}),
        ("a.b=c=d", {"a.b": "c=d"}),
        ("a.b=1+c.d-e=2", {"a.b": "1", "c.d-e": "2"}),
        ("java=-XX:+UseSerialGC -Xmx1g+a=b", {"java": "-XX:+UseSerialGC -Xmx1g", "a": "b"}),
    ],
)
def test_the_new_job_may_have_several_settings(conf, settings):
    assert settings_of(parse(f"change-job({f'conf={conf}' if conf else 'to=same'})@now")) == settings


def test_others_are_refused():
    spec = replace(SPEC, fault=parse(ASKED), engine="quix", sink=load("quix").sinks[0].name)

    wanted = "an option of the job changes the question, but quix has no option streamgauge.counts: its job reads none"
    assert any(need.startswith(wanted) for need in registry.create(spec, load("quix")).needs)


@pytest.mark.parametrize(
    ("command", "is_the_job"),
    [((), False), (("/of/ours/python",), False), (("sh", FLINK), False), ((FLINK, "flink.py"), True)],
)
def test_between_two_programs_a_process_is_not_yet_the_job(command, is_the_job):
    """For a moment it has no command line at all."""
    job = Job(load("flink"), Surroundings(Path(FLINK)))

    assert runs(job, Member(7, 1, command, leads=True)) is is_the_job


@pytest.mark.parametrize(("command", "is_the_job"), [((), False), (("/bin/bash", "/opt/flink/bin/flink"), True)])
def test_a_script_of_somebodys_may_become_any_program(command, is_the_job):
    job = Job(replace(load("flink"), command=("flink", "run", "{config}")))

    assert runs(job, Member(7, 1, command, leads=True)) is is_the_job


@pytest.mark.parametrize(
    ("program", "is_the_job"), [("/usr/bin/python", True), ("/jdk/bin/java", True), ("/other/bin/java", False)]
)
def test_a_job_may_become_another_program_that_its_command_names(program, is_the_job):
    """It looks at files first, and then it is Java."""
    job = Job(load("flink-java"), Surroundings(Path("/usr/bin/python"), java="/jdk/bin/java"))

    assert runs(job, Member(7, 1, (program, "..."), leads=True)) is is_the_job


def test_a_job_with_the_state_of_the_old_one_is_given_no_offsets(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "prepare", lambda *_: Surroundings(Path(FLINK)))
    (tmp_path / "state").mkdir()
    spark = load("spark")
    job = Job(spark, Surroundings(Path(FLINK)), str(tmp_path / "state"))
    asked = parse("change-job(counts=click, means=anew)@now")
    engine = Changing(config_path=tmp_path / "engine.json", newest=told(40), job=job, on_disk=(3, 4))
    field = SimpleNamespace(kafka_address="there", topic="of-the-run", disk=None)
    fault = registry.create(replace(SPEC, fault=asked, engine="spark", sink=spark.sinks[0].name), spark)
    for now_ms in (100, 200):
        fault.poll(Moment(now_ms, 1, engine, engine.newest, TOTAL, field))  # type: ignore[arg-type]
        engine.at = Reached("c1", 4, 1)

    assert [each for each in engine.changes[0]["options"] if each.endswith("startingOffsets")] == []
