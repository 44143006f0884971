"""An option that no job reads would change nothing, and nobody would be told: it is refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config import plan
from harness.engines import own_options
from harness.engines.manifest import load
from harness.engines.shipped import IDS, workloads_of
from harness.model import UsageError
from tests.quick.engines.test_manifest import GOOD, written

SOURCES = ("*/jobs/*.py", "*/jobs/*.java", "jobs/*.py")
NAME = re.compile(r"""OWN_OPTION \+ "([a-z.]+)"|"streamgauge\.([a-z]+)\"""")
OF_THE_VARIANTS = {"streamgauge.writer"}  # of a job that is no engine's


def resolved(engine: str, **conf: str):
    return plan.resolve("calm", {}, {"engine": engine, "conf": conf}, load)


def refused(engine: str, workload: str, **keys: object) -> str:
    with pytest.raises(UsageError) as found:
        plan.resolve("calm", {}, {"engine": engine, "workload": workload, "fault": "none", **keys}, load)
    return str(found.value)


EACH = [(engine, workload) for engine in IDS for workload in workloads_of(engine)]


@pytest.mark.parametrize(("engine", "workload"), EACH)
def test_every_option_of_every_engine_is_refused_with_a_value_that_it_can_not_have(engine, workload):
    manifest = load(engine, workload)
    assert manifest.settings is not None
    assert manifest.understands is not None
    for entry in (*manifest.understands, *manifest.settings):
        name, _, domain = entry.partition("=")
        if name in ("trigger", "master"):
            assert f"{name} = 'soon' is not right" in refused(engine, workload, **{name: "soon"})
        elif domain:
            for wrong in ("soon", "-1", "view+soon"):
                assert f"{name} = '{wrong}' is not right" in refused(engine, workload, conf={name: wrong})
    for name in {"trigger", "master"} - {entry.partition("=")[0] for entry in manifest.settings}:
        value = {"trigger": "2s", "master": "local[2]"}[name]
        assert f"{engine} has no option {name}: it reads" in refused(engine, workload, **{name: value})
    for name in ("soon", "streamgauge.soon", "trigger"):
        assert f"{engine} has no option {name}: " in refused(engine, workload, conf={name: "1"})
    for name in own_options.of_engine(manifest):
        assert f"{name} = 'soon' is not right" in refused(engine, workload, conf={name: "soon"})
    if manifest.on_spark:
        for name in (each for each, domain in own_options.SPARKS_SOURCE.items() if domain):
            assert f"{name} = 'soon' is not right" in refused(engine, workload, conf={name: "soon"})
        name = "streamgauge.source.maxOffsetPerTrigger"
        assert "nearest: 'streamgauge.source.maxOffsetsPerTrigger'" in refused(engine, workload, conf={name: "1"})


@pytest.mark.parametrize(("engine", "workload"), EACH)
def test_every_value_that_an_option_may_have_is_taken(engine, workload):
    examples = {"N": "7", "COUNT": "0", "SIZE": "512m", "MEMORY": "1 gb", "TIME": "5 s", "BOOL": "true", ">=5s": "5s"}
    manifest = load(engine, workload)
    entries = [entry.partition("=") for entry in (*(manifest.understands or ()), *(manifest.settings or ()))]
    others = {**own_options.of_engine(manifest), **(own_options.SPARKS_SOURCE if manifest.on_spark else {})}
    domains = {name: domain for name, _, domain in entries if domain and name != "trigger"}
    domains |= {name: domain for name, domain in others.items() if domain}
    words = {name: dict.fromkeys((*domain.split("|"), *domain.split("+"))) for name, domain in domains.items()}
    taken = {name: [examples.get(word, word) for word in each if "|" not in word] for name, each in words.items()}
    for number in range(max(map(len, taken.values()), default=0) or 1):  # all options at once: a resolved run is slow
        conf = {name: values[min(number, len(values) - 1)] for name, values in taken.items()}
        flags = {"engine": engine, "workload": workload, "fault": "none", "conf": conf}
        spec, _ = plan.resolve("calm", {}, flags, load)
        assert spec.conf == conf


@pytest.mark.parametrize(
    ("engine", "name", "taken", "not_taken"),
    [
        ("spark", "spark.sql.shuffle.partitions", ["1", "999999999"], ["0", "1000000000", "1.5", "x"]),
        ("flink", "parallelism.default", ["1", "999999999"], ["0", "1000000000", "-1"]),
        ("flink", "execution.checkpointing.interval", ["0", "500", "500 ms", "5s", "1 min"], ["5 x", "-1 s", "1.5 s"]),
        ("flink-java", "taskmanager.memory.process.size", ["512m", "2 gb", "1g"], ["2 xb", "-1"]),
        ("flink", "execution.checkpointing.mode", ["AT_LEAST_ONCE"], ["at-least-once", "ONCE"]),
        ("kafka-streams", "commit.interval.ms", ["0", "999999999999999999"], ["-1", "1000000000000000000", "1s"]),
        ("kafka-streams", "processing.guarantee", ["exactly_once_v2"], ["exactly_once", "2"]),
    ],
)
def test_bounds_are_those_that_are_named(engine, name, taken, not_taken):
    for value in taken:
        assert plan.resolve("calm", {}, {"engine": engine, "conf": {name: value}, "fault": "none"}, load)
    for value in not_taken:
        assert f"{name} = '{value}' is not right" in refused(engine, "ad_impressions", conf={name: value})


def test_a_trigger_is_a_time_in_the_words_of_spark():
    calm = {"engine": "spark", "fault": "none"}
    taken = {given: plan.resolve("calm", {"trigger": given}, calm, load)[0].trigger for given in ("2s", "1 minute", 0)}
    assert taken == {"2s": "2 seconds", "1 minute": "60 seconds", 0: "0 seconds"}

    said = refused("spark-rtm", "ad_impressions", trigger="4999ms")
    assert "trigger = '4999 milliseconds' is not right: at least 5s is expected" in said
    assert plan.resolve("calm", {"trigger": "5s"}, {**calm, "engine": "spark-rtm"}, load)[0].trigger == "5 seconds"


def test_the_words_that_an_option_may_have_are_those_of_the_sources():
    texts = " ".join(
        path.read_text() for pattern in (*SOURCES, "*/schema.py") for path in Path("workloads").glob(pattern)
    )
    entries = {entry for engine, workload in EACH for entry in load(engine, workload).understands or ()}
    words = {word for entry in entries for word in re.split(r"[|+]", entry.partition("=")[2]) if word.islower()}

    assert words
    assert [word for word in words if f'"{word}"' not in texts] == []


@pytest.mark.parametrize(
    ("engine", "option", "told"),
    [
        ("spark", "streamgauge.parsr", r"spark has no option streamgauge.parsr: .*nearest: 'streamgauge.parser'"),
        ("spark", "streamgauge.late", "its job reads streamgauge.parser, "),
        ("kafka-streams", "streamgauge.source.maxOffsetsPerTrigger", "kafka-streams has no option"),
        ("reference", "streamgauge.parser", "its job reads none that begins so"),
        ("reference", "spark.driver.memory", "it reads none such"),
    ],
)
def test_what_a_job_does_not_read_is_refused(engine, option, told):
    with pytest.raises(UsageError, match=told):
        resolved(engine, **{option: "1"})


def test_a_scenario_that_is_made_for_another_engine_says_so():
    said = "The scenario big-state is made for another engine: flink has no option streamgauge.source.maxOffsets"
    with pytest.raises(UsageError, match=said):
        plan.resolve(*plan.read_scenario("big-state"), {"engine": "flink"}, load)


@pytest.mark.parametrize(
    ("engine", "option"),
    [
        ("spark", "spark.some.setting"),
        ("spark-pandas", "streamgauge.source.maxOffsetsPerTrigger"),
        ("flink", "some.setting.of.its.own"),
        ("kafka-streams", "some.setting.of.its.own"),
    ],
)
def test_what_it_reads_and_what_is_its_engines_go_on(engine, option):
    assert resolved(engine, **{option: "1"})[0].conf == {option: "1"}


def test_somebodys_own_job_may_read_what_it_likes_unless_it_says_what(tmp_path):
    assert resolved(str(written(tmp_path, GOOD)), **{"streamgauge.mine": "1"})[0].conf == {"streamgauge.mine": "1"}

    own_job = GOOD.replace("command", 'extends = "spark"\ncommand', 1)
    assert load(str(written(tmp_path, own_job))).understands is None

    says = GOOD.replace("command", 'understands = ["streamgauge.mine"]\ncommand', 1)
    with pytest.raises(UsageError, match=r"mine has no option streamgauge.yours: its job reads streamgauge.mine"):
        resolved(str(written(tmp_path, says)), **{"streamgauge.yours": "1"})


def test_one_that_only_changes_settings_of_a_shipped_engine_reads_what_that_one_does(tmp_path):
    path = written(tmp_path, 'id = "mine"\nextends = "spark"')

    assert load(str(path)).understands == load("spark").understands


def test_the_lists_name_what_the_sources_of_the_jobs_read_and_nothing_else():
    workloads = Path("workloads")
    texts = [path.read_text() for pattern in SOURCES for path in workloads.glob(pattern)]
    found = {f"streamgauge.{one or other}" for text in texts for one, other in NAME.findall(text)}
    listed = {entry for engine, workload in EACH for entry in load(engine, workload).understands or ()}

    assert {entry.partition("=")[0].removesuffix("*") for entry in listed} == found - OF_THE_VARIANTS


def test_an_engine_that_does_not_say_is_not_asked():
    silent = replace(load("spark"), understands=None, settings=None)

    assert own_options.mistake(silent, {"streamgauge.anything": "1", "a.b": "soon"}) == ""
