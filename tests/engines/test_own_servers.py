"""Runs against servers as companies have them: TLS, SCRAM, ACLs, quotas, limits, a store that is full.

What a server refuses is said before the start where it can be known, else it makes the run UNKNOWN with the cause. It
never is a FAIL of the engine, and never "unexpected". A search for the password is part of each run.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
import redis as redis_py

from harness.model import Exit
from harness.services import kafka
from harness.services.addresses import free_ports
from harness.services.redis import EmbeddedRedis, connect
from harness.util.wait import wait_until
from tests.engines.test_runs import EXAMPLES, run, start, told
from tests.engines.trial import SOON_UP, WAITS
from tests.services.foreign import Foreign, names_of_runs
from tests.services.guarded import GROUP, PASSWORD, PREFIX, TOPIC, redis_user
from tests.services.test_load_workers import worker
from tests.services.tls import tls_before

if not shutil.which("openssl"):
    pytest.skip("NOT TESTED: servers with TLS, as there is no openssl", allow_module_level=True)

pytestmark = [pytest.mark.timeout(400), WAITS]
LOAD = ("--duration", "12s", "--rate", "2000", "--fault", "none")
UNEXPECTED = "Something unexpected happened"
REFERENCE = ("--engine", "reference")
SPARK = ("--engine", "spark", *SOON_UP)
OWN = ("--engine", EXAMPLES / "own-engine")


@pytest.fixture
def store(tmp_path):
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def admin(store):
    with connect(store.address) as client:
        yield client


@pytest.fixture
def user(request) -> str:
    return "".join(each if each.isalnum() else "-" for each in request.node.name)[-60:]


@pytest.fixture
def place(broker, store, user, tmp_path, monkeypatch):
    """Flags that name both servers, as a user of this test alone."""
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def flags(without: tuple[Any, ...] = (), *rules: str) -> list[object]:
        with connect(store.address) as client:
            redis_user(client, *rules)
        file = broker.user(user, without)
        address = store.address.url.replace("redis://", "redis://alice:${env:TEST_PASSWORD}@")
        return ["--kafka", broker.place, "--kafka-config", file, "--redis", address]

    return flags


@pytest.fixture
def tls(broker, store):
    """The address of the store's database 4, behind certificates on both sides, from one of its user's."""
    papers = broker.folder
    with tls_before(urlsplit(store.address.url).port, papers / "server.pem", papers / "ca.crt") as port:
        options = f"ssl_ca_certs={papers}/ca.crt&ssl_certfile={papers}/server.crt&ssl_keyfile={papers}/server.key"
        door = f"@127.0.0.1:{port}/4?{options}"
        yield lambda url: re.sub("@.*", lambda _: door, url.replace("redis://", "rediss://"))


def refused(tmp_path: Path, *arguments: object) -> str:
    """What a run says that does not begin. Nothing of it is written."""
    process = start(tmp_path / "runs", *arguments)
    out, err = process.communicate(timeout=100)
    assert process.returncode == Exit.BROKEN, err
    assert UNEXPECTED not in err
    assert PASSWORD not in out + err
    assert not (tmp_path / "runs").exists()
    return err


def in_mid_run(tmp_path: Path, do: Callable[[], object], *arguments: object) -> dict[str, Any]:
    """The answer of a run in which something is done to a server while the load goes on."""
    process = start(tmp_path / "runs", *arguments)
    await_moment(tmp_path / "runs", process, "epoch")
    do()
    answer = told(process)
    assert_no_secret(tmp_path / "runs")
    return answer


def await_moment(runs: Path, process: subprocess.Popen[str], kind: str) -> None:
    """Until this is in the history of the only run there."""

    def has_come() -> bool:
        assert process.poll() is None, process.communicate()
        return any(f'"kind":"{kind}"' in found.read_text() for found in runs.glob("*/history.jsonl"))

    wait_until(has_come, deadline_s=180, what=f"the run to come to {kind}")


def assert_no_secret(folder: Path) -> None:
    found = [path for path in folder.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert not found
    assert not [each for each in psutil.process_iter() if PASSWORD in " ".join(arguments_of(each))]


def arguments_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def unserved(answer: dict[str, Any], *words: str) -> None:
    """UNKNOWN, by the server and not by the engine, with its own name of the error or its counter."""
    assert answer["verdict"] == "UNKNOWN", answer["sentence"]
    assert "unserved" in answer["words"], answer["words"]
    said = json.dumps(answer)
    assert all(word in said for word in words), answer["sentence"]
    assert UNEXPECTED not in said


@pytest.mark.thorough
def test_what_would_fail_is_said_before_the_start(broker, place, user, admin, tmp_path):
    """One row each of what tests/services tries alone: that a run asks, before it writes anything."""
    no_group = place(((GROUP, "READ"),))
    assert "GROUP_AUTHORIZATION_FAILED, error 30" in refused(tmp_path, *REFERENCE, *LOAD, *no_group)
    broker.allow(user, (GROUP, "READ"))
    assert "HSET" in refused(tmp_path, *REFERENCE, *LOAD, *place((), "-hset"))
    admin.config_set("maxmemory", "2mb")
    assert "maxmemory-policy noeviction" in refused(tmp_path, *REFERENCE, *LOAD, *place())
    admin.config_set("maxmemory", "0")
    wrong = [each if each != broker.place else broker.address.bootstrap for each in place()]
    assert "could not be reached" in refused(tmp_path, *REFERENCE, *LOAD, *wrong)


def fill(admin: redis_py.Redis, policy: str) -> None:
    admin.config_set("maxmemory-policy", policy)
    admin.config_set("maxmemory", str(admin.info("memory")["used_memory"] - 200_000))


ENGINES = pytest.mark.parametrize(
    "engine", [REFERENCE, OWN, pytest.param(SPARK, marks=pytest.mark.thorough)], ids=["reference", "own", "spark"]
)


@pytest.mark.thorough
@ENGINES
def test_a_store_that_is_full_in_mid_run(place, admin, tmp_path, engine):
    answer = in_mid_run(tmp_path, lambda: fill(admin, "noeviction"), *engine, *LOAD, *place())
    unserved(answer, "OOM")


@pytest.mark.thorough
@ENGINES
def test_results_that_are_evicted(place, admin, tmp_path, engine):
    """When there are some: what is evicted before is written again."""

    def evict() -> None:
        wait_until(lambda: len([*admin.scan_iter(_type="hash")]) > 150, deadline_s=60, what="results of all campaigns")
        fill(admin, "allkeys-random")

    answer = in_mid_run(tmp_path, evict, *engine, *LOAD, *place())
    unserved(answer, "evicted_keys +")


@pytest.mark.thorough
@ENGINES
def test_a_command_that_is_taken_away(place, admin, tmp_path, engine):
    answer = in_mid_run(tmp_path, lambda: redis_user(admin, "-hset", "-multi"), *engine, *LOAD, *place())
    unserved(answer, "NOPERM")


@pytest.mark.thorough
@ENGINES
def test_rights_that_are_taken_away(broker, place, user, tmp_path, engine):
    flags = place()
    answer = in_mid_run(tmp_path, lambda: broker.deny(user, (TOPIC, "READ")), *engine, *LOAD, *flags)
    unserved(answer, "TOPIC_AUTHORIZATION_FAILED, error 29")


@pytest.mark.thorough
@ENGINES
def test_records_that_others_delete(broker, place, user, tmp_path, engine):
    def cut() -> None:
        (topic,) = [name for name in kafka.topic_ids(broker.address) if name.startswith(PREFIX)]
        kafka.delete_records(broker.address, topic, kafka.end_offsets(broker.address, topic))

    answer = in_mid_run(tmp_path, cut, *engine, *LOAD, *place())
    assert answer["verdict"] == "UNKNOWN", answer["sentence"]
    assert UNEXPECTED not in json.dumps(answer)


@pytest.mark.thorough
@ENGINES
def test_a_quota_that_is_put_on(broker, place, user, tmp_path, engine):
    """Of a third of the load: with less the run would take minutes."""
    answer = in_mid_run(tmp_path, lambda: broker.limit(user, producer_byte_rate=200_000.0), *engine, *LOAD, *place())
    unserved(answer, "throttle_time_ms")


def test_a_load_worker_that_joins_from_elsewhere_logs_in_with_its_own_file(place, tmp_path):
    """The run is given one file, and the worker another one."""
    flags, master = place(), f"127.0.0.1:{free_ports(1)[0]}"
    own = tmp_path / "own.properties"
    own.write_text(Path(str(flags[3])).read_text())
    process = start(tmp_path / "runs", *REFERENCE, *LOAD, *flags, "--workers", 1, "--bind", master)
    with worker(master, "--kafka-config", str(own)) as elsewhere:
        answer = told(process)
        said, _ = elsewhere.communicate(timeout=100)

    assert (answer["verdict"], elsewhere.returncode) == ("PASS", Exit.PASS), (answer["sentence"], said)
    assert f"{answer['totals']['planned'] - 2 * 4:,} records were sent for {master}" in said
    assert PASSWORD not in said
    assert_no_secret(tmp_path / "runs")


RIDES = EXAMPLES / "rides"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "engine",
    [
        *[("--engine", each) for each in ("reference", "flink", "flink-java", "kafka-streams", "quix")],
        *[("--engine", each, *SOON_UP) for each in ("spark", "spark-rtm", "spark-tws", "spark-pandas")],
        *[("--engine", EXAMPLES / each) for each in ("own-engine", "spark-job/fixed")],
        *[("--engine", each, "--workload", RIDES) for each in (RIDES, RIDES / "spark")],
        *[("--engine", each, "--workload", "page_visits") for each in ("reference", "spark")],
    ],
    ids=lambda flags: "-".join(Path(each).name for each in (flags[1], *flags[3:]) if "=" not in str(each)),
)
def test_a_user_of_a_prefix_is_served(broker, place, store, tls, tmp_path, engine):
    """Every engine writes below the prefix, and reads there what the run has put there. The shipped ones do so over
    TLS, which some examples do not know."""
    *_, redis = place((), "resetkeys", "~team:*")
    address = redis.replace("/0", "/4") if isinstance(engine[1], Path) else tls(redis)
    servers = ("--kafka", broker.address.bootstrap, "--redis", address, "--redis-prefix", "team:")
    with redis_py.Redis.from_url(store.address.url.replace("/0", "/4"), decode_responses=True) as admin:
        admin.set("theirs", "value")

        answer = run(tmp_path / "runs", *engine, *LOAD, *servers)

        assert answer["verdict"] == "PASS", answer["sentence"]
        assert [key for key in admin.scan_iter() if not key.startswith("team:")] == ["theirs"]


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["spark", "flink", "kafka-streams"])
def test_a_kill_over_tls_and_scram_passes(place, tls, tmp_path, engine):
    *kafka_flags, redis = place()
    flags = ("--duration", "20s", "--rate", "2000", "--watermark", "20s", "--fault", "kill@offset=50%")
    answer = run(tmp_path / "runs", "--engine", engine, *flags, *kafka_flags, tls(redis))
    assert answer["verdict"] == "PASS", answer["sentence"]
    assert_no_secret(tmp_path / "runs")


VERDICT = None
MOMENTS = ("begin", "ready", "epoch", "loaded")
ENDS = (signal.SIGKILL, signal.SIGINT, VERDICT)
TWENTY = (*(end for end in ENDS for _ in range(6)), signal.SIGKILL, VERDICT)


@pytest.mark.parametrize(
    "ends", [ENDS, pytest.param(TWENTY, marks=(pytest.mark.thorough, pytest.mark.timeout(1800)))], ids=["3", "20"]
)
def test_what_is_foreign_stays_as_it_was_however_a_run_ends(broker, place, store, tmp_path, ends):
    """And what is ours goes: what a killed run left, by the next one."""
    draw, database = random.Random(len(ends)), store.address.url.replace("/0", "/7")
    named = names_of_runs(PREFIX, "ad-impressions-reference", 30)
    topics, groups = [*named, f"{named[0]}.streams-log", "streamgauge"], [named[0], f"{named[0]}.streams", "theirs"]
    foreign = Foreign(broker.address, database, topics, groups)
    before, servers = foreign.bytes(), place()
    flags = [*REFERENCE, "--duration", "6s", "--rate", "1000", "--fault", "none", *servers, "--reset"]

    shuffled = draw.sample(ends[:-1], len(ends) - 1) if ends is TWENTY else ends[:-1]
    for number, end in enumerate(shuffled):
        process = start(runs := tmp_path / f"runs-{number}", *flags)
        if end is not VERDICT:
            await_own_topic(tmp_path, process)
            await_moment(runs, process, draw.choice(MOMENTS) if ends is TWENTY else MOMENTS[0])
            process.send_signal(end)
        process.communicate(timeout=300)
        assert foreign.bytes() == before
    process = start(runs := tmp_path / "runs", *flags)
    out, said = process.communicate(timeout=300)

    assert process.returncode == Exit.PASS, out + said
    assert "of this run stay in Redis" in out
    assert foreign.topics_beside(PREFIX) == set(), said
    assert_no_secret(runs)
    run = json.loads(out)["run"]
    theirs = [str(each).replace("/0", "/7") if str(each).startswith("redis://") else each for each in servers]
    assert code_of("run", "--out", runs, *REFERENCE, *LOAD, *theirs, "--reset") == Exit.USAGE
    assert code_of("doctor", *servers) in (Exit.PASS, Exit.BROKEN)  # the machine may lack something else
    assert [code_of(command, run) for command in ("recheck", "report", "rm")] == [Exit.PASS] * 3
    assert foreign.bytes() == before
    assert foreign.topics_beside(PREFIX) == set()
    for name in topics:
        kafka.delete_topic(broker.address, name)


SMALL = ("--duration", "6s", "--rate", "1000")
OTHERS: Mapping[str, tuple[object, ...]] = {
    "run": (*REFERENCE, *SMALL),
    "compare": ("reference", *SMALL),
    "chaos": (*REFERENCE, *SMALL, "--fault", "kill@t>=2s"),
    "search": (*REFERENCE, "--quick"),
    "upgrade": ("--from", "reference", "--to", "reference", *SMALL),
}


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_what_is_foreign_stays_as_it_was_whatever_command_ends_early(broker, place, store, tmp_path):
    """Each command that may be given servers, twice by Ctrl-C and twice by SIGKILL; then one run to its verdict."""
    database = store.address.url.replace("/0", "/7")
    named = [name for each in OTHERS for name in names_of_runs(PREFIX, f"{each}-reference", 4)]
    foreign = Foreign(broker.address, database, named, [named[0], "theirs"])
    before, servers = foreign.bytes(), (*place(), "--reset")
    ends = [(does, end) for does in OTHERS for end in (signal.SIGINT, signal.SIGKILL) * 2]
    for number, (does, end) in enumerate(ends):
        known = {*topics_of_ours(tmp_path)}
        process = start(tmp_path / f"{does}-{number}", *OTHERS[does], *servers, does=does)
        await_another_topic(tmp_path, known, process)
        assert process.poll() is None, process.communicate()
        process.send_signal(end)
        process.communicate(timeout=300)
        assert foreign.bytes() == before, (does, end)

    answer = run(tmp_path / "runs", *OTHERS["run"], *servers)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert foreign.bytes() == before
    assert foreign.topics_beside(PREFIX) == set()


def await_another_topic(tmp_path: Path, known: set[str], process: subprocess.Popen[str]) -> None:
    """Until a run of whatever process has recorded a topic as its own."""

    def recorded() -> bool:
        assert process.poll() is None, process.communicate()
        return bool({*topics_of_ours(tmp_path)} - known)

    wait_until(recorded, deadline_s=180, what="the command to create a topic")


def topics_of_ours(tmp_path: Path) -> Iterator[str]:
    """What any run here has recorded as its own."""
    return (file.read_text() for file in (tmp_path / "state").rglob("topics/*.json"))


def await_own_topic(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    """Until this run has recorded a topic as its own."""
    owner = f'"owner": "{process.pid}:'

    def recorded() -> bool:
        assert process.poll() is None, process.communicate()
        return any(owner in file.read_text() for file in (tmp_path / "state").rglob("topics/*.json"))

    wait_until(recorded, deadline_s=180, what="the run to create its topic")


def code_of(*command: object) -> int:
    argv = [sys.executable, "-m", "harness", *map(str, command)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300).returncode
