"""A running task of Spark is killed, and nothing else: its executor, the driver and all other tasks live on.

Spark kills a task only for the program of its driver, so that the job helps (workloads/jobs/spark_tasks.py). The proof
that it landed is Spark's own line in the driver's log; the job reports that a later attempt of the task succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.engines import complaint
from harness.engines.spark.losses import KILLED
from harness.faults.base import Context
from harness.faults.members import ProcessStrike
from harness.faults.run_at_poll import Moment
from harness.faults.strike import need_more_to_do
from harness.model import FaultSpec

TASK, AGAIN = "task", "task-again"  # as workloads/jobs/spark_tasks.py reports them
BATCH = re.compile(r"\[batchId = (\d+)\]")


class KillTask(ProcessStrike):
    """The order is one of a crash point, but the job does not wait there."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._before: tuple[str, ...] = ()
        self._again = False

    def inject(self, now: Moment) -> str:
        need_more_to_do(now)
        self._before = killed_tasks(now)
        self._going_on.begin(now.engine)
        now.engine.arm(TASK, 0)
        return "the driver was asked to kill the first task that runs"

    def landed(self, now: Moment) -> str:
        reached, found = now.engine.reached(), [line for line in killed_tasks(now) if line not in self._before]
        if reached is None or reached.point not in (TASK, AGAIN) or not found:
            return ""
        if batch := BATCH.search(found[-1]):
            self.batch = int(batch[1])
        lost = KILLED.search(found[-1])
        assert lost
        return f"Spark's driver logged: {lost[0]}"

    def holds(self, now: Moment, landed_ms: int) -> bool:
        """Keep the order until the task has succeeded: the job forgets it with the order."""
        reached = now.engine.reached()
        self._again = reached is not None and reached.point == AGAIN
        return not self._again and now.engine.alive() and now.now_ms - landed_ms < self.heal_within_ms

    def heal(self, now: Moment) -> None:
        now.engine.disarm()

    def healed(self, now: Moment) -> str:
        went_on = self._going_on.seen(now)
        return f"a later attempt of the same task succeeded; {went_on}" if self._again and went_on else ""


def killed_tasks(now: Moment) -> tuple[str, ...]:
    """Return the driver's lines on tasks that this fault killed."""
    return tuple(line for line in now.engine.tail(complaint.REMEMBERED) if KILLED.search(line))


def of_our_job(_: FaultSpec, context: Context) -> Iterator[str]:
    engine = context.manifest
    if not engine.on_spark:
        yield f"{engine.id} has no tasks of Spark"
    elif not (engine.shipped or engine.extends):
        yield f"Spark kills a task only for the driver's own program, and the job of {engine.id} does not offer it"
