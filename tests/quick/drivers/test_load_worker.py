"""What `streamgauge worker` says, and why it ended."""

from __future__ import annotations

import pytest

from harness.drivers.load_worker import in_words, why

MASTER = "10.0.0.5:5557"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"kind": "joined"}, "Joined the run at 10.0.0.5:5557"),
        ({"kind": "prepared", "topic": "t", "error_us": 214}, "The run's clock is known to 0.214 ms"),
        ({"kind": "started", "servers": [0, 3]}, "Sending 2 ad servers: 0, 3."),
    ],
)
def test_each_step_is_a_sentence(said, words):
    assert words in in_words(said, MASTER)


def test_the_end_is_the_answer():
    assert in_words({"kind": "ended", "sent": 5}, MASTER) == ""


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ({}, "No run answered at 10.0.0.5:5557. Start it there with --workers N --bind 10.0.0.5:5557"),
        ({"kind": "failed", "why": "no disk."}, "This worker took no part, or not to the end: no disk."),
        ({"kind": "started", "servers": [1]}, "ended before its load did; its own screen says why"),
    ],
)
def test_an_early_end_has_a_reason(last, words):
    assert words in why(last, MASTER)
