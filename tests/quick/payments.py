"""A small workload that shares nothing with the shipped ones: payments of shops, of which some are refunds.

Each payment lies in two sliding windows of its shop, which hold the number of payments, their sum in cents, and how
many different payers there were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from harness.model import RunSpec, Sentinel, TapeSpec
from harness.util.seeded_draws import Lane, below, between
from workloads.base import (
    COUNTS,
    NO_EVENT,
    NOTHING,
    Columns,
    Draws,
    Ints,
    Kind,
    Mask,
    Places,
    Planned,
    Tables,
    Totals,
    Value,
    Values,
)
from workloads.cells import Codes

SHOPS, PAYERS = 4, 9
SLIDES = 2  # a window is so many slides long


class PaymentCodec:
    content = ("shop", "payer", "cents")
    decisive = content
    poisons = 1

    def draw(self, draws: Draws, *, probes: Ints | None, hot: Mask, sure: Mask) -> Columns:
        numbers = draws.view(np.int64)
        return {
            "shop": np.where(hot, 0, below(draws, SHOPS)).astype(np.int16),
            "payer": below(Lane.of(1, "payer").at(numbers), PAYERS).astype(np.int16),
            "cents": between(Lane.of(1, "cents").at(numbers), -500, 2000),
        }

    def counts(self, content: Columns) -> Mask:
        return np.ones(len(content["shop"]), dtype=np.bool_)

    mark_size = 1

    def mark(self, mark: Sentinel) -> Mapping[str, int]:
        return {"shop": mark.campaign, "payer": mark.user, "cents": 1 + mark.page}

    def write(self, events: Planned, epoch_ms: int) -> Values:
        columns = (*events.content.values(), events.event_time_rel_ms + epoch_ms, events.poison)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        told = [
            b"?" if poison else json.dumps({"shop": shop, "payer": payer, "cents": cents, "at": at}).encode()
            for shop, payer, cents, at, poison in rows
        ]
        return Values.of(told)

    def read(self, values: Sequence[bytes | None], ids: Ints) -> Columns:
        told = [None if value in (None, b"?") else json.loads(value or b"") for value in values]
        names = {"shop": "shop", "payer": "payer", "cents": "cents", "event_time_ms": "at"}
        columns = {
            name: np.array([NOTHING if each is None else each[at] for each in told], dtype=np.int64)
            for name, at in names.items()
        }
        return {**columns, "kind": np.array([NO_EVENT if each is None else COUNTS for each in told], dtype=np.int8)}

    def say(self, content: Columns, row: int) -> str:
        return f"{content['cents'][row]} cents in shop {content['shop'][row]}"

    def texts(self, log: Columns) -> Mapping[str, Any]:
        return {name: pa.array(log[name], mask=log["kind"] == NO_EVENT) for name in self.content}


class PaymentOracle:
    values = (Value("payments", Kind.COUNT), Value("cents", Kind.SUM), Value("payers", Kind.MONOTONE))
    merges = keeps_rows = False
    groups = probed_from = SHOPS

    def __init__(self, window_ms: int) -> None:
        self.codes = Codes()
        self._window_ms, self.part_ms = window_ms, window_ms // SLIDES

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        """Event by event, in plain words."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for block in blocks:
            columns = (*block.content.values(), block.event_time_rel_ms, block.poison)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            for shop, payer, cents, time_ms, poison in rows:
                last_ms = time_ms // self.part_ms * self.part_ms
                for begin_ms in (last_ms - self.part_ms, last_ms) if not poison else ():
                    found.setdefault((shop, begin_ms), []).append((payer, cents))
        planned = [
            row
            for (shop, begin_ms), paid in found.items()
            for row in (
                (shop, begin_ms, len(paid)),
                (shop + SHOPS, begin_ms, sum(cents for _, cents in paid)),
                (shop + 2 * SHOPS, begin_ms, len({payer for payer, _ in paid})),
            )
        ]
        keys, begins, values = np.array(planned, dtype=np.int64).reshape(-1, 3).T
        return {"key": keys, "begin_rel_ms": begins, "value": values}

    def settle(self, planned: Columns, epoch_ms: int) -> Totals:
        return Totals(self.codes.of(planned["key"], planned["begin_rel_ms"] + epoch_ms), planned["value"])

    def places(self, events: Columns) -> Places:
        count, each = len(events["shop"]), SLIDES * len(self.values)
        row = np.repeat(np.arange(count), each)
        back, value = np.divmod(np.tile(np.arange(each), count), len(self.values))
        begins_ms = (events["event_time_ms"][row] // self.part_ms - back) * self.part_ms
        cells = self.codes.of(events["shop"][row] + value * SHOPS, begins_ms)
        columns = {name: events[name][row].astype(np.int64) for name in ("payer", "cents")}
        return Places(row, cells, begins_ms + self._window_ms, columns)

    def fold(self, cells: Ints, columns: Columns) -> Totals:
        codes, of = np.unique(cells, return_inverse=True)
        sums = np.zeros(len(codes), dtype=np.int64)
        np.add.at(sums, of, columns["cents"])
        payers = np.bincount(np.unique(np.stack([of, columns["payer"]]), axis=1)[0], minlength=len(codes))
        kinds = self.codes.keys(codes) // SHOPS
        return Totals(codes, np.select([kinds == 0, kinds == 1], [np.bincount(of, minlength=len(codes)), sums], payers))

    def begins_ms(self, cells: Ints) -> Ints:
        return self.codes.fields(cells)

    def name(self, cell: int, epoch_ms: int) -> str:
        value, shop = divmod(self.codes.key(cell), SHOPS)
        return f"{self.values[value].name} of shop {shop}, window {(self.codes.field(cell) - epoch_ms) / 1000:+.0f} s"


class PaymentResults:
    keys = tuple(f"{value.name}:{shop}" for value in PaymentOracle.values for shop in range(SHOPS))
    parts: Sequence[Mapping[str, str]] = ()
    number = "opens"
    tables = Tables()


class Payments:
    id = "payments"
    keys = frozenset[str]()
    declaration = ""

    def codec(self, tape: TapeSpec) -> PaymentCodec:
        return PaymentCodec()

    def oracle(self, spec: RunSpec) -> PaymentOracle:
        return PaymentOracle(spec.window_ms)

    def results(self, tape: TapeSpec) -> PaymentResults:
        return PaymentResults()


WORKLOAD = Payments()
