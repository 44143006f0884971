"""Patterns of keys by the names of a question: what they may say, and how a text is taken apart."""

from __future__ import annotations

import pytest

from harness.engines.template import BETWEEN, Layout, misfit

PARTS = [{"city": city, "value": value} for value in ("trips", "max") for city in ("Ulm", "Ulm:7", "Bad Tölz")]
KEYS = [f"{each['value']}:{each['city']}" for each in PARTS]
ONE = [{"city": city, "value": "trips"} for city in ("a1", "a12", "b")]


def at(key: str, field: str = "", *, parts=PARTS) -> Layout:
    return Layout(f"{key}{BETWEEN}{field}", [f"{each['value']}:{each['city']}" for each in parts], parts)


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("rides:{city}:{end}", "{value}"),
        ("rides:{city}", "{value}@{opens}"),
        ("{value}/{window}", "{city}"),
        ("{city}:{value}:{end}", ""),
        ("{campaign}", "{window}"),
        ("{end}-{city}-{value}", ""),
    ],
)
@pytest.mark.parametrize("window", ["0", "-30000", "1767225600000"])
def test_each_cell_is_found_though_separators_stand_in_its_texts(key, field, window):
    assert misfit(key, field, KEYS, PARTS, "opens") == ""
    for name, parts in zip(KEYS, PARTS, strict=True):
        texts = {**parts, "campaign": name, **dict.fromkeys(("end", "opens", "window"), window)}
        assert at(key, field).of(f"{key.format(**texts)}{BETWEEN}{field.format(**texts)}") == (name, window)


def test_what_no_cell_is_called_is_none_and_an_odd_window_of_a_known_one_keeps_its_text():
    layout = at("rides:{city}:{end}", "{value}")

    assert layout.of(f"rides:Oslo:17{BETWEEN}trips") is None
    assert layout.of(f"rides:Ulm:17{BETWEEN}updated") is None
    assert layout.of(f"rides:Ulm:yesterday{BETWEEN}max") == ("max:Ulm", "yesterday")


def test_a_question_without_a_window_has_one_cell_for_each_key():
    layout = at("rides:{city}", "{value}")

    assert misfit("rides:{city}", "{value}", KEYS, PARTS, "") == ""
    assert layout.of(f"rides:Ulm{BETWEEN}max") == ("max:Ulm", "0")


def test_the_name_of_the_only_value_may_stand_there_as_it_is():
    parts = [each for each in PARTS if each["value"] == "max"]

    assert misfit("max:{city}:{end}", "", [f"max:{each['city']}" for each in parts], parts, "opens") == ""
    assert at("max:{city}:{end}", parts=parts).of(f"max:Ulm:5{BETWEEN}") == ("max:Ulm", "5")


@pytest.mark.parametrize(
    ("key", "field", "number", "why"),
    [
        ("{town}:{end}", "{value}", "opens", "{town} is unknown: the names are {campaign}, {city}, {value}"),
        ("{city}", "{value}", "opens", "{window} or {opens} or {end} is missing"),
        ("{city}:{end}", "{value}", "", "{end} is unknown"),
        ("{city}:{opens}", "{value}", "event_id", "{opens} is unknown"),
        ("{city}:{end}", "", "opens", "{value} is missing, so cells of different keys would be the same"),
        ("rides:{end}", "{value}", "opens", "{city} is missing"),
        ("{campaign}:{end}", "{value}", "opens", "{campaign} is all of the key, such as 'trips:Ulm'"),
    ],
)
def test_names_that_do_not_fit_the_question_are_refused(key, field, number, why):
    assert misfit(key, field, KEYS, PARTS, number).startswith(why)


def test_keys_that_can_not_be_told_apart_are_refused():
    keys = [f"trips:{each['city']}" for each in ONE]
    glued = [{"city": city, "kind": kind, "value": "trips"} for city, kind in (("a", "bc"), ("ab", "c"))]

    assert "the digits of 'trips:a12' and 'trips:a1' could be" in misfit("{city}{end}", "", keys, ONE, "opens")
    assert "two keys would be the same" in misfit("{city}{kind}:{end}", "", ["a:bc", "ab:c"], glued, "opens")
    assert misfit("{city}:{end}", "", keys, ONE, "opens") == ""
