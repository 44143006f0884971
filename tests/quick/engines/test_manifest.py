"""Manifests: the shipped ones are right, and each mistake in somebody's own is answered by a sentence that helps."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines import environments, shipped
from harness.engines.manifest import load, program_of
from harness.engines.process import argv_of
from harness.engines.shipped import SHIPPED, job_path, workloads_of
from harness.model import EngineManifest, KafkaAddress, RedisAddress, UsageError
from tests.quick.cases import RUN_CONFIG

GOOD = """
id = "mine"
command = ["{python}", "job.py", "{config}"]
[[sinks]]
name = "default"
late = "drop"
guarantee = "exactly-once"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "manifest.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("engine", SHIPPED)
def test_the_shipped_manifests_are_right(engine):
    manifest = load(engine)

    assert manifest.id == engine
    assert manifest.shipped
    assert manifest.resumes


def test_a_consumer_group_may_say_how_far_it_is(tmp_path):
    manifest = load(str(written(tmp_path, 'progress = "group:counts-{run}"\n' + GOOD)))

    assert (manifest.progress, manifest.progress_group) == (True, "counts-{run}")


def test_the_default_sink_of_spark_can_be_killed_anywhere_and_drops_late_events():
    claim = load("spark").sinks[0]

    assert (claim.name, claim.late) == ("absolute", "drop")
    assert claim.crash_points == ("c1", "c2", "c3", "c4")


@pytest.mark.parametrize("as_folder", [True, False])
def test_somebodys_own_engine_is_a_path(tmp_path, as_folder):
    path = written(tmp_path, GOOD)

    manifest = load(str(tmp_path if as_folder else path))

    assert manifest.home == str(tmp_path)
    assert not manifest.shipped
    assert manifest.evidence == "none"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("command =", "comand ="), ["'comand'", "nearest: 'command'"]),
        (('id = "mine"', 'id = "mine"\nresults = "kafka:a topic"'), ["'kafka:a topic'", "kafka:TOPIC"]),
        (
            ('id = "mine"', 'id = "mine"\nresults = "redis:template"\nkey = "{city}:{city}"'),
            ["{city} is used 2 times"],
        ),
        (
            ('id = "mine"', 'id = "mine"\nresults = "redis:template"\nkey = "{city}:{opens}"\nfield = "{end}"'),
            ["{opens}, {end} are the same number"],
        ),
        (
            ('id = "mine"', 'id = "mine"\nresults = "redis:template"\nkey = "{city}:{end}"\nwindow_key = "start"'),
            ["window_key = 'start', and the pattern says end"],
        ),
        (
            ('id = "mine"', 'id = "mine"\nresults = "redis:template"'),
            ["nothing in it distinguishes keys", "{campaign}"],
        ),
        (('id = "mine"', 'id = "mine"\nkey = "c/{campaign}/{window}"'), ["'redis:compact'", "no use for", "'key'"]),
        (('late = "drop"', 'late = "drop"\nin_order = true'), ["in_order", "redis:compact", "only a topic"]),
        (('id = "mine"', 'id = "mine"\nresults = "command"'), ["'command'", "needs", "'read'"]),
        (('id = "mine"', 'id = "mine"\nwindow_key = "middle"'), ["window_key = 'middle'", "start, end"]),
        (('id = "mine"', ""), ["needs the key 'id'"]),
        (('"mine"', '"my/job"'), ["id = 'my/job'", "letters, digits"]),
        (('id = "mine"', 'id = "mine"\nivy = "kafka"'), ["ivy = 'kafka'", "spark"]),
        (('id = "mine"', 'id = "mine"\ngroup = ""'), ["group = ''", "text"]),
        (('command = ["{python}", "job.py", "{config}"]', ""), ["needs the key 'command'"]),
        (('["{python}", "job.py", "{config}"]', "[]"), ["command = []", "the program"]),
        (('["{python}", "job.py", "{config}"]', '"job.py"'), ["command = 'job.py'", "a list"]),
        (('"{python}"', '"no-such-program-at-all"'), ["no-such-program-at-all", "PATH"]),
        (("{config}", "{conifg}"), ["{conifg}", "{config}", "nearest: 'config'"]),
        (("{config}", "{config"), ["{config", "brace"]),
        (('"job.py"', '"{job}"'), ["{job}", "'mine'", "spark"]),
        (('late = "drop"', 'late = "dorp"'), ["sinks[0].late", "'dorp'", "drop, keep", "nearest: 'drop'"]),
        (('late = "drop"', ""), ["[sinks[0]] needs the key 'late'"]),
        (('"exactly-once"', '"exactly once"'), ["sinks[0].guarantee", "nearest: 'exactly-once'"]),
        (('guarantee = "exactly-once"', 'guarantee = "none"\ncrash_points = ["c9"]'), ["crash_points[0]", "'c9'"]),
        (
            ("[[sinks]]", 'progress = false\n[[sinks]]\ncrash_points = ["c3"]'),
            ["crash_points = ['c3'] and progress = false", "report its progress, or leave crash_points out"],
        ),
        (
            ("[[sinks]]", 'progress = "group:g"\n[[sinks]]\ncrash_points = ["c3"]'),
            ["progress = 'group:g' and crash_points", "leave crash_points out"],
        ),
        (
            ("[[sinks]]", 'progress = "group:g"\nevidence = "spark-checkpoint"\n[[sinks]]'),
            ["progress = 'group:g' and evidence = 'spark-checkpoint'", "Leave progress out"],
        ),
        (('id = "mine"', 'id = "mine"\nprogress = "groop:g"'), ["progress = 'groop:g'", "'group:NAME'"]),
        (('id = "mine"', 'id = "mine"\nprogress = "group:"'), ["progress = 'group:'", "'group:NAME'"]),
        (('id = "mine"', 'id = "mine"\nprogress = "group:{rum}"'), ["{run}, {topic}", "nearest: 'run'"]),
        (('guarantee = "exactly-once"', 'guarantee = "none"\nbookkeeping = "x"'), ["bookkeeping", "a list of texts"]),
        (('id = "mine"', 'id = "mine"\nready_s = -1'), ["ready_s = -1", "above 0"]),
        (('id = "mine"', 'id = "mine"\nready_s = true'), ["ready_s = True", "a number"]),
        (('id = "mine"', 'id = "mine"\nresumes = "yes"'), ["resumes = 'yes'", "true or false"]),
        (('id = "mine"', 'id = "mine"\nevidence = "spark"'), ["evidence", "spark-checkpoint"]),
        (('id = "mine"', 'id = "mine"\nextends = "sparc"'), ["extends = 'sparc'", "nearest: 'spark'"]),
        (('id = "mine"', 'id = "mine"\noptions = {a = 1}'), ["options.a = 1", "text"]),
        (('id = "mine"', 'id = "mine"\nenv = {A = 1}'), ["env.A = 1", "text"]),
        (("[[sinks]]", "[sinks]"), ["sinks", "[[sinks]]"]),
        (('id = "mine"', "id = "), ["not TOML"]),
        (('id = "mine"', 'id = "mine"\nworkload = "a b"'), ["workload = 'a b'", "letters, digits"]),
        (('id = "mine"', 'id = "mine"\nprogram = "job.py"'), ["has no key 'program'"]),
        (('"mine"', '"spark"'), ["id = 'spark'", "an id of your own (spark is a shipped"]),
        (('"mine"', '"Kafka_Streams"'), ["id = 'Kafka_Streams'", "(kafka-streams is a shipped"]),
        (('"mine"', '"fake"'), ["id = 'fake'", "an id of your own"]),
        ((', "{config}"', ""), ["command = ['{python}', 'job.py']", "{config}, the path of the engine's config"]),
        ((', "{config}"', ', "{{config}}"'), ["{config}, the path of the engine's config"]),
    ],
)
def test_a_mistake_is_named_with_key_value_and_what_is_allowed(tmp_path, change, named):
    path = written(tmp_path, GOOD.replace(*change))

    with pytest.raises(UsageError) as wrong:
        load(str(path))

    assert str(path) in str(wrong.value)
    for part in named:
        assert part in str(wrong.value)


def test_every_manifest_that_is_shown_or_tried_can_be_read(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda program: program)  # an example's need not be here
    root = Path(__file__).resolve().parents[3]
    found = [path for folder in ("examples", "tests") for path in (root / folder).rglob("manifest.toml")]

    assert found
    assert all(load(str(path)).home == str(path.parent) for path in found)


def test_two_sinks_of_one_name_are_refused(tmp_path):
    path = written(tmp_path, GOOD + GOOD[GOOD.index("[[sinks]]") :])

    with pytest.raises(UsageError, match="'default' is used twice"):
        load(str(path))


@pytest.mark.parametrize("engine", ["no/such/folder", "missing.toml"])
def test_a_path_without_a_manifest_is_named(engine):
    with pytest.raises(UsageError, match=r"The manifest .* does not exist"):
        load(engine)


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(UsageError, match="nearest: 'spark'"):
        load("sprak")


def test_what_extends_another_engine_has_all_that_it_does_not_say_itself():
    base, manifest = load("spark"), load("spark-pandas")

    assert (manifest.sinks, manifest.command, manifest.evidence) == (base.sinks, base.command, base.evidence)
    assert (manifest.job, manifest.options) == ("spark", {"streamgauge.parser": "pandas"})
    assert (base.job, base.options) == ("spark", {})
    assert manifest.home != base.home


@pytest.mark.parametrize("engine", SHIPPED)
def test_anybody_may_extend_any_shipped_engine(tmp_path, engine):
    base = load(engine)

    manifest = load(str(written(tmp_path, f'id = "mine"\nextends = "{engine}"\nready_s = 7')))

    assert (manifest.id, manifest.ready_s, manifest.shipped, manifest.home) == ("mine", 7, False, str(tmp_path))
    assert (manifest.job, manifest.command, manifest.packages, manifest.java, manifest.options, manifest.sinks) == (
        *(base.job, base.command, base.packages, base.java, base.options, base.sinks),
    )


def test_a_version_is_the_same_engine_in_an_environment_of_its_own():
    base, manifest = load("spark"), load("spark@4.0.1")

    assert (manifest.id, manifest.job, manifest.packages, manifest.ivy) == (
        "spark@4.0.1",
        "spark",
        *2 * ["spark@4.0.1"],
    )
    assert (manifest.sinks, manifest.command, manifest.shipped) == (base.sinks, base.command, True)
    assert manifest.on_spark
    assert not load("reference").on_spark


@pytest.fixture
def payments(tmp_path, monkeypatch):
    """The jobs of a second workload, of which one engine has one."""
    jobs = tmp_path / "workloads" / "payments" / "jobs"
    jobs.mkdir(parents=True)
    (jobs / "spark.toml").write_text(
        'program = "shop.py"\nevidence = "none"\nresults = "kafka:payments"\njava = ["Shop.java"]\n'
        '[[sinks]]\nname = "topic"\nlate = "keep"\nguarantee = "at-least-once"\n'
    )
    (jobs / "shop.py").touch()
    monkeypatch.setattr(shipped, "WORKLOADS", tmp_path / "workloads")
    return jobs


def test_an_engine_is_the_same_whatever_it_is_asked_and_its_job_is_not(payments):
    manifest = load("spark", "payments")

    assert (manifest.workload, manifest.results, manifest.evidence) == ("payments", "kafka:payments", "none")
    assert [claim.name for claim in manifest.sinks] == ["topic"]
    assert (manifest.checksum, manifest.ivy, manifest.ready_s) == (False, "spark", 180)
    assert argv_of(manifest, manifest.command, Path("orders"))[1] == str(payments / "shop.py")
    assert environments.source_of(manifest, "Shop.java") == payments / "Shop.java"
    assert (load("spark@4.0.1", "payments").sinks, load("spark").workload) == (manifest.sinks, "payments")


@pytest.mark.parametrize("engine", ["reference", "spark-pandas"])
def test_an_engine_without_a_job_is_refused_and_those_that_have_one_are_named(payments, engine):
    with pytest.raises(UsageError, match=f"{engine} has no job for .* payments. Those .* one: spark. Choose"):
        load(engine, "payments")


def test_who_extends_an_engine_without_a_job_brings_all_of_it(payments, tmp_path):
    own = GOOD.replace('"mine"', '"mine"\nextends = "reference"')
    assert load(str(written(tmp_path, own)), "payments").ready_s == 30

    with pytest.raises(UsageError, match="engine reference has no job for the workload payments"):
        load(str(written(tmp_path, 'id = "mine"\nextends = "reference"')), "payments")


@pytest.mark.parametrize("engine", SHIPPED)
def test_every_job_is_there(engine):
    assert workloads_of(engine)
    for workload in workloads_of(engine):
        manifest = load(engine, workload)
        assert job_path(manifest).is_file() or manifest.java
        assert manifest.workload == workload


def test_somebodys_own_engine_is_of_the_workload_that_it_names_or_of_any(tmp_path):
    path = str(written(tmp_path, GOOD.replace('"mine"', '"mine"\nworkload = "shop"')))

    assert (load(path).workload, load(path, "shop").workload) == ("shop", "shop")
    with pytest.raises(UsageError, match="for the workload shop, but the run uses visits"):
        load(path, "visits")
    assert load(str(written(tmp_path, GOOD)), "visits").workload == "visits"


@pytest.mark.parametrize(
    ("engine", "named"),
    [
        ("spark@3.5.7", ["spark@3.5.7 is too old", "try_cast", "4.0.0"]),
        ("spark@newest", ["spark@newest", "three numbers", "spark@4.1.1"]),
        ("spark@", ["spark@ is", "three numbers"]),
        ("spark@4.1", ["three numbers"]),
        ("spark@../4.1.1", ["three numbers"]),
        ("flink@2.1.0", ["flink@2.1.0 is too old", "connector", "2.2.0"]),
        ("flink@2.2", ["three numbers", "flink@2.2.1"]),
        ("reference@1.0.0", ["reference@1.0.0", "Only spark and flink"]),
        ("spark-tws@4.1.1", ["spark-tws@4.1.1", "Only spark and flink"]),
        ("sprak@4.1.1", ["Unknown engine 'sprak@4.1.1'"]),
    ],
)
def test_what_is_no_version_is_refused_by_a_sentence(engine, named):
    with pytest.raises(UsageError) as refused:
        load(engine)

    for part in named:
        assert part in str(refused.value)


def test_a_manifest_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "manifest.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(UsageError, match="not TOML"):
        load(str(tmp_path))


def test_the_orders_are_for_the_owner_only_and_their_secrets_are_not_printed(tmp_path):
    kafka = KafkaAddress("localhost:1", java={"sasl.jaas.config": "hidden"}, librdkafka={"sasl.password": "hidden"})
    config = replace(RUN_CONFIG, kafka=kafka, redis=RedisAddress("redis://:hidden@localhost:1/0"), jars=("a.jar",))
    (tmp_path / "engine.json").touch(0o644)

    path = config.write(tmp_path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["kafka"]["java"] == {"sasl.jaas.config": "hidden"}
    assert "hidden" not in repr(config)


def test_the_program_of_a_job_is_the_file_that_its_command_names_or_the_shipped_one(tmp_path):
    path = written(tmp_path, GOOD)
    (tmp_path / "job.py").touch()

    assert program_of(load(str(path))) == tmp_path / "job.py"
    assert program_of(load("spark")).name == "spark.py"


@pytest.mark.parametrize(
    ("command", "ivy", "on_jvm"),
    [
        (("java", "-jar", "mine.jar"), "", True),
        (("{java}", "-jar", "mine.jar"), "", True),
        (("{python}", "job.py"), "spark@4.1.3", True),
        (("{python}", "java.py"), "", False),
    ],
)
def test_a_manifest_shows_a_jvm_by_its_command_or_its_jars(command, ivy, on_jvm):
    assert EngineManifest("mine", command, ".", shipped=False, sinks=(), ivy=ivy).on_jvm is on_jvm


def test_results_that_a_command_prints_can_not_be_polled():
    mine = EngineManifest("mine", ("job",), ".", shipped=False, sinks=())

    assert mine.blind == ""
    assert "printed by a command" in replace(mine, read=("query",)).blind
