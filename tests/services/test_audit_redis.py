"""Results in a real Redis, in the schema of the original benchmark."""

from __future__ import annotations

import uuid

import pytest

from harness.audit import walk
from harness.model import HarnessError, Outcome
from harness.services.redis import connect

CAMPAIGNS, WINDOWS, VIEWS = 10, 6, 400
KNOWN = walk.Known({"total_per_s": VIEWS * 3 * CAMPAIGNS / 10, "campaigns": CAMPAIGNS}, "--total-rate")


def fill(client, views: int = VIEWS) -> None:
    for campaign in range(CAMPAIGNS):
        name = f"campaign {campaign}"
        client.sadd("campaigns", name)
        for window in range(WINDOWS):
            key, start = str(uuid.uuid4()), window * 10_000
            client.hset(name, str(start), key)
            client.hset(
                key, mapping={"seen_count": views + (campaign * 7 + window) % 5, "time_updated": start + 10_100}
            )
        client.hset(name, "windows", "a list")


def audited(redis_address):
    (found,) = walk.audit(redis_address.url, KNOWN, lambda _: None)
    return found


def test_what_a_job_left_is_read_where_it_lies(redis_address):
    with connect(redis_address) as client:
        fill(client)
        before = client.dbsize()
        found = audited(redis_address)

        assert (found.outcome, found.findings, found.cells) == (Outcome.PASS, (), CAMPAIGNS * WINDOWS)
        assert client.dbsize() == before


def test_counts_that_no_campaign_refers_to_are_named(redis_address):
    with connect(redis_address) as client:
        fill(client)
        client.hset("nobody's", mapping={"seen_count": 17, "time_updated": 1})
        found = audited(redis_address)

    assert [finding.word for finding in found.findings] == ["orphans"]
    assert found.sentence.startswith("17 views")


def test_a_job_that_was_started_twice(redis_address):
    with connect(redis_address) as client:
        fill(client)
        for key in client.scan_iter(_type="hash"):
            if client.hexists(key, "seen_count"):
                client.hset(key, "seen_count", 2 * int(client.hget(key, "seen_count")))
        found = audited(redis_address)

    assert {finding.word for finding in found.findings} == {"doubled"}


def test_a_count_of_thirty_digits_is_named(redis_address):
    with connect(redis_address) as client:
        fill(client)
        client.hset(client.hget("campaign 3", "20000"), "seen_count", "9" * 30)
        found = audited(redis_address)

    assert "torn" in found.words
    assert "campaign 3, window 20000" in found.sentence


def test_an_empty_redis_and_none_at_all_are_said(redis_address):
    assert "no set `campaigns`" in audited(redis_address).sentence
    with pytest.raises(HarnessError, match="did not answer"):
        walk.audit("redis://127.0.0.1:1/0", KNOWN, lambda _: None)
