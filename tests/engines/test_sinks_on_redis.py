"""The sinks on a real Redis: what the quick tests assume of its scripts and pipelines is so."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.services.redis import connect
from workloads.ad_impressions.jobs import id_sums
from workloads.ad_impressions.jobs.spark_summed_sinks import SUMMED_SINKS, Summed
from workloads.jobs.redis_results import updated_key
from workloads.jobs.redis_sinks import SINKS, fence_key

FIRST = {"a": {0: 3, 10_000: 1}, "b": {0: 2}}
SECOND = {"a": {0: 1}, "c": {20_000: 5}}


@pytest.mark.parametrize(
    ("sink", "counts"),
    [
        ("absolute", {("a", 0): 1, ("a", 10_000): 1, ("b", 0): 2, ("c", 20_000): 5}),
        ("fenced", {("a", 0): 4, ("a", 10_000): 1, ("b", 0): 2, ("c", 20_000): 5}),
        ("increment", {("a", 0): 5, ("a", 10_000): 1, ("b", 0): 2, ("c", 20_000): 10}),
    ],
)
def test_a_batch_written_again(redis_address, sink, counts):
    with connect(redis_address) as client:
        for batch, cells in ((0, FIRST), (1, SECOND), (1, SECOND)):
            SINKS[sink](client, batch, cells)
        found = Counter({(c, int(w)): int(n) for c in "abc" for w, n in client.hgetall(c).items()})
        updated = {campaign: client.hkeys(updated_key(campaign)) for campaign in "abc"}

        assert found == counts
        assert all(sorted(updated[campaign]) == sorted(client.hkeys(campaign)) for campaign in "abc")
        assert client.get(fence_key("a")) == ("1" if sink == "fenced" else None)


BIG = id_sums.ID_RANGE - 1
ONE_BATCH = {"a": {0: Summed(2, BIG, id_sums.PRIME - 1), 10_000: Summed(1, 7, 7)}}
ANOTHER = {"a": {0: Summed(1, BIG, 3)}}


@pytest.mark.parametrize(
    ("sink", "count", "sums"),
    [
        ("absolute", 1, (BIG, 3)),
        ("fenced", 3, (BIG - 1, 2)),
        ("increment", 4, (BIG - 2, 5)),
        ("increment-retrying", 4, (BIG - 2, 5)),
    ],
)
def test_sums_go_with_their_counts_and_are_reduced_exactly(redis_address, sink, count, sums):
    with connect(redis_address) as client:
        for batch, cells in ((0, ONE_BATCH), (1, ANOTHER), (1, ANOTHER)):
            SUMMED_SINKS[sink](client, batch, cells)

        assert client.hgetall("a") == {"0": str(count), "10000": "1"}
        assert client.hgetall(id_sums.sums_key("a")) == {"0": id_sums.spell(sums), "10000": "7,7"}
        assert sorted(client.hkeys(updated_key("a"))) == ["0", "10000"]
        assert client.get(fence_key("a")) == ("1" if sink == "fenced" else None)


def test_every_sink_has_a_sister_that_sums():
    assert SUMMED_SINKS.keys() == SINKS.keys()


def test_a_count_that_is_no_number_is_loud(redis_address):
    with connect(redis_address) as client:
        client.hset("a", "0", "many")

        with pytest.raises(Exception, match="hash value is not an integer"):
            SINKS["fenced"](client, 0, FIRST)
