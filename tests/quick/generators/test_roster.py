"""Who takes part in a load of several workers: each server is sent once, and a lost worker ends the load."""

from __future__ import annotations

import pytest

from generators.clock_offset import Offset
from generators.roster import LOST_S, STARTING_S, LoadVoidError, Roster

OURS = {"streamgauge": "0.2.0", "code": "abc", "locust": "2.47.0"}
SENDERS = 5


def roster_of(*names: str) -> Roster:
    """Return a roster whose workers have joined, and wait for servers."""
    roster = Roster(len(names), OURS)
    for name in names:
        assert not roster.refusal(name)
        roster.connects(name, 0)
        roster.introduces(name, f"host-{name}", OURS)
        roster.prepares(name, Offset(0, 1000), -10)
    return roster


def started(*names: str) -> Roster:
    roster = roster_of(*names)
    for number in range(SENDERS):
        roster.next_server(names[number % len(names)], SENDERS)
    roster.started = True
    return roster


def test_each_server_is_given_away_once_whoever_asks():
    roster = roster_of("a", "b")
    given = [roster.next_server(name, SENDERS) for name in "abbab"]

    assert given == [0, 1, 2, 3, 4]
    assert roster.have_all(SENDERS)
    assert [roster.workers[name].servers for name in "ab"] == [[0, 3], [1, 2, 4]]


def test_a_server_that_is_asked_for_again_ends_the_load():
    """Locust distributes its users again, 60 s after it lost a worker."""
    with pytest.raises(LoadVoidError, match="all 5 are given away: Locust has distributed them again"):
        started("a", "b").next_server("b", SENDERS)


@pytest.mark.parametrize("name", ["streamgauge", "code", "locust"])
def test_another_version_is_named(name):
    roster = Roster(1, OURS)
    roster.connects("a", 0)
    with pytest.raises(LoadVoidError, match=f"on host-a has {name} other instead of {OURS[name]}"):
        roster.introduces("a", "host-a", {**OURS, name: "other"})
    assert roster.hosts == []


def test_nobody_joins_a_load_that_is_complete_or_has_started():
    assert roster_of("a", "b").refusal("c") == "the run already has its 2 workers"
    assert started("a", "b").refusal("c") == "the load of this run has started"
    assert "would send its servers twice" in started("a", "b").refusal("a")
    assert not roster_of("a", "b").refusal("a")  # Locust repeats its first message


def test_a_worker_that_is_silent_is_lost_and_its_servers_are_named():
    roster = started("a", "b")
    roster.hears("a", LOST_S)
    roster.refuse_lost(LOST_S)

    with pytest.raises(LoadVoidError, match=r"The worker on host-b is lost.*It had the servers 1, 3"):
        roster.refuse_lost(LOST_S + 0.1)


def test_a_slow_machine_has_patience_with_its_workers():
    roster = started("a")
    roster.patience = 4
    roster.refuse_lost(4 * LOST_S)
    with pytest.raises(LoadVoidError, match="nothing was heard of it for 14 s"):
        roster.refuse_lost(4 * LOST_S + 1)


def test_a_worker_may_be_silent_for_longer_before_the_load_and_after_its_books():
    before = roster_of("a")
    before.refuse_lost(STARTING_S)
    with pytest.raises(LoadVoidError, match="nothing was heard of it for 30 s"):
        before.refuse_lost(STARTING_S + 1)

    after = started("a")
    after.workers["a"].booked = True
    after.refuse_lost(1000)
    after.leaves("a", "it was stopped there")


def test_a_worker_that_leaves_ends_the_load():
    with pytest.raises(LoadVoidError, match=r"on host-a ended: it was stopped there\. It had the servers 0, 2, 4"):
        started("a", "b").leaves("a", "it was stopped there")
    started("a").leaves("nobody", "it was refused")


def test_all_have_to_be_there():
    roster = Roster(2, OURS)
    roster.connects("a", 0)
    roster.introduces("a", "host-1", OURS)
    roster.prepares("a", Offset(0, 1), 0)
    assert (roster.hosts, roster.all_prepared) == (["host-1"], False)

    roster.connects("b", 0)
    roster.introduces("b", "host-1", OURS)
    assert (roster.hosts, roster.all_prepared) == (["host-1", "host-1"], False)
    roster.prepares("b", Offset(5, 1), -10)
    assert roster.all_prepared
    assert (roster.workers["b"].begin, roster.workers["b"].nice) == (Offset(5, 1), -10)


def test_the_counts_of_all_workers_are_summed_and_the_longest_pause_is_that_of_one():
    roster = started("a", "b")
    for name, sent in (("a", 70), ("b", 30)):
        worker = roster.workers[name]
        worker.sent, worker.acked, worker.throttled_ms = sent, sent - 5, sent * 2

    assert roster.sums() == {"sent": 100, "acked": 90, "throttled_ms": 140}


def test_a_worker_is_named_by_its_host_as_soon_as_that_is_known():
    roster = Roster(1, OURS)
    roster.connects("a", 0)
    with pytest.raises(LoadVoidError, match="unknown host"):
        roster.leaves("a", "it was stopped there")
    roster.introduces("a", "host-1", OURS)
    with pytest.raises(LoadVoidError, match="on host-1 "):
        roster.leaves("a", "it was stopped there")
