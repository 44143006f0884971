"""A partition against its plan: equal, and with each way to differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.by_partition import KEY, VALUE
from harness.kafka_log.against_plan import Compared, Record, compare

RECORDS = [(b"%d" % number, None if number % 3 == 0 else b"v%d" % number) for number in range(10)]
LISTS = st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.sampled_from([None, b"", b"x"])), max_size=12)


def batches(records: Sequence[Record], size: int) -> list[pa.RecordBatch]:
    return [
        pa.RecordBatch.from_pydict(
            {
                KEY: pa.array([key for key, _ in part], pa.binary()),
                VALUE: pa.array([value for _, value in part], pa.binary()),
                "more": pa.array([1] * len(part)),
            }
        )
        for part in (records[at : at + size] for at in range(0, len(records), size))
    ]


def found(logged: Sequence[Record], planned: Sequence[Record] = RECORDS) -> Compared:
    return compare(7, batches(planned, 4), batches(logged, 3))


@pytest.mark.parametrize(
    ("logged", "extra", "missing", "first"),
    [
        (RECORDS, 0, 0, -1),
        ([], 0, 10, 0),
        (RECORDS[:-1], 0, 1, 9),
        ([*RECORDS, RECORDS[2]], 1, 0, 10),
        (RECORDS[:5] + RECORDS[4:], 1, 0, 5),
        (RECORDS[:6] + RECORDS[7:], 0, 1, 6),
        ([*RECORDS[:5], (RECORDS[5][0], b"other"), *RECORDS[6:]], 1, 1, 5),
        ([(b"other", RECORDS[0][1]), *RECORDS[1:]], 1, 1, 0),
        ([*RECORDS[:3], (RECORDS[3][0], b""), *RECORDS[4:]], 1, 1, 3),  # a record without a value is not an empty one
        ([*RECORDS[:1], RECORDS[2], RECORDS[1], *RECORDS[3:]], 0, 0, 1),
    ],
)
def test_each_difference_is_counted_and_has_its_place(logged, extra, missing, first):
    assert found(logged) == Compared(7, len(logged), 10, extra, missing, first)


@given(LISTS, LISTS, st.integers(1, 5), st.integers(1, 5))
def test_it_is_the_difference_of_both_however_they_are_cut(planned, logged, one, other):
    result = compare(0, batches(planned, one), batches(logged, other))

    assert result.extra == (Counter(logged) - Counter(planned)).total()
    assert result.missing == (Counter(planned) - Counter(logged)).total()
    assert (result.first == -1) == (planned == logged)
    assert (result.planned, result.records) == (len(planned), len(logged))
    if result.first >= 0:
        assert planned[: result.first] == logged[: result.first]
        assert planned[result.first : result.first + 1] != logged[result.first : result.first + 1]
