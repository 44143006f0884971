"""Who reads which part of a long log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.readers import shares

ENDS = st.dictionaries(st.integers(0, 40), st.integers(0, 10**9), max_size=12)


@given(ENDS, st.integers(1, 16))
def test_each_partition_is_read_by_one_reader(ends, readers):
    found = shares(ends, readers)

    assert sorted(place for share in found for place in share.items()) == sorted(ends.items())
    assert len(found) == max(1, min(readers, len(ends)))


@given(ENDS, st.integers(1, 16))
def test_no_reader_could_give_a_partition_to_another_and_still_have_more(ends, readers):
    found = shares(ends, readers)

    least = min(sum(share.values()) for share in found)
    assert all(sum(share.values()) - min(share.values()) <= least for share in found if share)
