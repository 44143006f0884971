"""The part of the kafka family that needs three brokers: the leader of a partition changes, with or without a loss.

Proofs are Kafka's metadata before and after: leaders, in-sync replicas, end offsets.
"""

from __future__ import annotations

import signal
from contextlib import suppress

from harness.faults.kafka import (
    SLOW_MS,
    KafkaStrike,
    Offsets,
    ends_of,
    kind,
    log_of,
    missing_to_pause,
    server_of,
    standing_still,
    topic_of,
)
from harness.faults.run_at_poll import Moment
from harness.faults.strike import CannotStrikeError, length_ms, need_more_to_do
from harness.model import HarnessError
from harness.services import kafka
from harness.services.kafka_cluster import BROKERS, EmbeddedCluster

NEEDS = "an embedded Kafka, which gets three brokers"


def cluster_of(now: Moment) -> EmbeddedCluster:
    server = server_of(now)
    if not isinstance(server, EmbeddedCluster):
        raise CannotStrikeError("the Kafka of this run has one broker")
    return server


def in_sync_again(now: Moment) -> str:
    with suppress(HarnessError):
        if all(nodes == set(BROKERS) for nodes in kafka.in_sync(*topic_of(now)).values()):
            return f"brokers {', '.join(map(str, BROKERS))} are in sync again in every partition"
    return ""


class LeaderChange(KafkaStrike):
    """The leader of partition 0 is killed; brokers with all of its records take over."""

    def __init__(self, hold_ms: float) -> None:
        super().__init__(hold_ms)
        self.heal_within_ms = 2 * SLOW_MS
        self._node = 0
        self._before: dict[int, int] = {}

    def inject(self, now: Moment) -> str:
        cluster = cluster_of(now)
        self._before = kafka.leaders(*topic_of(now))
        self._node = self._before[0]
        cluster.brokers[self._node].kill_group()
        led = ", ".join(str(p) for p, node in self._before.items() if node == self._node)
        return f"SIGKILL to broker {self._node}, which led partitions {led}"

    def landed(self, now: Moment) -> str:
        after: dict[int, int] = {}
        with suppress(HarnessError):
            after = kafka.leaders(*topic_of(now))
        changed = {p: node for p, node in after.items() if self._before[p] == self._node and node != self._node}
        if not after or -1 in changed.values() or self._node in after.values():
            return ""
        return "; ".join(f"partition {p} is led by broker {node}" for p, node in changed.items())

    def heal(self, now: Moment) -> None:
        cluster = cluster_of(now)
        if not cluster.brokers[self._node].alive():
            cluster.restart_broker(self._node)

    def healed(self, now: Moment) -> str:
        return in_sync_again(now)


class UncleanElection(KafkaStrike):
    """Two brokers are down while the third accepts records alone; then it dies, and a broker that lacks them becomes
    leader.

    Those records are ours, and the ad servers are paused all the while: a producer whose confirmed records vanish has
    to give up, so the load would break instead of the engine.
    """

    def __init__(self, records: int, alone_ms: float) -> None:
        super().__init__()
        self._records, self._alone_ms = records, alone_ms
        self.land_within_ms = self._alone_ms + 5 * SLOW_MS
        self.heal_within_ms = 2 * SLOW_MS
        self._leader = self._next = self._sent_ms = self._unread = 0
        self._ends: Offsets = {}  # at the death of the followers ...
        self._alone: Offsets = {}  # ... and of the leader

    def inject(self, now: Moment) -> str:
        need_more_to_do(now)
        cluster = cluster_of(now)
        self._leader = kafka.leaders(*topic_of(now))[0]
        followers = [node for node in BROKERS if node != self._leader]
        self._next = followers[0]
        log_of(now).signal_fleet(signal.SIGSTOP)
        self._ends = standing_still(now)
        for node in followers:
            cluster.brokers[node].kill_group()
        return f"SIGKILL to brokers {', '.join(map(str, followers))} when the log ended at {_sum(self._ends):,} records"

    def landed(self, now: Moment) -> str:
        if not self._sent_ms:
            self._send_to_one(now)
        elif not self._alone:
            if now.now_ms - self._sent_ms >= self._alone_ms:
                self._kill_the_one(now)
        elif self._leads(now):
            return self._proof(ends_of(now))
        return ""

    def heal(self, now: Moment) -> None:
        log_of(now).signal_fleet(signal.SIGCONT)
        cluster = cluster_of(now)
        for node, broker in cluster.brokers.items():
            if not broker.alive():
                cluster.restart_broker(node)

    def healed(self, now: Moment) -> str:
        return in_sync_again(now)

    def _send_to_one(self, now: Moment) -> None:
        with suppress(HarnessError):
            held_by = kafka.in_sync(*topic_of(now))
            if all(nodes == {self._leader} for nodes in held_by.values()):
                log_of(now).send(list(held_by), each=-(-self._records // len(held_by)))
                self._sent_ms = now.now_ms

    def _kill_the_one(self, now: Moment) -> None:
        cluster, self._alone = cluster_of(now), ends_of(now)
        newest = now.engine.progress()
        self._unread = log_of(now).keep(self._alone, newest.offsets if newest else {}, since=self._ends)
        cluster.brokers[self._leader].kill_group()
        cluster.restart_broker(self._next)

    def _proof(self, after: Offsets) -> str:
        """Require equal ends: a follower that had fetched the records before it died would have lost nothing."""
        gone = _sum(self._alone) - _sum(after)
        if after != self._ends:
            return ""
        return (
            f"broker {self._leader} alone had the log up to {_sum(self._alone):,}; after SIGKILL to it, broker "
            f"{self._next} was elected uncleanly and ends at {_sum(after):,}: {gone:,} confirmed records are "
            f"gone, {self._unread:,} of them not processed"
        )

    def _leads(self, now: Moment) -> bool:
        with suppress(HarnessError):
            leaders = kafka.leaders(*topic_of(now))
            orphans = [p for p, node in leaders.items() if node != self._next]
            if orphans:
                kafka.elect_uncleanly(*topic_of(now), orphans)
            return not orphans
        return False


def _sum(ends: Offsets) -> int:
    return sum(ends.values())


KINDS = (
    kind(
        "kafka-leader-change",
        "SIGKILL to the leader of partition 0, so that in-sync replicas become leaders; then the broker is restarted",
        "finds the new leaders and goes on where it was; no count changes",
        lambda spec: LeaderChange(length_ms(spec)),
        {"for": "3s"},
        needs=NEEDS,
        brokers=len(BROKERS),
    ),
    kind(
        "kafka-unclean-election",
        "two brokers are down while the third accepts events of the harness; it dies, and one without them is elected",
        "stops loudly, or counts what it had read; does not confuse new records with lost ones of the same offsets",
        lambda spec: UncleanElection(int(spec.options["records"]), length_ms(spec)),
        {"records": "100", "for": "2s"},
        needs=NEEDS,
        lacks=missing_to_pause,
        brokers=len(BROKERS),
    ),
)
