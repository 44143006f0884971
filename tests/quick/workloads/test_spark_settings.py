"""What the JVM of a Spark job is told."""

from __future__ import annotations

import pytest

from workloads.jobs.spark_stream import ENDS_WITHOUT_HEAP, JAVA_OPTIONS, is_here, session_settings


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077,[::1]:7077", True),
        ("spark://127.0.0.1:7077,m:7077", False),
        ("spark://10.0.0.5:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_a_driver_listens_on_loopback_if_all_executors_are_here(master, here):
    assert is_here(master) is here


def test_a_jvm_ends_when_its_heap_is_used_up_unless_conf_says_otherwise():
    lives_on = "-XX:-ExitOnOutOfMemoryError"
    given = {"master": "local[2]", "jars": [], "java_options": "-Xshare:auto", "options": {JAVA_OPTIONS: lives_on}}
    options = session_settings(given)[JAVA_OPTIONS].split()

    assert ENDS_WITHOUT_HEAP in options
    assert options[-1] == lives_on, "of two the JVM takes the last one"
