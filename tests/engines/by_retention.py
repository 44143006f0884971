"""streamgauge with a broker that deletes older records by itself, where a run with a history would delete them.

    python -m tests.engines.by_retention run history ...

Retention deletes whole segments, the oldest first, as long as more than so many bytes are left without one. So it is
known beforehand where Kafka will begin: where a segment does, and nowhere later than a run would have had it. What lies
below is kept for the judge, and then the broker has to come to exactly that.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from kafka.admin import ConfigResource

from harness import __main__ as program
from harness.model import FileSeam, KafkaAddress
from harness.runner.world import log, services
from harness.runner.world.history_files import HistoryFiles
from harness.services import kafka
from harness.services.kafka import EmbeddedKafka
from harness.services.kafka_admin import administering
from harness.util.wait import wait_until

SMALLEST_SEGMENT = 1024 * 1024  # that a topic may have
LOOKS_MS = "500"
DEADLINE_S = 60
STILL_S = 0.3


class Segment(NamedTuple):
    first: int  # record
    size: int


class Broker(EmbeddedKafka):
    """It looks often for what is to be deleted, and soon after its start."""

    data: Path

    def properties(self, broker_port: int, controller_port: int) -> dict[str, str]:
        Broker.data = self._data
        often = {"log.retention.check.interval.ms": LOOKS_MS, "log.initial.task.delay.ms": LOOKS_MS}
        return {**super().properties(broker_port, controller_port), **often}


class ByRetention(HistoryFiles):
    def _let_go(self, seam: FileSeam) -> FileSeam:
        """On a busy machine the load has begun. The ad servers are held: for all that they send, more would go."""
        self._log.signal_fleet(signal.SIGSTOP)
        try:
            self._await_silence()
            return replace(seam, begins=self._begins(seam))
        finally:
            self._log.signal_fleet(signal.SIGCONT)

    def _await_silence(self) -> None:
        seen: list[dict[int, int]] = []

        def still() -> bool:
            seen.append(kafka.end_offsets(self._address, self._topic))
            return seen[-2:-1] == seen[-1:]

        wait_until(still, deadline_s=DEADLINE_S, what="the log to stand still", every_s=STILL_S)

    def _begins(self, seam: FileSeam) -> tuple[int, ...]:
        """Where Kafka does, now that the broker has deleted the older segments."""
        partitions = [segments_of(Broker.data / "log" / f"{self._topic}-{p}") for p, _ in enumerate(seam.begins)]
        left = max(size_from(segments, first) for segments, first in zip(partitions, seam.begins, strict=True))
        begins = tuple(first_left(segments, left) for segments in partitions)
        assert all(begins), f"nothing would be deleted: {partitions}"
        gone = dict(enumerate(begins))
        self._log.keep(gone, gone)
        retain(self._address, self._topic, left)
        wait_until(
            lambda: kafka.beginning_offsets(self._address, self._topic) == gone,
            deadline_s=DEADLINE_S,
            what=f"retention to delete what lies below {gone}",
            state=lambda: f"Kafka begins at {kafka.beginning_offsets(self._address, self._topic)}.",
        )
        retain(self._address, self._topic, -1)
        return begins


def segments_of(partition: Path) -> list[Segment]:
    return [Segment(int(path.stem), path.stat().st_size) for path in sorted(partition.glob("*.log"))]


def size_from(segments: Sequence[Segment], record: int) -> int:
    """Of the segment in which it lies, and all behind."""
    later = [segment for segment, following in pairwise(segments) if following.first > record]
    return sum(segment.size for segment in (*later, segments[-1]))


def first_left(segments: Sequence[Segment], left: int) -> int:
    """The first record when as many of the oldest segments are gone as may go."""
    size = sum(segment.size for segment in segments)
    for segment in segments[:-1]:
        if size - segment.size < left:
            return segment.first
        size -= segment.size
    return segments[-1].first


def retain(address: KafkaAddress, topic: str, size: int) -> None:
    with administering(address, f"topic {topic}") as admin:
        admin.alter_configs([ConfigResource("TOPIC", topic, {"retention.bytes": str(size)})])


def main() -> None:
    with (
        patch.dict(kafka.TOPIC_CONFIG, {"segment.bytes": str(SMALLEST_SEGMENT)}),
        patch.object(services, "EmbeddedKafka", Broker),
        patch.object(log, "HistoryFiles", ByRetention),
    ):
        program.main()


if __name__ == "__main__":
    main()
