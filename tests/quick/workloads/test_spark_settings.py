"""What the JVM of a Spark job is told."""

from __future__ import annotations

from workloads.jobs.spark_stream import ENDS_WITHOUT_HEAP, JAVA_OPTIONS, session_settings


def test_a_jvm_ends_when_its_heap_is_used_up_unless_conf_says_otherwise():
    lives_on = "-XX:-ExitOnOutOfMemoryError"
    given = {"master": "local[2]", "jars": [], "java_options": "-Xshare:auto", "options": {JAVA_OPTIONS: lives_on}}
    options = session_settings(given)[JAVA_OPTIONS].split()

    assert ENDS_WITHOUT_HEAP in options
    assert options[-1] == lives_on, "of two the JVM takes the last one"
