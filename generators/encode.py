"""The bytes of events, many at a time: what schema.event_json says, written by numpy instead of field by field.

All that varies in length lies behind the ad id, so a record is a fixed head (user, page, ad), one of fifteen middles
(ad type, event type) and thirteen digits of time at a place that the middle decides. Records are rows of one matrix,
filled up with zero bytes, which `tolist` of a bytes array takes off again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from generators.tape import Events
from harness.model import Mark
from workloads.ad_impressions.schema import (
    AD_TYPES,
    BANNER,
    EVENT_TYPES,
    ID_LENGTH,
    PAGES,
    TIME_DIGITS,
    UUID_LENGTH,
    VIEW,
    Population,
    event_json,
    example_json,
    poison_bytes,
    uuid_table,
)

_FOUR_DIGITS = np.array([b"%04d" % number for number in range(10_000)], dtype="S4")

Message = dict[str, bytes | None]


def encode_keys(ids: NDArray[np.uint64]) -> list[bytes]:
    """A record's key: the 48 bits of the event's id as 12 lower-case hex digits."""
    if not len(ids):
        return []
    return _octets(ids).tobytes().hex("-", ID_LENGTH // 2).encode().split(b"-")


def _octets(ids: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return ids.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]


class Encoder:
    """Writes the events of one population; relative times become absolute ones."""

    def __init__(self, population: Population, epoch_ms: int) -> None:
        self.population = population
        self.epoch_ms = epoch_ms
        users, pages, ads = (uuid_table(ids) for ids in (population.user_ids, population.page_ids, population.ad_ids))
        # The first event of the population, cut into the parts that a record is put together from.
        example = example_json(population, AD_TYPES[0], EVENT_TYPES[0])
        head_length = example.index(population.ad_ids[0].encode())
        self._head_length = head_length + UUID_LENGTH
        user_end = example.index(population.user_ids[0].encode()) + UUID_LENGTH
        self._id_at = slice(user_end - ID_LENGTH, user_end)
        self._heads = _heads(example[:head_length], population, users, pages)
        self._ads = _rows(ads)
        rests = [example_json(population, ad, kind)[self._head_length :] for kind in EVENT_TYPES for ad in AD_TYPES]
        self._rests = np.array(rests, dtype=f"S{max(map(len, rests))}")
        self._time_at = np.array([self._head_length + rest.index(b"0" * TIME_DIGITS) for rest in rests])
        self._row = np.dtype([("head", f"V{head_length}"), ("ad", f"V{UUID_LENGTH}"), ("rest", self._rests.dtype)])

    def batch(self, events: Events) -> list[Message]:
        """Messages for confluent's produce_batch, in the order of the slots."""
        values = self._values(events)
        for row in np.flatnonzero(events.poison):
            values[row] = self._poison(events, int(row))
        keys = encode_keys(events.id)
        return [{"value": value, "key": key} for value, key in zip(values, keys, strict=True)]

    def mark(self, mark: Mark) -> Message:
        """A mark is a view like any other, of its campaign's first ad."""
        population = self.population
        value = event_json(
            user_id=population.user_of(mark.user, mark.id),
            page_id=population.page_ids[mark.page],
            ad_id=population.ad_ids[mark.campaign * population.ads_per_campaign],
            ad_type=AD_TYPES[BANNER],
            event_type=EVENT_TYPES[VIEW],
            event_time_ms=mark.event_time_ms,
        )
        return {"value": value, "key": b"%012x" % mark.id}

    def _values(self, events: Events) -> list[bytes | None]:
        kind = events.event_type.astype(np.int64) * len(AD_TYPES) + events.ad_type
        rows = np.empty(len(events), dtype=self._row)
        rows["head"] = self._heads[events.user.astype(np.int64) * PAGES + events.page]
        rows["ad"] = self._ads[events.ad]
        rows["rest"] = self._rests[kind]
        width = self._row.itemsize
        digits_at = np.arange(len(events)) * width + self._time_at[kind]
        anywhere: NDArray[np.void] = np.ndarray(
            (rows.nbytes - TIME_DIGITS + 1 if len(events) else 0,), f"V{TIME_DIGITS}", rows, 0, (1,)
        )
        anywhere[digits_at] = _digits(events.event_time_rel_ms + self.epoch_ms)
        if self.population.carries_ids:
            digits = np.frombuffer(_octets(events.id).tobytes().hex().encode(), dtype=np.uint8)
            rows.view(np.uint8).reshape(-1, width)[:, self._id_at] = digits.reshape(-1, ID_LENGTH)
        return rows.view(f"S{width}").tolist()

    def _poison(self, events: Events, row: int) -> bytes | None:
        return poison_bytes(
            int(events.poison[row]),
            user_id=self.population.user_of(int(events.user[row]), int(events.id[row])),
            page_id=self.population.page_ids[events.page[row]],
            ad_id=self.population.ad_ids[events.ad[row]],
            ad_type=AD_TYPES[events.ad_type[row]],
            event_time_ms=int(events.event_time_rel_ms[row]) + self.epoch_ms,
        )


def _heads(
    example: bytes, population: Population, users: NDArray[np.uint8], pages: NDArray[np.uint8]
) -> NDArray[np.void]:
    """What stands before the ad id, for each user and page."""
    heads = np.tile(np.frombuffer(example, dtype=np.uint8), (len(users), len(pages), 1))
    user_at = example.index(population.user_ids[0].encode())
    page_at = example.index(population.page_ids[0].encode())
    heads[:, :, user_at : user_at + UUID_LENGTH] = users[:, None, :]
    heads[:, :, page_at : page_at + UUID_LENGTH] = pages[None, :, :]
    return _rows(heads.reshape(-1, len(example)))


def _rows(table: NDArray[np.uint8]) -> NDArray[np.void]:
    """Each row as one value, so that picking rows is one copy each."""
    return np.ascontiguousarray(table).view(f"V{table.shape[1]}").ravel()


def _digits(times_ms: NDArray[np.int64]) -> NDArray[np.void]:
    """Thirteen decimal digits of each time: 4 + 4 + 4 + 1."""
    parts = np.empty(len(times_ms), dtype="S4,S4,S4,S1")
    upper = times_ms // 10
    # The last digit d is looked up as "d000", of which a field of one character keeps the first.
    parts["f3"] = _FOUR_DIGITS[(times_ms - upper * 10) * 1000]
    middle = upper // 10_000
    parts["f2"] = _FOUR_DIGITS[upper - middle * 10_000]
    first = middle // 10_000
    parts["f1"] = _FOUR_DIGITS[middle - first * 10_000]
    parts["f0"] = _FOUR_DIGITS[first]
    return parts.view(f"V{TIME_DIGITS}")
