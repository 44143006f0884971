"""The scale family: what a running job has changes for good. A worker is added or removed, or its topic grows.

Nothing breaks, so nothing is undone: a right job goes on with what it has now. Proofs come from the master, which
counts its workers, from the operating system, which has the processes of the executors, and from Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.faults import kafka
from harness.faults.base import Context, Kind
from harness.faults.cluster import NEEDS, cluster_of, on_cluster, on_own_cluster
from harness.faults.members import GoingOn, ProcessStrike, chosen, is_executor, listed, pids_of
from harness.faults.run_at_poll import Moment
from harness.faults.strike import length_ms, need_more_to_do, struck_by
from harness.model import FaultSpec, workers_of_master
from harness.util.texts import many

SEND_EVERY_MS = 1000
READ_WITHIN_MS = 10_000  # after the last of them was sent; a job that takes longer is judged by its counts alone


class AddWorker(ProcessStrike):
    """One more worker, on which the master starts one more executor of the job."""

    colour = "tab:green"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._number = 0

    def inject(self, now: Moment) -> str:
        cluster = cluster_of(now)
        need_more_to_do(now)
        self._going_on.begin(now.engine)
        self._number = cluster.add_worker()
        return f"worker {self._number} was started beside {many(self._number - 1, 'worker')}"

    def landed(self, now: Moment) -> str:
        cluster = cluster_of(now)
        state, new = cluster.seen(), cluster.worker_pids(self._number)
        executors = [pid for pid in executors_of(now) if pid in new]
        if state is None or state.workers < cluster.size or not executors:
            return ""
        return f"the master counts {many(state.workers, 'worker')} as alive, and executor {listed(executors)} is there"

    # There is nothing to heal: the worker stays.

    def healed(self, now: Moment) -> str:
        return stays(self._going_on, now)


class RemoveWorker(ProcessStrike):
    """The last worker is ended in order, as by Spark's stop-worker.sh, and no other takes its place."""

    def inject(self, now: Moment) -> str:
        cluster = cluster_of(now)
        need_more_to_do(now)
        self._going_on.begin(now.engine)
        return cluster.remove_worker()

    def landed(self, now: Moment) -> str:
        cluster = cluster_of(now)
        state = cluster.seen()
        if state is None or state.workers > cluster.size:
            return ""
        return f"the master counts {many(state.workers, 'worker')} as alive"

    def healed(self, now: Moment) -> str:
        return stays(self._going_on, now)


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


def stays(going_on: GoingOn, now: Moment) -> str:
    """Return the proof that the job goes on with the executors that it has now."""
    went_on = going_on.seen(now)
    return f"it stays so: {many(len(executors_of(now)), 'executor')}; {went_on}" if went_on else ""


def executors_of(now: Moment) -> list[int]:
    return pids_of(chosen(now.engine, is_executor))


def one_is_left(_: FaultSpec, context: Context) -> Iterator[str]:
    if workers_of_master(context.spec.master) == 1:
        yield "the cluster has one worker, and a job without any gets no executor: start it with --cluster 2"


KINDS = (
    Kind(
        "add-worker",
        "one more Spark worker joins the cluster, on which the job gets one more executor",
        "uses the new executor without a restart; no count changes",
        on_cluster(lambda _, context: AddWorker(context)),
        needs=NEEDS,
    ),
    Kind(
        "remove-worker",
        "a Spark worker is ended in order and for good, and the job loses its executor",
        "runs the lost tasks on the executors that are left; no count changes",
        struck_by(lambda _, context: RemoveWorker(context), on_own_cluster, one_is_left),
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
