"""The cluster family: a worker and the master are killed or frozen, and the master's own words are the proof."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from harness.engines.base import ClusterState, Member
from harness.faults import registry, scale
from harness.faults.cluster import KINDS
from harness.faults.registry import parse
from harness.model import EngineManifest, FaultSpec
from harness.util.durations import NotUnderstoodError
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults import CLAIM, MANIFEST, progress, report_of
from tests.quick.faults.test_faults_process import WithMembers, at

ON_SPARK = replace(MANIFEST, ivy="spark", sinks=(CLAIM,))
ON_FLINK = replace(MANIFEST, id="flink-standalone", ivy="flink", sinks=(CLAIM,))
WORKER = tuple(Member(pid, 1, ("java", "x"), of_cluster=True) for pid in (50, 51))


@dataclass
class ScriptedCluster:
    size: int = 2
    head: str = "master"
    parallelism: int | None = None
    alive: int = 2
    applications: int = 1
    serves: bool = True
    answers: bool = True
    there: tuple[int, ...] = (50, 51)
    story: list[str] = field(default_factory=list)

    def seen(self) -> ClusterState | None:
        state = ClusterState(self.serves, self.alive, self.applications, self.parallelism)
        return state if self.answers else None

    def worker_pids(self, number: int) -> tuple[int, ...]:
        return self.there

    def kill_worker(self, number: int) -> None:
        self.story.append(f"kill worker {number}")
        self.there = ()

    def start_worker(self, number: int) -> None:
        self.story.append(f"start worker {number}")
        self.there = (60,)

    def add_worker(self) -> int:
        self.size += 1
        self.start_worker(self.size)
        return self.size

    def remove_worker(self) -> str:
        self.story.append(f"remove worker {self.size}")
        self.size -= 1
        return f"SIGTERM to worker {self.size + 1}"

    def kill_master(self) -> int:
        self.story.append("kill master")
        self.answers = False
        return 40

    def start_master(self, *, recovers: bool) -> None:
        self.story.append(f"start master, recovers {recovers}")


@dataclass
class OnCluster(WithMembers):
    cluster: ScriptedCluster = field(default_factory=ScriptedCluster)


def create(text: str, master: str = "cluster[2]", manifest: EngineManifest = ON_SPARK):
    tape = replace(SPEC.tape, partitions=4)
    spec = replace(SPEC, tape=tape, fault=parse(text), sink=CLAIM.name, master=master)
    return registry.create(spec, manifest)


def spark() -> OnCluster:
    return OnCluster(newest=progress(3, 300))


def flink(parallelism: int) -> OnCluster:
    """Two TaskManagers, and a job that uses so many slots of them."""
    cluster = ScriptedCluster(head="JobManager", parallelism=parallelism)
    return OnCluster(newest=progress(3, 300), cluster=cluster)


def test_a_killed_worker_has_landed_when_the_master_misses_it_and_is_started_again_later():
    engine, fault = spark(), create("kill-worker(for=3s)@now")
    at(fault, engine, 1)
    at(fault, engine, 2)
    assert (engine.cluster.story, report_of(fault).landed) == (["kill worker 2"], False)
    engine.cluster.alive = 1
    at(fault, engine, 3)
    assert "the master counts 1 of 2 workers as alive" in report_of(fault).proof

    at(fault, engine, 3_004)
    assert engine.cluster.story == ["kill worker 2", "start worker 2"]
    engine.newest = progress(4, 400)
    at(fault, engine, 3_100)
    assert not report_of(fault).healed
    engine.cluster.alive = 2
    at(fault, engine, 3_200)

    report = report_of(fault)
    assert (report.landed, report.healed) == (True, True)
    assert "SIGKILL to worker 2 and all processes below it (50, 51)" in report.proof
    assert "from 300 to 400 records" in report.proof


@pytest.mark.parametrize(("recovery", "applications"), [("files", 1), ("none", 0)])
def test_a_killed_master_comes_back_with_what_it_wrote_down_or_with_nothing(recovery, applications):
    engine, fault = spark(), create(f"kill-master(for=2s, recovery={recovery})@now")
    at(fault, engine, 1)
    at(fault, engine, 2)
    assert report_of(fault).landed
    at(fault, engine, 2_003)
    assert engine.cluster.story == ["kill master", f"start master, recovers {recovery == 'files'}"]

    engine.cluster.answers, engine.cluster.alive, engine.cluster.applications = True, 1, 0
    engine.newest = progress(4, 400)
    at(fault, engine, 2_100)
    assert not report_of(fault).healed
    engine.cluster.alive, engine.cluster.serves = 2, False
    at(fault, engine, 2_200)
    assert not report_of(fault).healed
    engine.cluster.serves, engine.cluster.applications = True, applications
    at(fault, engine, 2_300)

    assert report_of(fault).healed
    assert f"2 workers and {applications} application" in report_of(fault).proof


def test_a_paused_worker_is_frozen_with_all_below_it_and_thawed():
    engine, fault = spark(), create("pause-worker(for=2s)@now")
    engine.there = (*engine.there, *WORKER)
    at(fault, engine, 1)
    assert engine.story == ["SIGSTOP [50, 51]"]
    engine.there = (*engine.there[:-2], *(replace(each, stopped=True) for each in WORKER))
    at(fault, engine, 2)
    assert report_of(fault).landed
    at(fault, engine, 2_003)
    assert engine.story[-1] == "SIGCONT [50, 51]"
    engine.there = (*engine.there[:-2], *WORKER)
    at(fault, engine, 2_100)

    assert report_of(fault).healed


EXECUTOR = Member(61, 60, ("java", "x.CoarseGrainedExecutorBackend"), of_cluster=True)


def test_an_added_worker_has_landed_when_the_master_counts_it_and_the_job_has_an_executor_on_it():
    engine, fault = spark(), create("add-worker@now")
    at(fault, engine, 1)
    assert engine.cluster.story == ["start worker 3"]
    engine.there, engine.cluster.there = (*engine.there, EXECUTOR), (60,)
    at(fault, engine, 2)
    engine.cluster.alive = 3
    at(fault, engine, 3)
    assert not report_of(fault).landed  # the executor is below another worker
    engine.cluster.there = (60, 61)
    at(fault, engine, 4)
    assert "the master counts 3 workers as alive, and executor 61 is there" in report_of(fault).proof
    at(fault, engine, 5)
    at(fault, engine, 6)
    assert not report_of(fault).healed
    engine.newest = progress(4, 400)
    at(fault, engine, 7)

    assert report_of(fault).healed
    assert "it stays so: 1 executor; it went on from 300 to 400 records" in report_of(fault).proof


def test_a_removed_worker_has_landed_when_the_master_misses_it_and_none_takes_its_place():
    engine, fault = spark(), create("remove-worker@now")
    at(fault, engine, 1)
    at(fault, engine, 2)
    assert (engine.cluster.story, report_of(fault).landed) == (["remove worker 2"], False)
    engine.cluster.alive, engine.cluster.answers = 1, False
    at(fault, engine, 2)
    assert not report_of(fault).landed  # the master does not answer
    engine.cluster.answers = True
    at(fault, engine, 3)
    assert "SIGTERM to worker 2; the master counts 1 worker as alive" in report_of(fault).proof
    engine.newest = progress(4, 400)
    for ms in range(4, 8):
        at(fault, engine, ms)

    assert report_of(fault).healed
    assert engine.cluster.story == ["remove worker 2"]


TASK_MANAGER = Member(61, 60, ("java", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"))


def test_an_added_task_manager_has_landed_when_the_job_runs_with_a_larger_parallelism():
    engine, fault = flink(2), create("add-worker@now", manifest=ON_FLINK)
    at(fault, engine, 1)
    assert engine.cluster.story == ["start worker 3"]
    engine.there, engine.cluster.there, engine.cluster.alive = (TASK_MANAGER,), (61,), 3
    for parallelism in (2, 0):  # not rescaled yet, then being restarted
        engine.cluster.parallelism = parallelism
        at(fault, engine, 2)
        assert not report_of(fault).landed
    engine.cluster.parallelism = 3
    at(fault, engine, 3)

    proof = (
        "the JobManager counts 3 workers as alive, and runs the job with parallelism 3 instead of 2, and executor 61"
    )
    assert proof in report_of(fault).proof
    engine.newest = progress(4, 400)
    at(fault, engine, 4)
    at(fault, engine, 5)
    assert report_of(fault).healed


def test_a_removed_task_manager_has_landed_when_the_job_runs_with_a_smaller_parallelism():
    engine, fault = flink(2), create("remove-worker@now", manifest=ON_FLINK)
    at(fault, engine, 1)
    engine.cluster.alive = 1
    for parallelism in (2, 0):
        engine.cluster.parallelism = parallelism
        at(fault, engine, 2)
        assert not report_of(fault).landed
    engine.cluster.parallelism = 1
    at(fault, engine, 3)

    assert "counts 1 worker as alive, and runs the job with parallelism 1 instead of 2" in report_of(fault).proof


@pytest.mark.parametrize("text", ["add-worker@now", "remove-worker@now"])
def test_a_job_of_flink_that_does_not_run_can_t_be_rescaled(text):
    engine, fault = flink(0), create(text, manifest=ON_FLINK)
    at(fault, engine, 1)

    assert "n/a: the JobManager did not report a running job" in report_of(fault).proof
    assert engine.cluster.story == []


@pytest.mark.parametrize(
    ("text", "master", "why"),
    [
        ("add-worker@now", "local[*]", "flink-standalone has one TaskManager with all slots: add --cluster 2"),
        ("remove-worker@now", "cluster[1]", "the cluster has one worker"),
        ("add-worker@now", "cluster[4]", "a task for each of 4 partitions already, and can't use one more worker"),
        ("kill-worker@now", "cluster[2]", "flink-standalone does not run on a Spark cluster"),
    ],
)
def test_what_a_cluster_of_flink_can_t_have_is_refused(text, master, why):
    assert why in " ".join(create(text, master, ON_FLINK).needs)


def test_the_only_worker_stays():
    assert "one worker" in " ".join(create("remove-worker@now", "cluster[1]").needs)
    assert create("add-worker@now", "cluster[1]").needs == ()


@pytest.mark.parametrize("kind", [*KINDS, *scale.KINDS[:2]], ids=lambda kind: kind.name)
@pytest.mark.parametrize("master", ["local[*]", "local-cluster[2,1,1024]", "spark://m:7077"])
def test_only_a_cluster_of_the_run_can_be_struck(kind, master):
    (why,) = create(f"{kind.name}@now", master).needs

    assert "add --cluster 2" in why


@pytest.mark.parametrize("text", ["zombie@c1:batch=3", "two-drivers@now"])
def test_a_second_driver_would_get_no_cores(text):
    assert "holds all cores" in " ".join(create(text).needs)
    assert "holds all cores" not in " ".join(create(text, "local[2]").needs)


@pytest.mark.parametrize("text", ["kill-executor@now", "pause-executor@now"])
def test_executors_of_a_cluster_can_be_struck(text):
    assert create(text).needs == ()


def test_a_recovery_that_there_is_not_is_refused():
    spec = FaultSpec("kill-master(recovery=zoo)@now", "kill-master", options={"for": "5s", "recovery": "zoo"})
    with pytest.raises(NotUnderstoodError, match="'zoo' is not one of files, none"):
        registry.create(replace(SPEC, fault=spec, master="cluster[2]", sink=CLAIM.name), ON_SPARK)
