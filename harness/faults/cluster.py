"""The cluster family: the master and the workers of a Spark cluster that the run started.

A worker is killed or frozen with all processes below it, as when its machine ends or hangs. Proofs come from the
operating system and from the master, which counts its workers and applications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.engines.base import Cluster
from harness.faults.base import Context, Fault, Kind
from harness.faults.members import ProcessStrike, listed
from harness.faults.run_at_poll import Moment
from harness.faults.signals import Pause
from harness.faults.strike import CannotStrikeError, length_ms, struck_by
from harness.model import FaultSpec, workers_of_master
from harness.util.durations import NotUnderstoodError
from harness.util.texts import many

FILES, NONE = "files", "none"  # what a restarted master recovers from
NEEDS = "Spark with --cluster N"


def cluster_of(now: Moment) -> Cluster:
    if not isinstance(now.engine.cluster, Cluster):
        raise CannotStrikeError(f"{now.engine.manifest.id} has no cluster of this run")
    return now.engine.cluster


class KillWorker(ProcessStrike):
    """SIGKILL to the last worker and all processes below it; it is started again after a while."""

    def __init__(self, context: Context, hold_ms: float) -> None:
        super().__init__(context)
        self.hold_ms = hold_ms
        self._number = 0

    def inject(self, now: Moment) -> str:
        cluster = cluster_of(now)
        self._number = cluster.size
        pids = cluster.worker_pids(self._number)
        self._going_on.begin(now.engine)
        cluster.kill_worker(self._number)
        return f"SIGKILL to worker {self._number} and all processes below it ({listed(pids)})"

    def landed(self, now: Moment) -> str:
        cluster = cluster_of(now)
        state = cluster.seen()
        if cluster.worker_pids(self._number) or state is None or state.workers >= cluster.size:
            return ""
        return f"no process is left, and the master counts {state.workers} of {many(cluster.size, 'worker')} as alive"

    def heal(self, now: Moment) -> None:
        cluster = cluster_of(now)
        if not cluster.worker_pids(self._number):
            cluster.start_worker(self._number)

    def healed(self, now: Moment) -> str:
        cluster = cluster_of(now)
        state, went_on = cluster.seen(), self._going_on.seen(now)
        if not went_on or state is None or state.workers < cluster.size:
            return ""
        return f"a new worker {self._number} has registered; {went_on}"


class PauseWorker(Pause):
    """SIGSTOP to the last worker and all processes below it."""

    def __init__(self, context: Context, hold_ms: float) -> None:
        super().__init__(context, lambda member: member.pid in self._struck, "worker", hold_ms)
        self._struck: tuple[int, ...] = ()

    def inject(self, now: Moment) -> str:
        cluster = cluster_of(now)
        self._struck = cluster.worker_pids(cluster.size)
        return f"{super().inject(now)}: worker {cluster.size} and all processes below it"


class KillMaster(ProcessStrike):
    """SIGKILL to the master; it is started again after a while, with what it wrote down or without."""

    def __init__(self, context: Context, hold_ms: float, *, recovers: bool) -> None:
        super().__init__(context)
        self.hold_ms, self._recovers = hold_ms, recovers
        self._applications = 0

    def inject(self, now: Moment) -> str:
        cluster = cluster_of(now)
        state = cluster.seen()
        self._applications = state.applications if state else 0
        self._going_on.begin(now.engine)
        pid = cluster.kill_master()
        return f"SIGKILL to the master {pid}, which had {many(self._applications, 'application')}"

    def landed(self, now: Moment) -> str:
        return "" if cluster_of(now).seen() else "it does not answer"

    def heal(self, now: Moment) -> None:
        cluster = cluster_of(now)
        if not cluster.seen():
            cluster.start_master(recovers=self._recovers)

    def healed(self, now: Moment) -> str:
        cluster = cluster_of(now)
        state, went_on = cluster.seen(), self._going_on.seen(now)
        if not went_on or state is None or not state.serves or state.workers < cluster.size:
            return ""
        if self._recovers and state.applications < self._applications:
            return ""
        how = "from its files" if self._recovers else "with nothing of what it had known"
        return (
            f"a new master began {how}, and has {many(state.workers, 'worker')} and "
            f"{many(state.applications, 'application')}; {went_on}"
        )


def on_own_cluster(_: FaultSpec, context: Context) -> Iterator[str]:
    master = context.spec.master
    if not context.manifest.on_spark:
        yield f"{context.manifest.id} does not run on a Spark cluster"
    elif not workers_of_master(master):
        yield f"only a cluster that the run starts can be struck: add --cluster 2, instead of --master {master}"


def on_cluster(make: Callable[[FaultSpec, Context], ProcessStrike]) -> Callable[[FaultSpec, Context], Fault]:
    """Return what makes a fault of a cluster that the run starts."""
    return struck_by(make, on_own_cluster)


def _kill_master(spec: FaultSpec, context: Context) -> KillMaster:
    recovery = spec.options["recovery"]
    if recovery not in (FILES, NONE):
        raise NotUnderstoodError(f"recovery = {recovery!r} is not one of {FILES}, {NONE}")
    return KillMaster(context, length_ms(spec), recovers=recovery == FILES)


KINDS = (
    Kind(
        "kill-worker",
        "SIGKILL to a Spark worker and all processes below it, as if its machine had ended; later it is started again",
        "runs the lost tasks elsewhere and goes on; no count changes",
        on_cluster(lambda spec, context: KillWorker(context, length_ms(spec))),
        needs=NEEDS,
        options={"for": "10s"},
    ),
    Kind(
        "pause-worker",
        "SIGSTOP to a Spark worker and all processes below it for a while, as if its machine hung",
        "waits, or runs the tasks elsewhere; no count changes",
        on_cluster(lambda spec, context: PauseWorker(context, length_ms(spec))),
        needs=NEEDS,
        options={"for": "10s"},
    ),
    Kind(
        "kill-master",
        "SIGKILL to the Spark master, which is started again after a while: with its recovery files, or without",
        "goes on with the executors that it has, and with recovery keeps them; no count changes",
        on_cluster(_kill_master),
        needs=NEEDS,
        options={"for": "5s", "recovery": FILES},
    ),
)
