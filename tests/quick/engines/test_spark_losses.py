"""What Spark lost by itself is told, and an undisturbed log tells of nothing."""

from __future__ import annotations

from harness.engines.spark.losses import in_words, lost_tasks

QUIET = [
    "26/11/28 09:25:39 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform",
    'Setting Spark log level to "ERROR".',
]
LOST = "09:25:41 ERROR TaskSchedulerImpl: Lost executor {} on 127.0.0.1: worker lost: 127.0.0.1:42087 got lost."
TASK = (
    "26/11/28 09:25:41 WARN TaskSetManager: [queryId = 1ef73] [batchId = 5] Lost task 0.0 in stage 3.0 (TID 5) "
    "(127.0.0.1 executor 1): ExecutorLostFailure (executor 1 exited unrelated to the running tasks)"
)
STOPPED = (
    "26/11/28 10:11:35 WARN TaskSetManager: [queryId = 1ef73] [batchId = 5] Lost task 1.0 in stage 17.0 (TID 35) "
    "(127.0.0.1 executor 0): TaskKilled (Stage cancelled: [SPARK_JOB_CANCELLED] Job 11 cancelled)"
)
KILLED = (
    "26/11/28 13:04:27 WARN TaskSetManager: [queryId = 3b5ae] [batchId = 1] Lost task 0.0 in stage 4.0 (TID 5) "
    "(127.0.0.1 executor 0): TaskKilled (streamgauge kill-task)"
)


def test_a_quiet_log_tells_of_nothing():
    assert in_words([*QUIET, STOPPED]) == ()


def test_lost_executors_are_named_with_the_reason_and_failed_tasks_counted():
    assert in_words([*QUIET, LOST.format(1), TASK, TASK]) == (
        "Spark lost 1 executor (1 at 127.0.0.1: worker lost: 127.0.0.1:42087 got lost)",
        "2 tasks of Spark failed, and were tried again if allowed",
    )


def test_a_task_that_a_fault_killed_was_lost_and_one_of_a_stopped_job_was_not():
    assert lost_tasks([*QUIET, STOPPED, TASK, KILLED]) == 2


def test_of_many_the_first_ones_are_named():
    (note,) = in_words(LOST.format(number) for number in range(9))

    assert note.startswith("Spark lost 9 executors (0 at 127.0.0.1: ")
    assert note.endswith("; and 6 more)")
