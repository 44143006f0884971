"""From scenario and flags to a spec: defaults, flags that win, and a sentence for every mistake."""

from __future__ import annotations

import inspect
from dataclasses import replace

import msgspec
import pytest

from generators.profiles import PROFILES
from harness.config import plan
from harness.engines import fake, manifest
from harness.model import DEFAULT_SCENARIO, RunSpec, SinkClaim, UsageError
from tests.quick.cases import SPEC as RUN
from workloads import shipped

ON_CLUSTER = {"master": "spark://m:7077", "kafka": "k:9092", "redis": "redis://r:6379/0", "checkpoint": "/shared"}


def resolve(flags=None, scenario=None):
    return plan.resolve("test", scenario or {}, flags or {}, manifest.load)[0]


def refusal(flags=None, scenario=None) -> str:
    with pytest.raises(UsageError) as refused:
        resolve(flags, scenario)
    return str(refused.value)


def test_the_defaults_are_the_run_that_the_readme_promises():
    spec = resolve()

    assert (spec.engine, spec.sink, spec.fault.text) == ("spark", "absolute", "kill@c3:batch=3")
    assert sum(s.duration_ms for s in spec.tape.profile) == 30_000
    assert spec.tape.profile[0].start_per_s == 10_000
    assert (spec.disorder_name, spec.late_dropped_max) == ("mobile", 0)
    assert (spec.tape.probes, spec.tape.probe_every_ms) == (300, 10_000)


def test_a_flag_wins_over_the_scenario_and_reads_the_same_texts():
    spec = resolve({"rate": "500", "duration": "2m", "seed": "9"}, {"rate": 1000, "window": "5s"})

    assert spec.tape.profile[0].start_per_s == 500
    assert spec.tape.profile[0].duration_ms == 120_000
    assert (spec.window_ms, spec.tape.seed) == (5000, 9)


def test_a_setting_of_the_engine_leaves_those_of_the_scenario():
    spec = resolve({"conf": ["spark.b=3", "spark.c=4"]}, {"conf": {"spark.a": "1", "spark.b": "2"}})

    assert spec.conf == {"spark.a": "1", "spark.b": "3", "spark.c": "4"}


def test_engines_without_crash_points_are_killed_at_half_of_the_events():
    assert resolve({"engine": "reference"}).fault.text == "kill@offset=50%"


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"rte": 5}, ["unknown key 'rte'", "= 5", "'rate'"]),
        ({"rate": "fast"}, ["rate = 'fast'", "above 0"]),
        ({"rate": -1}, ["rate = -1", "above 0"]),
        ({"rate": True}, ["rate = True", "above 0"]),
        ({"duration": 30}, ["duration = 30", "with its unit"]),
        ({"campaigns": 1.5}, ["campaigns = 1.5", "whole number"]),
        ({"partitions": 0}, ["partitions = 0", "from 1"]),
        ({"client": "confluant"}, ["client = 'confluant'", "kafka-python", "'confluent'"]),
        ({"sink": "absolut"}, ["sink = 'absolut'", "fenced", "'absolute'"]),
        ({"engine": "sparc"}, ["'sparc'", "'spark'"]),
        ({"disorder": "mobil"}, ["disorder = 'mobil'", "'mobile'"]),
        ({"disorder": "mobile,late_shar=0.1"}, ["late_shar", "'late_share'"]),
        ({"disorder": {"late_share": 2}}, ["disorder.late_share = 2", "0 to 1"]),
        ({"disorder": {"duplicate_share": 0.1}}, ["duplicate_gap", "above 0"]),
        ({"disorder": {"skew_min_ms": 5, "skew_max_ms": 1}}, ["skew_min_ms = 5", "skew_max_ms"]),
        ({"profile": "stedy"}, ["profile = 'stedy'", "'steady'"]),
        ({"profile": {"kind": "burst", "factr": 3}}, ["'factr'", "'factor'"]),
        ({"profile": {"kind": "burst", "burst_ms": 60_000}}, ["burst_ms = 60000", "less than the duration"]),
        ({"profile": {"kind": "burst", "burst_ms": 9000, "count": 4}}, ["burst_ms = 9000", "(30000 ms), 4 times"]),
        ({"profile": {"kind": "burst", "count": 1000}, "duration": "500ms"}, ["burst_ms = 1", "(500 ms), 1000 times"]),
        ({"profile": {"kind": "burst", "count": 0}}, ["profile.count = 0", "a whole number from 1 to 1,000"]),
        ({"profile": {"kind": "steps", "count": 1_000_000_000}}, ["profile.count = 1000000000", "1 to 1,000"]),
        ({"profile": {"kind": "square", "half_period_ms": 1}}, ["half_period_ms = 1", "from 100 to"]),
        ({"profile": {"kind": "square", "low_per_s": 1e30}}, ["low_per_s = 1e+30", "0 to 10,000,000"]),
        ({"profile": {"kind": "burst", "factor": "ten"}}, ["factor = 'ten'", "from 0 to 1,000"]),
        ({"fault": "kil@c3"}, ["kil", "'kill'"]),
        ({"fault": "kill@c9"}, ["c9", "c1, c2, c3, c4"]),
        ({"late_dropped_max": -1}, ["late_dropped_max = -1", '"any"']),
        ({"conf": {"": "x"}}, ["conf", "k=v"]),
        ({"redis": "http://x"}, ["redis = 'http://x'", "redis://"]),
        ({"reset": True}, ["--redis"]),
        ({"redis_prefix": "a:"}, ["--redis"]),
        ({"redis_prefix": "a*", "redis": "redis://x"}, ["redis_prefix = 'a*'", "letters, digits"]),
        ({"kafka_config": "x.properties"}, ["--kafka"]),
        ({"master": "mesos://x"}, ["master = 'mesos://x'", "spark://"]),
        ({"master": "local[0]"}, ["master = 'local[0]'", "local[N]"]),
        ({"cores": 0.05}, ["cores = 0.05", "such as 2, 0.5 or 1.5"]),
        ({"cores": "1.234"}, ["cores = '1.234'", "such as 2, 0.5 or 1.5"]),
        ({"cores": 1, "cluster": 2}, ["cores = 1", "as large as its number of workers"]),
        ({"master": "local-cluster[2,1]"}, ["local-cluster[2,1]", "local-cluster[WORKERS,CORES,MIB]"]),
        ({"master": "locally"}, ["master = 'locally'"]),
        (
            {"engine": "reference", "checksum": True, "objective_p99_ms": 5},
            ["objective_p99_ms", "Leave one of them out"],
        ),
        ({"seam": "time"}, ["seam = 'time'", "Also give --history"]),
        ({"engine": "SPARC"}, ["'SPARC'", "(nearest: 'spark')"]),
        ({"seam": "offst"}, ["is expected (nearest: 'offset')"]),
        ({"master": "yarn"}, ["--kafka, --redis, --checkpoint"]),
        ({"master": "spark://127.0.0.1:7077", "backfill": "spark-batch"}, ["backfill", "no processes of either"]),
        ({"cluster": 2, "backfill": "spark-batch"}, ["backfill", "executors of cluster[2]"]),
        ({"cluster": 2, "master": "local[2]"}, ["cluster = 2", "master = 'local[2]'", "Leave one of them out"]),
        ({"cluster": 2, "engine": "reference"}, ["cluster is one of Spark", "reference"]),
        ({"cluster": 5, "engine": "flink-standalone"}, ["cluster = 5", "--partitions 5"]),
        ({"master": "local[2]", "engine": "flink-standalone"}, ["master = 'local[2]'", "--cluster 2"]),
        ({"bind": "127.0.0.1:5557"}, ["bind = '127.0.0.1:5557'", "also say how many, with --workers N"]),
        ({"workers": 0}, ["workers = 0", "from 1 to 256"]),
        ({"workers": 12}, ["workers = 12", "11 ad servers", "Give at most 11"]),
        ({"workers": 2, "engine": "fake"}, ["workers = 2", "fake is simulated, and so is its load"]),
        ({"workers": 2, "bind": "here"}, ["bind = 'here'", "HOST:PORT, an address of this machine"]),
        ({"workers": 2, "bind": "10.0.0.5:70000"}, ["bind = '10.0.0.5:70000'", "HOST:PORT"]),
        (
            {"workers": 2, "bind": "10.0.0.5:5557"},
            ["the embedded Kafka can be reached from this machine only", "--kafka"],
        ),
        (
            {"workers": 2, "bind": "10.0.0.5:5557", "kafka": "localhost:9092"},
            ["--kafka localhost:9092 can be reached from this machine only"],
        ),
        ({"cluster": 17}, ["cluster = 17", "from 1 to 16"]),
        ({"master": "cluster[17]"}, ["cluster = 17", "at most 16 workers"]),
        ({**ON_CLUSTER, "engine": "spark-postgresql"}, ["also give --sql"]),
        ({**ON_CLUSTER, "redis": "redis://localhost:6379/0"}, ["--redis names a loopback address"]),
        (ON_CLUSTER, ["whose executors connect to the driver", "--conf spark.driver.host=ADDRESS"]),
        ({**ON_CLUSTER, "conf": {"spark.driver.host": "0.0.0.0"}}, ["no address", "spark.driver.bindAddress=0.0.0.0"]),
        ({"campaigns": 100_000, "window": "1ms"}, ["cells"]),
        ({"probes": -1}, ["probes = -1", "from 0"]),
        ({"window": "10ms"}, ["probes = 300", "30,000 records a second", "Lower probes"]),
    ],
)
def test_mistakes_name_key_value_what_is_allowed_and_the_nearest(given, parts):
    text = refusal(scenario=given)

    for part in parts:
        assert part in text
    assert text.endswith(".")


def test_disorder_beyond_the_watermark_needs_leave_to_drop():
    dials = {"disorder": {"late_share": 0.1, "late_min_ms": 1, "late_max_ms": 20_000}}

    assert "reaches 20000 ms back" in refusal(scenario=dials)
    assert "reaches" in refusal(flags={"watermark": "5s"})
    assert resolve(scenario={**dials, "late_dropped_max": 0}).late_dropped_max == 0
    assert resolve(scenario={**dials, "engine": "reference"}).late_dropped_max == 0


@pytest.mark.parametrize("master", ["local", "local[*]", "local[8]", "local[2,4]", "local-cluster[2, 1, 1024]"])
def test_what_spark_takes_as_a_local_master_may_be_said(master):
    assert resolve({"master": master}).master == master


@pytest.mark.parametrize(
    "given",
    [
        {"master": "spark://127.0.0.1:7077"},
        {"master": "spark://localhost:7077,[::1]:7077"},
        {**ON_CLUSTER, "conf": {"spark.driver.host": "10.0.0.5"}},
        {**ON_CLUSTER, "master": "k8s://https://api:6443", "conf": {"spark.driver.host": "10.0.0.5"}},
    ],
)
def test_a_cluster_on_this_machine_needs_nothing_and_one_elsewhere_the_address_of_the_driver(given):
    assert resolve(given).master == given["master"]


@pytest.mark.parametrize(
    "given",
    [
        {"workers": 2},
        {"workers": 2, "bind": "127.0.0.1:5557"},
        {"workers": 2, "bind": "0.0.0.0:5557", "kafka": "b:9092"},
    ],
)
def test_workers_are_here_or_can_reach_kafka(given):
    spec = resolve(given)
    assert (spec.workers, spec.bind) == (2, given.get("bind", ""))


def test_a_cluster_of_the_run_is_a_master_of_its_own():
    assert resolve({"cluster": 2}).master == resolve({"master": "cluster[2]"}).master == "cluster[2]"
    assert resolve(flags={"cluster": "3"}, scenario={"cluster": 2}).master == "cluster[3]"
    assert resolve().master == "local[*]"


@pytest.mark.parametrize("text", ["0", "0s", "0 ms"])
def test_what_comes_in_order_may_have_no_watermark_at_all(text):
    spec = resolve({"watermark": text, "disorder": "none"})

    assert (spec.watermark_ms, spec.late_dropped_max) == (0, 0)
    assert "leaves 0 ms" in refusal(flags={"watermark": text})


@pytest.mark.parametrize("preset", ["yahoo", "late", "storm"])
def test_presets_that_send_late_events_let_them_be_dropped_unless_told(preset):
    assert resolve({"disorder": preset}).late_dropped_max is None
    assert resolve({"disorder": preset}, {"late_dropped_max": 0}).late_dropped_max == 0


def test_a_preset_can_be_changed_by_dials():
    spec = resolve({"disorder": "mobile,duplicate_share=0.01,duplicate_gap=10,delay_max_ms=2000"})

    assert spec.disorder_name == "mobile+"
    assert (spec.tape.disorder.duplicate_share, spec.tape.disorder.delay_max_ms) == (0.01, 2000)
    assert spec.tape.disorder.delay_scale_ms == 300


def test_every_number_of_a_profile_has_its_bounds():
    numbers = {name for build in PROFILES.values() for name in list(inspect.signature(build).parameters)[2:]}

    assert numbers == set(plan.PROFILE_NUMBERS)


@pytest.mark.parametrize("text", ["rate = ", "\xff\xfe"])
def test_a_scenario_that_is_not_toml_is_refused(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(UsageError, match="is not TOML"):
        plan.read_scenario(str(path))


def test_an_unknown_scenario_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="nearest: 'storm'"):
        plan.read_scenario("strom")


def test_a_password_in_an_address_is_not_saved():
    spec = resolve({"redis": "redis://me:secret@10.0.0.1:6379/3?password=secret"})

    assert spec.public()["redis"] == "redis://***@10.0.0.1:6379/3?***"
    assert "secret" not in str(spec.public())


@pytest.fixture
def payments(monkeypatch):
    monkeypatch.setitem(shipped.WORKLOADS, "payments", "tests.quick.payments")


def test_a_scenario_may_ask_another_question(payments):
    spec, _ = plan.resolve("mine", {"workload": "payments", "engine": "fake"}, {}, lambda *_: KEEPS)

    assert (spec.workload, spec.tape.workload, spec.tape.campaigns, spec.tape.probes) == ("payments", "payments", 0, 0)
    assert msgspec.convert(msgspec.to_builtins(spec.public()), RunSpec) == spec


@pytest.mark.parametrize("key", ["campaigns", "probes"])
def test_a_key_of_one_workload_is_refused_by_another(payments, key):
    with pytest.raises(UsageError, match=f"{key} = 5 has no meaning for the workload payments"):
        plan.resolve("mine", {"workload": "payments", key: 5}, {}, lambda *_: KEEPS)


def test_a_workload_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="no workload 'ad_impression'"):
        plan.resolve("mine", {"workload": "ad_impression"}, {}, lambda *_: KEEPS)


@pytest.mark.parametrize("engine", ["spark", "reference", "fake"])
def test_an_engine_without_a_job_of_the_workload_is_refused(payments, engine):
    with pytest.raises(UsageError, match=f"{engine} has no job for the workload payments. No shipped engine has"):
        plan.resolve("mine", {"workload": "payments", "engine": engine}, {}, manifest.load)


def test_values_that_may_fall_need_evidence_of_what_was_dropped(payments):
    with pytest.raises(UsageError, match="payments can't be judged with sink 'x' of engine fake: cents may fall"):
        plan.resolve("mine", {"workload": "payments"}, {}, lambda *_: _claiming("drop"))


def _claiming(late):
    return replace(fake.MANIFEST, sinks=(SinkClaim("x", late, "none"),), evidence="none")


KEEPS = _claiming("keep")


@pytest.mark.parametrize(
    ("declared_in", "scenario", "title"),
    [("", "late", "late"), ("mine.toml", DEFAULT_SCENARIO, "mine"), ("mine.toml", "late", "mine-late")],
)
def test_a_run_is_named_by_its_scenario_and_by_the_workload_that_a_user_declared(declared_in, scenario, title):
    spec = replace(RUN, tape=replace(RUN.tape, workload="mine"), declared_in=declared_in, scenario=scenario)

    assert spec.title == title


@pytest.mark.parametrize(("given", "cores"), [("2", 2), (2.0, 2), ("0.5", 0.5), (1.25, 1.25), (0, 0)])
def test_a_whole_number_of_cores_stays_whole(given, cores):
    found = resolve({"cores": given}).cores

    assert (found, type(found)) == (cores, type(cores))
