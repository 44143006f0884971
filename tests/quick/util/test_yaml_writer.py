"""YAML that is written is read as what it was written from, by a reader of YAML 1.1 as by one of 1.2."""

from __future__ import annotations

import io
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from harness.util.yaml_writer import documents

TEXTS = st.one_of(
    st.text(max_size=12),
    st.text(string.ascii_letters + string.digits + ":-_./ #'\"\\", max_size=12),
    st.sampled_from(
        ["no", "Yes", "off", "~", "null", "1:30", "0x1F", "1e3", "- a", "a: b", "a:", "---", "--kafka", "é\x85"]
    ),
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=12,
)


def read(text: str, version: str) -> list[object]:
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    return list(reader.load_all(io.StringIO(text)))


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@given(given=st.lists(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_written_is_read_again(given, version):
    assert read(documents(given), version) == given


def test_what_needs_no_quotes_has_none():
    value = {"args": ["run", "--kafka", "broker:9092", "10Gi"], "labels": {}, "on": True}

    assert documents([value]).splitlines() == [
        *("---", "args:", "  - run", "  - --kafka", "  - broker:9092", '  - "10Gi"', "labels: {}", '"on": true')
    ]
