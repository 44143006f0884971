"""The ad-impression event as a codec: how it is drawn, written and read back; see `workloads.base.Codec`.

Records are written many at a time by numpy instead of field by field, with the same bytes as schema.event_json. All
parts of variable length are after the ad id, thus a record is a fixed head (user, page, ad), one of fifteen middles (ad
type, event type) and thirteen digits of time at a position that the middle decides. Records are rows of one matrix,
padded with zero bytes, which `tolist` of a bytes array removes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.model import Sentinel
from harness.util.seeded_draws import below
from workloads.ad_impressions import records
from workloads.ad_impressions.schema import (
    AD_TYPES,
    BANNER,
    EVENT_TYPES,
    ID_LENGTH,
    PAGES,
    POISON_KINDS,
    TIME_DIGITS,
    USERS,
    UUID_LENGTH,
    VIEW,
    Population,
    example_json,
    poison_bytes,
    uuid_table,
)
from workloads.base import Columns, Draws, Ints, Mask, Planned, Values

_AUDIENCE = USERS * PAGES * len(AD_TYPES)
_FOUR_DIGITS = np.array([b"%04d" % number for number in range(10_000)], dtype="S4")


class AdCodec:
    """The codec of one population, whose last campaigns may be probed ones."""

    content = ("ad", "ad_type", "event_type", "user", "page")
    decisive = ("ad", "event_type")
    poisons = len(POISON_KINDS) - 1
    mark_size = 1

    def __init__(self, population: Population, probed_from: int) -> None:
        self._population, self._probed_from = population, probed_from

    def draw(self, draws: Draws, *, probes: Ints | None, hot: Mask, sure: Mask) -> Columns:
        rest = ((draws & np.uint64(0xFFFFFFFF)) * np.uint64(_AUDIENCE * len(EVENT_TYPES))) >> np.uint64(32)
        event_type, rest = _take(rest.astype(np.uint32), _AUDIENCE)
        ad_type, rest = _take(rest, USERS * PAGES)
        user, page = _take(rest, PAGES)
        return {
            "ad": np.where(hot, 0, self._ads(draws, probes)).astype(np.int32),
            "ad_type": ad_type.astype(np.int8),
            "event_type": np.where(sure, VIEW, event_type).astype(np.int8),
            "user": user.astype(np.int8),
            "page": page.astype(np.int8),
        }

    def _ads(self, draws: Draws, probes: Ints | None) -> Ints:
        """A probe gets any ad of its own campaign."""
        ads = self._population.ads_per_campaign
        if probes is None:
            return below(draws, self._probed_from * ads)
        return (self._probed_from + probes) * ads + below(draws, ads)

    def counts(self, content: Columns) -> Mask:
        return np.asarray(content["event_type"] == VIEW)

    def mark(self, mark: Sentinel) -> Mapping[str, int]:
        """Return an ordinary view of the campaign's first ad."""
        ad = mark.campaign * self._population.ads_per_campaign
        return {"ad": ad, "ad_type": BANNER, "event_type": VIEW, "user": mark.user, "page": mark.page}

    def write(self, events: Planned, epoch_ms: int) -> Values:
        values, bad = self._writer.values(events, epoch_ms), np.flatnonzero(events.poison).tolist()
        return values.but({row: self._poison(events, row, epoch_ms) for row in bad}) if bad else values

    def read(self, values: Values, ids: Ints) -> Columns:
        return records.reader(self._population).read(values, ids).columns()

    def say(self, content: Columns, row: int) -> str:
        return f"{EVENT_TYPES[int(content['event_type'][row])]} of ad {content['ad'][row]}"

    def texts(self, log: Columns) -> Mapping[str, Any]:
        population = self._population
        names = {
            "campaign": ("campaign", population.campaign_ids),
            "user_id": ("user", population.user_ids),
            "page_id": ("page", population.page_ids),
            "ad_id": ("ad", population.ad_ids),
            "ad_type": ("ad_type", AD_TYPES),
            "event_type": ("event_type", EVENT_TYPES),
        }
        texts = {name: pa.array(each).take(pa.array(log[of], mask=log[of] < 0)) for name, (of, each) in names.items()}
        if population.carries_ids:
            users = zip(log["user"].tolist(), log["event_id"].tolist(), strict=True)
            texts["user_id"] = pa.array([None if user < 0 else population.user_of(user, each) for user, each in users])
        return texts

    @cached_property
    def _writer(self) -> _Writer:
        return _Writer(self._population)

    def _poison(self, events: Planned, row: int, epoch_ms: int) -> bytes | None:
        content, population = events.content, self._population
        return poison_bytes(
            int(events.poison[row]),
            user_id=population.user_of(int(content["user"][row]), int(events.id[row])),
            page_id=population.page_ids[content["page"][row]],
            ad_id=population.ad_ids[content["ad"][row]],
            ad_type=AD_TYPES[content["ad_type"][row]],
            event_time_ms=int(events.event_time_rel_ms[row]) + epoch_ms,
        )


class _Writer:
    """The tables from which the records of one population are assembled."""

    def __init__(self, population: Population) -> None:
        self._carries_ids = population.carries_ids
        users, pages, ads = (uuid_table(ids) for ids in (population.user_ids, population.page_ids, population.ad_ids))
        # The first event of the population, cut into the parts that a record is put together from.
        example = example_json(population, AD_TYPES[0], EVENT_TYPES[0])
        head_length = example.index(population.ad_ids[0].encode())
        body_at = head_length + UUID_LENGTH
        user_end = example.index(population.user_ids[0].encode()) + UUID_LENGTH
        self._id_at = slice(user_end - ID_LENGTH, user_end)
        self._heads = _heads(example[:head_length], population, users, pages)
        self._ads = _rows(ads)
        rests = [example_json(population, ad, kind)[body_at:] for kind in EVENT_TYPES for ad in AD_TYPES]
        self._rests = np.array(rests, dtype=f"S{max(map(len, rests))}")
        self._time_at = np.array([body_at + rest.index(b"0" * TIME_DIGITS) for rest in rests])
        self._lengths = np.array([body_at + len(rest) for rest in rests], dtype=np.int64)
        self._row = np.dtype([("head", f"V{head_length}"), ("ad", f"V{UUID_LENGTH}"), ("rest", self._rests.dtype)])

    def values(self, events: Planned, epoch_ms: int) -> Values:
        content = events.content
        kind = content["event_type"].astype(np.int64) * len(AD_TYPES) + content["ad_type"]
        rows = np.empty(len(events), dtype=self._row)
        rows["head"] = self._heads[content["user"].astype(np.int64) * PAGES + content["page"]]
        rows["ad"] = self._ads[content["ad"]]
        rows["rest"] = self._rests[kind]
        width = self._row.itemsize
        digits_at = np.arange(len(events)) * width + self._time_at[kind]
        anywhere: NDArray[np.void] = np.ndarray(
            (rows.nbytes - TIME_DIGITS + 1 if len(events) else 0,), f"V{TIME_DIGITS}", rows, 0, (1,)
        )
        anywhere[digits_at] = _digits(events.event_time_rel_ms + epoch_ms)
        if self._carries_ids:
            octets = events.id.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
            digits = np.frombuffer(octets.tobytes().hex().encode(), dtype=np.uint8)
            rows.view(np.uint8).reshape(-1, width)[:, self._id_at] = digits.reshape(-1, ID_LENGTH)
        return Values(rows.view(np.uint8), np.arange(len(events)) * width, self._lengths[kind])


def _take(mixed: NDArray[np.uint32], base: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Splits mixed = first * base + rest."""
    first = mixed // np.uint32(base)
    return first, mixed - first * np.uint32(base)


def _heads(
    example: bytes, population: Population, users: NDArray[np.uint8], pages: NDArray[np.uint8]
) -> NDArray[np.void]:
    """The bytes before the ad id, for each user and page."""
    heads = np.tile(np.frombuffer(example, dtype=np.uint8), (len(users), len(pages), 1))
    user_at = example.index(population.user_ids[0].encode())
    page_at = example.index(population.page_ids[0].encode())
    heads[:, :, user_at : user_at + UUID_LENGTH] = users[:, None, :]
    heads[:, :, page_at : page_at + UUID_LENGTH] = pages[None, :, :]
    return _rows(heads.reshape(-1, len(example)))


def _rows(table: NDArray[np.uint8]) -> NDArray[np.void]:
    """Each row as one value, so that selecting rows copies each at once."""
    return np.ascontiguousarray(table).view(f"V{table.shape[1]}").ravel()


def _digits(times_ms: NDArray[np.int64]) -> NDArray[np.void]:
    """Thirteen decimal digits of each time: 4 + 4 + 4 + 1."""
    parts = np.empty(len(times_ms), dtype="S4,S4,S4,S1")
    upper = times_ms // 10
    # The last digit d is looked up as "d000", and a field of one character keeps its first.
    parts["f3"] = _FOUR_DIGITS[(times_ms - upper * 10) * 1000]
    middle = upper // 10_000
    parts["f2"] = _FOUR_DIGITS[upper - middle * 10_000]
    first = middle // 10_000
    parts["f1"] = _FOUR_DIGITS[middle - first * 10_000]
    parts["f0"] = _FOUR_DIGITS[first]
    return parts.view(f"V{TIME_DIGITS}")
