"""How the log is dealt out to the processes that read it."""

from __future__ import annotations

import pytest

from harness.kafka_log.parallel_readers import SPAN, WORTH_A_PROCESS, _spans, readers_for
from harness.kafka_log.recount import Span

MUCH = 10 * WORTH_A_PROCESS


@pytest.mark.parametrize(
    ("ends", "cores", "many"),
    [
        ({}, 8, 1),
        ({0: 1000, 1: 1000}, 8, 1),
        ({0: WORTH_A_PROCESS, 1: WORTH_A_PROCESS - 1}, 8, 1),
        ({0: WORTH_A_PROCESS, 1: WORTH_A_PROCESS}, 8, 2),
        (dict.fromkeys(range(4), MUCH), 8, 4),
        (dict.fromkeys(range(4), MUCH), 2.5, 2),
        (dict.fromkeys(range(4), MUCH), 0.5, 1),
        ({0: MUCH}, 8, 1),
    ],
)
def test_a_process_is_started_for_a_core_a_partition_and_enough_records(ends, cores, many):
    assert readers_for(ends, cores) == many


def test_the_spans_are_the_whole_log_in_its_order():
    ends = {1: SPAN, 0: 2 * SPAN + 1, 2: 0}

    assert _spans(ends) == [
        Span(0, 0, SPAN),
        Span(0, SPAN, 2 * SPAN),
        Span(0, 2 * SPAN, 2 * SPAN + 1),
        Span(1, 0, SPAN),
    ]
