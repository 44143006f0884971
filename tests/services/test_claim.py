"""Whose Redis database is it, and which of its keys may go?"""

from __future__ import annotations

import pytest
import redis as redis_py

from harness.model import UsageError
from harness.services import claim
from harness.services.claim import KEYS, MARKER, NAMES, OWNER
from harness.services.redis import connect


@pytest.fixture
def client(redis_address):
    with connect(redis_address) as client:
        yield client


def a_run(client: redis_py.Redis, *, reset: bool = False) -> None:
    """One that ends in order, and leaves one result."""
    claim.claim(client, reset=reset)
    claim.expect(client, ["campaign"])
    client.hset("campaign", "0", "1")
    claim.release(client)


def test_an_empty_database_becomes_ours_and_stays_so(client):
    claim.claim(client, reset=False)
    assert client.get(MARKER).startswith("claimed ")
    claim.release(client)
    claim.claim(client, reset=False)
    assert sorted(client.keys()) == [MARKER, OWNER]


def test_ours_with_results_needs_reset(client):
    a_run(client)
    with pytest.raises(UsageError, match=r"still has 1 key \(campaign\) of an earlier run\. Add --reset"):
        claim.claim(client, reset=False)
    assert client.exists("campaign")
    claim.claim(client, reset=True)
    assert sorted(client.keys()) == [MARKER, OWNER]


@pytest.mark.parametrize("reset", [False, True])
def test_a_foreign_database_is_refused_and_left_as_it_was(client, reset):
    client.mset({f"theirs{number}": "value" for number in range(9)})
    with pytest.raises(
        UsageError, match=r"not created by streamgauge: it has 9 keys \((theirs\d, ){5}\.\.\.\).*Nothing was written"
    ):
        claim.claim(client, reset=reset)
    assert len(client.keys("theirs*")) == client.dbsize() == 9


def test_a_key_that_came_after_the_last_run_is_not_deleted_by_reset(client):
    a_run(client)
    client.set("theirs", "value")

    with pytest.raises(UsageError, match=r"also 1 key \(theirs\) that no run has recorded.*Nothing was deleted"):
        claim.claim(client, reset=True)

    assert (client.get("theirs"), client.hget("campaign", "0")) == ("value", "1")


def test_of_a_killed_run_only_what_it_may_have_written_is_deleted(client):
    claim.claim(client, reset=False)
    claim.expect(client, [claim.literal("odd[1]*"), "fence:*"])
    client.mset({"odd[1]*": "ours", "fence:a": "ours"})
    client.set(OWNER, "1:dead:" + client.get(OWNER).split(":", 2)[2])  # as if its process had ended

    client.set("odd1", "theirs")
    with pytest.raises(UsageError, match=r"also 1 key \(odd1\)"):
        claim.claim(client, reset=True)
    assert client.exists("odd[1]*", "fence:a", "odd1") == 3

    client.delete("odd1")
    claim.claim(client, reset=True)
    assert sorted(client.keys()) == [MARKER, OWNER]


def test_a_database_in_which_a_run_goes_on_is_not_emptied_by_another(client, owner_of_another_process):
    a_run(client)
    client.set(OWNER, owner_of_another_process)

    with pytest.raises(UsageError, match=r"in use by process \d+ .*DEL streamgauge:owner"):
        claim.claim(client, reset=True)

    assert client.exists("campaign", MARKER, KEYS) == 3


def test_a_run_of_another_machine_is_taken_for_alive(client):
    client.set(OWNER, "7:7:elsewhere/pid:[1]")
    with pytest.raises(UsageError, match="in use by a run on another machine"):
        claim.claim(client, reset=False)


def test_a_run_that_ended_says_how_many_keys_stay_and_keeps_no_patterns(client):
    claim.claim(client, reset=False)
    claim.expect(client, ["a", "b"])
    client.mset({"a": "1", "b": "1"})

    assert claim.release(client) == 2
    assert client.smembers(KEYS) == {"a", "b"}
    assert not client.exists(NAMES, OWNER)


def test_keys_that_are_no_text_can_be_named(redis_address, client):
    with redis_py.Redis.from_url(redis_address.url) as raw:
        raw.set(b"\xff\xfe", b"\xff")
    with pytest.raises(UsageError, match=r"1 key \(\\xff\\xfe\)"):
        claim.claim(client, reset=False)


@pytest.fixture
def owner_of_another_process():
    """The mark of a living process of this machine that is not this one."""
    import os

    from harness.services.owners import owner_mark, start_of

    parent = os.getppid()
    return f"{parent}:{start_of(parent)}:{owner_mark().split(':', 2)[2]}"
