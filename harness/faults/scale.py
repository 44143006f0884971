"""The scale family: what a running job has changes for good. A worker is added or removed, or its topic grows.

Nothing breaks, so nothing is undone: a right job goes on with what it has now. Proofs come from the master, which
counts its workers, from the operating system, which has the processes of the executors, and from Kafka. Flink's
JobManager also reports with which parallelism the job runs: it rescales the job by itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from harness.engines.base import ClusterState, Workers
from harness.faults import kafka
from harness.faults.base import Context, Kind
from harness.faults.cluster import on_own_cluster
from harness.faults.members import ProcessStrike, chosen, is_executor, listed, pids_of
from harness.faults.run_at_poll import Moment
from harness.faults.strike import CannotStrikeError, length_ms, need_more_to_do, struck_by
from harness.model import FaultSpec, workers_of_master
from harness.util.texts import many

NEEDS = "Spark or flink-standalone with --cluster N"
SEND_EVERY_MS = 1000
READ_WITHIN_MS = 10_000  # after the last of them was sent; a job that takes longer is judged by its counts alone


class ChangeWorkers(ProcessStrike):
    """The number of workers changes. Flink's job then has to run with another parallelism, too."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._before: int | None = None

    def inject(self, now: Moment) -> str:
        workers = workers_of(now)
        need_more_to_do(now)
        state = workers.seen()
        if state is None or state.parallelism == 0:
            raise CannotStrikeError(f"the {workers.head} did not report a running job when its moment came")
        self._before = state.parallelism
        self._going_on.begin(now.engine)
        return self._change(workers)

    @abstractmethod
    def _change(self, workers: Workers) -> str:
        """Do it, and return a description."""

    def healed(self, now: Moment) -> str:
        """There is nothing to heal: return the proof that the job goes on with the executors that it has now."""
        went_on = self._going_on.seen(now)
        return f"it stays so: {many(len(executors_of(now)), 'executor')}; {went_on}" if went_on else ""

    def _rescaled(self, state: ClusterState) -> str:
        return (
            f", and runs the job with parallelism {state.parallelism} instead of {self._before}" if self._before else ""
        )


class AddWorker(ChangeWorkers):
    """One more worker, on which the master starts one more executor of the job."""

    colour = "tab:green"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._number = 0

    def _change(self, workers: Workers) -> str:
        self._number = workers.add_worker()
        return f"worker {self._number} was started beside {many(self._number - 1, 'worker')}"

    def landed(self, now: Moment) -> str:
        workers = workers_of(now)
        state, new = workers.seen(), workers.worker_pids(self._number)
        executors = [pid for pid in executors_of(now) if pid in new]
        if state is None or state.workers < workers.size or not executors:
            return ""
        if self._before and (state.parallelism or 0) <= self._before:
            return ""
        there = f"{counted(workers, state)}{self._rescaled(state)}"
        return f"{there}, and executor {listed(executors)} is there"


class RemoveWorker(ChangeWorkers):
    """The last worker is ended in order, as by Spark's stop-worker.sh, and no other takes its place."""

    def _change(self, workers: Workers) -> str:
        return workers.remove_worker()

    def landed(self, now: Moment) -> str:
        workers = workers_of(now)
        state = workers.seen()
        if state is None or state.workers > workers.size:
            return ""
        if self._before and not 0 < (state.parallelism or 0) < self._before:
            return ""
        return f"{counted(workers, state)}{self._rescaled(state)}"


class AddPartitions(kafka.AddPartitions):
    """New partitions get events for a while. The load itself is sealed before the run and goes to the old ones: these
    events are the harness's own, and count like all others.
    """

    colour = "tab:green"

    def __init__(self, count: int, per_s: int, hold_ms: float) -> None:
        super().__init__(count)
        self._per_s, self.hold_ms = per_s, hold_ms
        self._send_ms = self._landed_ms = self._until_ms = 0
        self._found_s: float | None = None

    def holds(self, now: Moment, landed_ms: int) -> bool:
        self._look(now, landed_ms)
        if now.now_ms >= self._send_ms:
            kafka.log_of(now).send(self._new, self._per_s)
            self._send_ms = now.now_ms + SEND_EVERY_MS
        self._landed_ms, self._until_ms = landed_ms, now.now_ms + READ_WITHIN_MS
        return super().holds(now, landed_ms)

    def healed(self, now: Moment) -> str:
        self._look(now, self._landed_ms)
        ends = kafka.ends_of(now)
        sent = sum(ends[p] for p in self._new)
        if not now.engine.manifest.progress:
            return f"they stay, and hold {sent:,} events; the engine reports no progress"
        read = sum(min(self._read(now, p), ends[p]) for p in self._new)
        if read < sent and now.now_ms < self._until_ms:
            return ""
        found = "" if self._found_s is None else f", the first of them {self._found_s:.1f} s after they were there"
        return f"they stay; the job has read {read:,} of {sent:,} events in them{found}"

    def _look(self, now: Moment, landed_ms: int) -> None:
        if self._found_s is None and any(self._read(now, p) for p in self._new):
            self._found_s = (now.now_ms - landed_ms) / 1000

    @staticmethod
    def _read(now: Moment, partition: int) -> int:
        return now.progress.offsets.get(partition, 0) if now.progress else 0


def workers_of(now: Moment) -> Workers:
    if now.engine.cluster is None:
        raise CannotStrikeError(f"{now.engine.manifest.id} has no cluster of this run")
    return now.engine.cluster


def counted(workers: Workers, state: ClusterState) -> str:
    return f"the {workers.head} counts {many(state.workers, 'worker')} as alive"


def executors_of(now: Moment) -> list[int]:
    return pids_of(chosen(now.engine, is_executor))


def on_workers(spec: FaultSpec, context: Context) -> Iterator[str]:
    """Yield why the run has no workers of its own."""
    if not context.manifest.on_task_managers:
        yield from on_own_cluster(spec, context)
    elif not workers_of_master(context.spec.master):
        yield f"{context.manifest.id} has one TaskManager with all slots: add --cluster 2"


def one_is_left(_: FaultSpec, context: Context) -> Iterator[str]:
    if workers_of_master(context.spec.master) == 1:
        yield "the cluster has one worker, and a job without any gets no executor: start it with --cluster 2"


def no_more_use(_: FaultSpec, context: Context) -> Iterator[str]:
    """Yield why Flink's job can't use one more TaskManager: it has no more tasks than partitions."""
    workers, partitions = workers_of_master(context.spec.master), context.spec.tape.partitions
    if context.manifest.on_task_managers and workers >= partitions:
        yield (
            f"the job has a task for each of {many(partitions, 'partition')} already, and can't use one more worker: "
            f"start with fewer, or give --partitions {workers + 1}"
        )


KINDS = (
    Kind(
        "add-worker",
        "one more worker joins the cluster, on which the job gets one more executor (of Flink, a TaskManager)",
        "uses the new executor (Spark without a restart, Flink after it restarted the job); no count changes",
        struck_by(lambda _, context: AddWorker(context), on_workers, no_more_use),
        needs=NEEDS,
    ),
    Kind(
        "remove-worker",
        "a worker is ended in order and for good, and the job loses its executor (of Flink, a TaskManager)",
        "goes on with the executors that are left (Flink restarts the job on them); no count changes",
        struck_by(lambda _, context: RemoveWorker(context), on_workers, one_is_left),
        needs=NEEDS,
    ),
    Kind(
        "add-partitions",
        "the topic gets more partitions, and each new one gets events of the harness for a while",
        "finds them by itself and reads them from their beginning",
        struck_by(
            lambda spec, _: AddPartitions(int(spec.options["count"]), int(spec.options["rate"]), length_ms(spec)),
            kafka.missing,
        ),
        needs=kafka.NEEDS,
        options={"count": "2", "rate": "100", "for": "10s"},
    ),
)
