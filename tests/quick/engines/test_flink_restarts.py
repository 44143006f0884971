"""Flink's own restarts are told with their reason, rescales apart, and an undisturbed log tells of nothing."""

from __future__ import annotations

import pytest

from harness.engines.flink.restarts import in_words

QUIET = ["12:00:01,000 WARN  TaskManagerRunner - Some warning", "The TaskManager has ended with exit code 143"]
RESCALED = "Flink restarted the job by itself: parallelism 2, before 1; no task had failed"
LOST = "Flink restarted the job by itself: parallelism 1, before 2; org.apache.flink.SomeException: it has gone"
FAILED = "Flink restarted the job by itself: parallelism 2, before 2; java.io.IOException: the sink is away"
LOGGED = "12:00:02,000 INFO  ExecutionGraph - Job own-flink (f00d) switched from state RUNNING to RESTARTING."


@pytest.mark.parametrize(
    ("lines", "notes"),
    [
        ([], []),
        (
            [RESCALED, RESCALED.replace("2, before 1", "3, before 2")],
            [
                "Flink rescaled the job 2 times (parallelism 1 to 2; parallelism 2 to 3), for which it restarts it "
                "from a checkpoint"
            ],
        ),
        (
            [LOST],
            [
                "Flink restarted the job 1 time by itself, from its newest checkpoint (parallelism 2 to 1, "
                "org.apache.flink.SomeException: it has gone)"
            ],
        ),
        (
            [RESCALED, LOST, FAILED],
            [
                "Flink rescaled the job 1 time (parallelism 1 to 2), for which it restarts it from a checkpoint",
                "Flink restarted the job 2 times by itself, from its newest checkpoint (the last one: "
                "java.io.IOException: the sink is away)",
            ],
        ),
        ([LOGGED, LOGGED], ["Flink restarted the job 2 times by itself, from its newest checkpoint"]),
        (
            [LOGGED, FAILED],  # one restart, told by both
            [
                "Flink restarted the job 1 time by itself, from its newest checkpoint (java.io.IOException: the sink "
                "is away)"
            ],
        ),
    ],
)
def test_restarts_and_rescales_in_words(lines, notes):
    assert in_words([*QUIET, *lines]) == tuple(notes)
