"""Enrichment on a real Kafka: each order leaves once, whatever is killed."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import run

SHORT = ["--duration", "12s", "--fault", "kill@t>=6s"]

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


@pytest.mark.parametrize("scenario", ["enrichment", "enrichment-late"])
def test_each_order_leaves_once_with_the_right_answer(tmp_path, scenario):
    answer = run(tmp_path, scenario, *SHORT)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
