"""Yahoo's event and who occurs in it."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from workloads.ad_impressions.schema import FIELDS, POISON_KINDS, Population, event_json, poison_bytes

EVENT: dict[str, Any] = {
    "user_id": "u",
    "page_id": "p",
    "ad_id": "0f6b1f9e-3b5c-4f6a-9d55-111111111111",
    "ad_type": "sponsored-search",
    "event_time_ms": 1763700000000,
}


def test_the_event_is_yahoos_byte_for_byte():
    assert event_json(**EVENT, event_type="view") == (
        b'{"user_id": "u", "page_id": "p", "ad_id": "0f6b1f9e-3b5c-4f6a-9d55-111111111111", '
        b'"ad_type": "sponsored-search", "event_type": "view", "event_time": "1763700000000", "ip_address": "1.2.3.4"}'
    )


def test_ids_are_uuids_follow_from_the_seed_and_never_meet():
    one, same, other = (Population(seed, 100, 10, carries_ids=False) for seed in (1, 1, 2))
    ids = [*one.campaign_ids, *one.ad_ids, *one.user_ids, *one.page_ids]

    assert one.ad_ids == same.ad_ids
    assert (len(one.campaign_ids), len(one.ad_ids), len(one.user_ids), len(one.page_ids)) == (100, 1000, 100, 100)
    assert len({*ids, *other.campaign_ids, *other.ad_ids}) == len(ids) + 1100
    assert all(str(uuid.UUID(name)) == name and uuid.UUID(name).version == 4 for name in ids)


def test_more_campaigns_keep_the_first_ones():
    many, few = (Population(1, campaigns, 10, carries_ids=False) for campaigns in (10_000, 100))
    assert many.campaign_ids[:100] == few.campaign_ids


def test_each_campaign_has_its_ads_in_a_row():
    population = Population(5, 7, 3, carries_ids=False)

    assert list(population.ad_to_campaign) == list(population.ad_ids)
    assert [population.ad_to_campaign[ad] for ad in population.ad_ids[3:6]] == [population.campaign_ids[1]] * 3


@pytest.mark.parametrize("kind", range(1, len(POISON_KINDS)))
def test_no_kind_of_poison_can_be_counted(kind):
    """Not even by a reader that wants three fields and looks at nothing else."""
    value = poison_bytes(kind, **EVENT)

    try:
        fields = json.loads((value or b"").decode())
        countable = fields["ad_id"] == EVENT["ad_id"] and fields["event_type"] == "view" and int(fields["event_time"])
    except (ValueError, KeyError):
        countable = False
    assert not countable


def test_the_fields_are_in_yahoos_order():
    assert tuple(json.loads(event_json(**EVENT, event_type="click"))) == FIELDS
