"""What a run says while it waits for load workers."""

from __future__ import annotations

import pytest

from harness.load.workers import joined


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ([], "no worker has joined."),
        (["a"], "1 worker joined, on a."),
        (["a", "b", "a"], "3 workers joined, on a (2), b."),
    ],
)
def test_it_is_said_where_workers_have_joined(hosts, words):
    assert joined(hosts) == words
