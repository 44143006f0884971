"""Streaming ETL: a batch that was written twice is named, although an event has other values beside its count."""

from __future__ import annotations

from harness.judging.judge import conclude
from harness.selftest import rows


def test_a_batch_whose_events_are_two_rows_each_is_named():
    verdict = conclude(dict(rows.planted())["a batch whose events are two rows each"])

    assert verdict.sentence == "duplicated: 50 events too many in 50 cells: exactly batch 3 once more"
