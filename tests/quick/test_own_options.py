"""An option that no job reads would change nothing, and nobody would be told: it is refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness import plan
from harness.engines import own_options
from harness.engines.manifest import IDS, load, workloads_of
from harness.model import UsageError
from tests.quick.test_manifest import GOOD, written

SOURCES = ("*/jobs/*.py", "*/jobs/*.java", "jobs/*.py")
NAME = re.compile(r"""OWN_OPTION \+ "([a-z.]+)"|"streamgauge\.([a-z]+)\"""")
OF_THE_VARIANTS = {"streamgauge.writer"}  # of a job that is no engine's


def resolved(engine: str, **conf: str):
    return plan.resolve("calm", {}, {"engine": engine, "conf": conf}, load)


@pytest.mark.parametrize(
    ("engine", "option", "told"),
    [
        ("spark", "streamgauge.parsr", r"spark has no option streamgauge.parsr: .*nearest: 'streamgauge.parser'"),
        ("spark", "streamgauge.late", "its job reads streamgauge.parser, "),
        ("kafka-streams", "streamgauge.source.maxOffsetsPerTrigger", "kafka-streams has no option"),
        ("reference", "streamgauge.parser", "its job reads none that begins so"),
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
        ("spark", "streamgauge.parser"),
        ("spark-pandas", "streamgauge.source.maxOffsetsPerTrigger"),
        ("flink", "streamgauge.late"),
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
    listed = {name for engine in IDS for each in workloads_of(engine) for name in load(engine, each).understands or ()}

    assert {name.removesuffix("*") for name in listed} == found - OF_THE_VARIANTS


def test_an_engine_that_does_not_say_is_not_asked():
    silent = replace(load("spark"), understands=None)

    assert own_options.unread(silent, ["streamgauge.anything"]) == ""
