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

import numpy as np

from harness.model import RunSpec, TapeSpec
from workloads.ad_impressions import records
from workloads.ad_impressions.codec import AdCodec
from workloads.ad_impressions.schema import population_of
from workloads.base import BESIDE, COUNTS, Columns, Ints, Mask, Tables, Values
from workloads.etl.oracle import EtlOracle, value_names

ID, EVENT_ID, VALUE = "etl", "event_id", "value"


class EtlCodec(AdCodec):
    """The events of ad impressions, all of which belong to a cell: clicks and purchases too."""

    def counts(self, content: Columns) -> Mask:
        return np.ones(len(content["event_type"]), dtype=np.bool_)

    def read(self, values: Values, ids: Ints) -> Columns:
        columns = records.reader(self._population).read(values, ids).columns()
        kind = columns["kind"]
        return {**columns, "kind": np.where(kind == BESIDE, np.int8(COUNTS), kind)}


class EtlResults:
    """A key for each column of a row. The tables hold the campaign of each ad."""

    def __init__(self, tape: TapeSpec) -> None:
        self._population = population_of(tape)

    keys: Sequence[str] = value_names()
    parts: Sequence[Mapping[str, str]] = tuple({VALUE: name} for name in value_names())
    number = EVENT_ID

    @property
    def tables(self) -> Tables:
        return Tables(self._population.ad_to_campaign, {"campaigns": self._population.campaign_ids})


class Etl:
    id = ID
    asks = "each event a clean row of a table, once, in the partition of its hour and with the campaign of its ad"
    declaration = ""
    keys = frozenset({"campaigns", "window"})

    def codec(self, tape: TapeSpec) -> EtlCodec:
        return EtlCodec(population_of(tape), tape.campaigns)

    def oracle(self, spec: RunSpec) -> EtlOracle:
        return EtlOracle(spec)

    def results(self, tape: TapeSpec) -> EtlResults:
        return EtlResults(tape)

    def length_ms(self, spec: RunSpec) -> None:  # noqa: ARG002
        """No window names a result."""
        return


WORKLOAD = Etl()
