"""The run's topic for faults: records that are removed or added outside of the plan are stored and reported.

So the judge can read what the log once held, and which events must not be counted.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence

import confluent_kafka
import numpy as np
from numpy.typing import NDArray

from generators.encode import Encoder
from harness.evidence.observed import DONE, FATE, KEPT, UNREAD
from harness.kafka_log import recount
from harness.kafka_log.recount import Columns
from harness.load.fleet import send_marks
from harness.model import EVENT_TIME, HarnessError, KafkaAddress, RunSpec, Sentinel
from harness.rundir.store import Store
from workloads.registry import codec_of, oracle_of
from workloads.sentinels import mark, totals_of

# Age of our events' timestamps: ahead of no event of an orderly load, and not yet late.
ROAD_MS = 2000
TRANSACTION_DEADLINE_S = 60.0


class TopicLog:
    """See `harness.faults.run_at_poll.Log`."""

    def __init__(
        self,
        spec: RunSpec,
        kafka: KafkaAddress,
        topic: str,
        signal_fleet: Callable[[signal.Signals], None],
        store: Store,
    ) -> None:
        self._spec, self._kafka, self._topic, self._store = spec, kafka, topic, store
        self._codec = codec_of(spec.tape)
        self.signal_fleet = signal_fleet
        self._kept: list[Columns] = []
        self._index = 2 * spec.tape.partitions  # opening and closing events have the first numbers
        self._transactions = 0

    def keep(
        self,
        below: Mapping[int, int],
        done: Mapping[int, int],
        *,
        since: Mapping[int, int] | None = None,
        anew: bool = False,
    ) -> int:
        stamped = self._spec.time != EVENT_TIME
        columns = recount.read(self._kafka, self._topic, below, self._codec, stamped=stamped)
        goes = columns["offset"] >= _looked_up(since or {}, columns["partition"])
        columns = {name: column[goes] for name, column in columns.items()}
        read = _looked_up(done, columns["partition"]) > columns["offset"]
        columns[FATE] = np.where(read, DONE, UNREAD).astype(np.int8)
        self._kept.append(columns)
        if anew:  # new records have offsets from 0 on: older ones get negative offsets
            self._store.tell("anew", ends=below)
            for each in self._kept:
                each["offset"] = each["offset"] - _looked_up(below, each["partition"])
        return int(np.count_nonzero(~read))

    def send(self, partitions: Sequence[int], each: int = 1) -> None:
        time_ms = self._store.clock.now_ms() - ROAD_MS
        places = [partition for partition in partitions for _ in range(each)]
        marks = tuple(mark(self._next(), 0, partition, time_ms, "between") for partition in places)
        self._store.tell("marks", marks=marks)
        send_marks(self._kafka, self._topic, marks, self._codec)

    def begin(self, records: int) -> Callable[[], None]:
        marks = self._spread(records)
        self._transactions += 1
        producer = confluent_kafka.Producer(
            {
                **self._kafka.librdkafka,
                "bootstrap.servers": self._kafka.bootstrap,
                "transactional.id": f"{self._topic}-{self._transactions}",
                "log_level": 3,
            }
        )
        producer.init_transactions(TRANSACTION_DEADLINE_S)
        producer.begin_transaction()
        encoder = Encoder(self._codec, 0)
        for each in marks:
            message = encoder.mark(each)
            producer.produce(self._topic, message["value"], message["key"], each.partition)
        if left := producer.flush(TRANSACTION_DEADLINE_S):
            raise HarnessError(
                f"{left:,} of {records:,} records of a transaction were not confirmed by Kafka at "
                f"{self._kafka.bootstrap} within {TRANSACTION_DEADLINE_S:g} s."
            )
        oracle = oracle_of(self._spec)
        cells = zip(*map(np.ndarray.tolist, totals_of(oracle, self._codec, marks)), strict=True)
        told = [(oracle.codes.key(cell), oracle.codes.field(cell), count) for cell, count in cells]
        self._store.tell("aborted", cells=told)
        return lambda: producer.abort_transaction(TRANSACTION_DEADLINE_S)

    @property
    def has_more(self) -> bool:
        """Return whether the log once held more than the topic does."""
        return bool(self._kept)

    def all_records(self, log: Iterable[Columns]) -> Iterable[Columns]:
        """Return all records that the log ever held, in its order."""
        if not self._kept:
            return log
        left = ({**part, FATE: np.full(len(part["offset"]), KEPT, dtype=np.int8)} for part in log)
        joined = recount.joined([*self._kept, *left])
        order = np.lexsort((joined["offset"], joined["partition"]))
        return [{name: column[order] for name, column in joined.items()}]

    def _spread(self, records: int) -> list[Sentinel]:
        """Return events over all keys and partitions in turn, with current times: they look like all others."""
        time_ms, tape = self._store.clock.now_ms() - ROAD_MS, self._spec.tape
        keys = oracle_of(self._spec).probed_from
        return [
            mark(self._next(), number % keys, number % tape.partitions, time_ms, "aborted") for number in range(records)
        ]

    def _next(self) -> int:
        self._index += 1
        return self._index - 1


def _looked_up(offsets: Mapping[int, int], partitions: NDArray[np.int16]) -> NDArray[np.int64]:
    """Return the offset of each row's partition; 0 if there is none."""
    result = np.zeros(len(partitions), dtype=np.int64)
    for partition, offset in offsets.items():
        result[partitions == partition] = offset
    return result
