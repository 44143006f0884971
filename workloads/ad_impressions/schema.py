"""The ad-impression event, exactly as Yahoo's benchmark writes it, and the ids that occur in it.

There is one JSON object per Kafka record: seven fields in a fixed order, every value a string, separators `": "` and
`", "`. `event_json` is the plain definition; it is slow, and the reference for every faster writer and reader. All ids
follow from the seed, so that a run can be judged again from its spec alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.model import TapeSpec

AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
BANNER = AD_TYPES.index("banner")
VIEW = EVENT_TYPES.index("view")
FIELDS = ("user_id", "page_id", "ad_id", "ad_type", "event_type", "event_time", "ip_address")
IP_ADDRESS = "1.2.3.4"
USERS = 100
PAGES = 100
TIME_DIGITS = 13
UUID_LENGTH = 36
ID_LENGTH = 12  # hex digits of an event's id: in a record's key and, in checksum mode, at the end of its user id

# The kinds of poison records. Every sane engine drops all of them, even one that reads only the three fields it needs:
# no part of them may be countable.
POISON_KINDS = (
    "",  # 0: an event
    "not-json",
    "truncated",
    "null-value",
    "unknown-ad",
    "broken-utf8",
    "non-numeric-time",
    "missing-ad",
)


@dataclass(frozen=True)
class Population:
    """All ids that can occur in events. Equal arguments give equal ids on every machine."""

    seed: int
    campaigns: int
    ads_per_campaign: int
    carries_ids: bool  # user ids end with the id of their event, so that a job can sum it

    @cached_property
    def campaign_ids(self) -> tuple[str, ...]:
        return self._uuids("campaign", self.campaigns)

    @cached_property
    def ad_ids(self) -> tuple[str, ...]:
        """Ad i belongs to campaign i // ads_per_campaign."""
        return self._uuids("ad", self.campaigns * self.ads_per_campaign)

    @cached_property
    def user_ids(self) -> tuple[str, ...]:
        return self._uuids("user", USERS)

    @cached_property
    def page_ids(self) -> tuple[str, ...]:
        return self._uuids("page", PAGES)

    @cached_property
    def ad_to_campaign(self) -> dict[str, str]:
        """The join table of the benchmark: ad uuid -> campaign uuid."""
        return {ad: self.campaign_ids[i // self.ads_per_campaign] for i, ad in enumerate(self.ad_ids)}

    def user_of(self, number: int, event_id: int) -> str:
        """Return the id of a user in an event."""
        name = self.user_ids[number]
        return f"{name[:-ID_LENGTH]}{event_id:0{ID_LENGTH}x}" if self.carries_ids else name

    def _uuids(self, kind: str, count: int) -> tuple[str, ...]:
        """Version 4 UUIDs, written all at once: 100,000 ads take a fraction of a second."""
        raw = hashlib.shake_128(f"streamgauge/{self.seed}/{kind}".encode()).digest(16 * count)
        octets = np.frombuffer(raw, dtype=np.uint8).reshape(count, 16).copy()
        octets[:, 6] = octets[:, 6] & 0x0F | 0x40
        octets[:, 8] = octets[:, 8] & 0x3F | 0x80
        digits = octets.tobytes().hex()
        return tuple(_hyphenate(digits[at : at + 32]) for at in range(0, 32 * count, 32))


def population_of(tape: TapeSpec) -> Population:
    """Return the population of a tape."""
    return Population(tape.seed, tape.all_campaigns, tape.ads_per_campaign, carries_ids=tape.checksum)


def _hyphenate(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuid_table(ids: tuple[str, ...]) -> NDArray[np.uint8]:
    """Return ids as rows of characters, for vectorised writers and readers."""
    return np.frombuffer("".join(ids).encode(), dtype=np.uint8).reshape(len(ids), UUID_LENGTH)


def event_json(
    *, user_id: str, page_id: str, ad_id: str, ad_type: str, event_type: str, event_time_ms: int | str
) -> bytes:
    """Return the reference record. Every encoder must write the same bytes."""
    values = (user_id, page_id, ad_id, ad_type, event_type, str(event_time_ms), IP_ADDRESS)
    return json.dumps(dict(zip(FIELDS, values, strict=True))).encode()


def example_json(population: Population, ad_type: str, event_type: str) -> bytes:
    """Return an event with a time of zeros, from which fast writers and readers derive positions."""
    return event_json(
        user_id=population.user_ids[0],
        page_id=population.page_ids[0],
        ad_id=population.ad_ids[0],
        ad_type=ad_type,
        event_type=event_type,
        event_time_ms="0" * TIME_DIGITS,
    )


def poison_bytes(
    kind: int, *, user_id: str, page_id: str, ad_id: str, ad_type: str, event_time_ms: int
) -> bytes | None:
    """Return a record that is no event. In all other respects it is a view, so that an error of counting it is
    visible.
    """
    name = POISON_KINDS[kind]
    if name == "null-value":
        return None
    event = event_json(
        user_id=user_id,
        page_id=page_id,
        ad_id="00000000-0000-4000-8000-000000000000" if name == "unknown-ad" else ad_id,
        ad_type=ad_type,
        event_type="view",
        event_time_ms="yesterday" if name == "non-numeric-time" else event_time_ms,
    )
    ad = ad_id.encode()
    if name == "not-json":
        event = b"not an event: " + ad
    elif name == "truncated":  # within the ad id: no reader can make an event of the rest
        event = event[: event.index(ad) + UUID_LENGTH // 2]
    elif name == "broken-utf8":  # within the ad id, which no reader can skip
        event = event.replace(ad, b"\xff\xfe" + ad[2:])
    elif name == "missing-ad":
        event = event.replace(b'"ad_id": "' + ad + b'", ', b"")
    return event
