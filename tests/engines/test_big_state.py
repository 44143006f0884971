"""A state that nothing leaves, small enough for a test: what Spark tells of it, batch by batch, and over two kills; and
how Spark ends when its heap is too small."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import run
from tests.engines.test_states import HEAP, STORE
from tests.engines.trial import SOON_UP

# Spark refuses a heap as small as this, unless nothing of it is reserved.
SMALL_HEAP = ("--conf", "spark.driver.memory=256m", "--conf", "spark.testing.reservedMemory=1")

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


def test_what_a_commit_took_and_wrote_is_told_against_the_cells(tmp_path, served):
    dials = ("--rate", "2000", "--duration", "50s", "--campaigns", "600", "--fault", "kill@c3:t>=8s; kill@c3:t>=30s")
    answer = run(tmp_path, "big-state", *dials, "--conf", f"{STORE}.rocksdb.maxMemoryUsageMB=1", *SOON_UP, *served)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    commits = answer["measurement"]["growth"]["commits"]
    cells = [each["cells"] for each in commits]
    assert cells == sorted(cells)
    assert answer["totals"]["cells"] - cells[-1] < 10, "cells that only the harness' own events made"
    assert all(each["state_bytes"] and each["memory_bytes"] and each["took_ms"] for each in commits)
    assert any(each["written_bytes"] for each in commits)
    assert [each["quantities"]["first_output_s"]["value"] > 0 for each in answer["recovery"]] == [True, True]


def test_a_heap_that_has_no_room_for_what_comes_ends_the_engine_which_says_so(tmp_path, served):
    dials = ("--rate", "10000", "--duration", "60s", "--fault", "none", "--conf", f"{STORE}.providerClass={HEAP}")
    answer = run(tmp_path, "big-state", *dials, *SMALL_HEAP, *SOON_UP, *served)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["crashed"]), answer["sentence"]
    assert "OutOfMemoryError: Java heap space" in answer["sentence"]
