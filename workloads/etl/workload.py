"""Streaming ETL as a workload: each event of the ad impressions is a clean row of a table, once.

**Why a cell for each event.** A count of a partition would say that a row is missing; a cell that is named by the
event's id says which one. So each event has five cells: how many rows it has, and a value for each column of its row.
That is five numbers an event, thus the scenarios send hundreds of events a second and not tens of thousands.

**What is dirty, and the rule for it.** The events are Yahoo's: texts, one of them the time. Where the disorder has
`poison_share`, records come that are cut off, no JSON, broken UTF-8, null, without an ad, with an ad that the table of
ads does not have, or with a time that is no number. Each of these is dropped. Every other record is a row, whatever its
type; an event that was sent twice is in the log twice, and so are its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.model import AD_IMPRESSIONS, RunSpec, Sentinel, TapeSpec
from workloads.base import BESIDE, COUNTS, Codec, Columns, Draws, Ints, Mask, Planned, Tables, Values
from workloads.etl.oracle import EtlOracle, value_names
from workloads.shipped import shipped

ID, EVENT_ID, VALUE, ADS = "etl", "event_id", "value", "ads"


def campaigns_of(tape: TapeSpec) -> Mapping[str, str]:
    """Return the campaign of each ad, in the order of the numbers of the ads."""
    return shipped(AD_IMPRESSIONS).results(tape).tables.texts


class EtlCodec:
    """The events of ad impressions. Each belongs to a cell: clicks and purchases too."""

    def __init__(self, events: Codec) -> None:
        self._events = events
        self.content, self.decisive, self.poisons = events.content, events.decisive, events.poisons
        self.mark_size = events.mark_size

    def draw(self, draws: Draws, *, probes: Ints | None, hot: Mask, sure: Mask) -> Columns:
        return self._events.draw(draws, probes=probes, hot=hot, sure=sure)

    def counts(self, content: Columns) -> Mask:
        return np.ones(len(content["event_type"]), dtype=np.bool_)

    def mark(self, mark: Sentinel) -> Mapping[str, int]:
        return self._events.mark(mark)

    def write(self, events: Planned, epoch_ms: int) -> Values:
        return self._events.write(events, epoch_ms)

    def read(self, values: Values, ids: Ints) -> Columns:
        columns = self._events.read(values, ids)
        kind = columns["kind"]
        return {**columns, "kind": np.where(kind == BESIDE, np.int8(COUNTS), kind)}

    def say(self, content: Columns, row: int) -> str:
        return self._events.say(content, row)

    def texts(self, log: Columns) -> Mapping[str, Any]:
        return self._events.texts(log)


class EtlResults:
    """A key for each column of a row. A hash holds the campaign of each ad."""

    def __init__(self, tape: TapeSpec) -> None:
        self._tape = tape

    keys: Sequence[str] = value_names()
    parts: Sequence[Mapping[str, str]] = tuple({VALUE: name} for name in value_names())
    number = EVENT_ID

    @property
    def tables(self) -> Tables:
        return Tables(hashes={ADS: campaigns_of(self._tape)})


class Etl:
    id = ID
    asks = "each event a clean row of a table, once, in the partition of its hour and with the campaign of its ad"
    declaration = ""
    keys = frozenset({"campaigns", "window"})

    def codec(self, tape: TapeSpec) -> EtlCodec:
        return EtlCodec(shipped(AD_IMPRESSIONS).codec(tape))

    def oracle(self, spec: RunSpec) -> EtlOracle:
        return EtlOracle(spec.window_ms, [*campaigns_of(spec.tape).values()])

    def results(self, tape: TapeSpec) -> EtlResults:
        return EtlResults(tape)

    def length_ms(self, spec: RunSpec) -> None:  # noqa: ARG002
        """No window names a result."""
        return


WORKLOAD = Etl()
