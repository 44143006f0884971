"""A test kills one running task of Spark. Only the program of the driver can do that, so the test asks this job.

    task        the task was killed: it ended as KILLED, and Spark has to run it again
    task-again  a later attempt of the same task has succeeded

The order comes by the same file as a crash point (workloads/jobs/crash_points.py), with one of these words as its
point. Without an order it costs one look-up in the file system in each interval.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from workloads.jobs.crash_points import CrashPoints

KILLED, AGAIN = "task", "task-again"
REASON = "streamgauge kill-task"  # Spark logs it with the lost task
EVERY_S, HUNT_EVERY_S = 0.1, 0.005
MOST_TASKS = 10_000  # of a stage


def listen(session: SparkSession, order: Path) -> None:
    """Watch for orders in a thread of its own."""
    scheduler: Any = session.sparkContext._jsc.sc()
    threading.Thread(target=_watch, args=(scheduler, CrashPoints(order)), name="kill-task", daemon=True).start()


def _watch(scheduler: Any, points: CrashPoints) -> None:
    done = False
    while True:
        wanted = points.wanted(KILLED, 0)
        if not wanted:
            done = False
        elif not done:
            with suppress(Py4JJavaError):  # a stage that has ended may be forgotten while it is looked at
                done = _kill_one(scheduler, points)
        time.sleep(HUNT_EVERY_S if wanted and not done else EVERY_S)


def _kill_one(scheduler: Any, points: CrashPoints) -> bool:
    """Kill the first task that runs; return whether one was killed. A task may end before the signal reaches it."""
    store = scheduler.statusStore()
    for stage, attempt, task in _running(store):
        if not scheduler.killTaskAttempt(task.taskId(), True, REASON):
            continue
        key = (stage, attempt, task.index())
        if _await(store, key, "KILLED", points):
            points.announce(KILLED, 0)
            if _await(store, key, "SUCCESS", points):
                points.announce(AGAIN, 0)
            return True
    return False


def _running(store: Any) -> Iterator[tuple[int, int, Any]]:
    for stage in _all(store.activeStages()):
        for task in _all(store.taskList(stage.stageId(), stage.attemptId(), MOST_TASKS)):
            if task.status() == "RUNNING":
                yield stage.stageId(), stage.attemptId(), task


def _await(store: Any, key: tuple[int, int, int], status: str, points: CrashPoints) -> bool:
    """Wait until an attempt of this task has this status. False: one succeeded before, or the order was withdrawn."""
    stage, attempt, index = key
    while points.wanted(KILLED, 0):
        tasks = [task for task in _all(store.taskList(stage, attempt, MOST_TASKS)) if task.index() == index]
        seen = {task.status() for task in tasks}
        if status in seen:
            return True
        if "SUCCESS" in seen:
            return False
        time.sleep(EVERY_S)
    return False


def _all(sequence: Any) -> list[Any]:
    """Return the elements of a sequence of Scala."""
    return [sequence.apply(number) for number in range(sequence.length())]
