"""The ways of `bench --locality` within engines: all records arrive, and operators run where the way says."""

from __future__ import annotations

import pytest

from harness.engines import environments
from harness.engines.manifest import load
from tools.locality import programs, ways

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
TIME_MS = 50


def test_flink_runs_two_operators_in_one_thread_in_two_and_in_two_taskmanagers(tmp_path):
    prepared = environments.prepare(load("flink"), print)

    with programs.java(tmp_path) as java, programs.flink(java, prepared, tmp_path) as cluster:
        for way in ways.FLINK:
            assert ways.checked(way, 256, cluster.measure(way, 256, TIME_MS)).received.records >= 256


def test_spark_makes_and_counts_records_in_one_stage_and_in_two(tmp_path):
    with programs.java(tmp_path) as java, programs.spark(java, tmp_path) as driver:
        for way in ways.SPARK:
            assert ways.checked(way, 256, driver.measure(way, 256, TIME_MS)).received.records >= 20_000
