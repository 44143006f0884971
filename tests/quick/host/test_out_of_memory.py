"""Only a count of the kernel's that has risen since the run began says that it killed somebody for memory."""

from __future__ import annotations

import pytest

from harness.host.oom_kills import Memory, in_words

GIB = 1 << 30


@pytest.mark.parametrize(("before", "now"), [(0, 0), (7, 7), (None, 3), (3, None), (None, None), (5, 4)])
def test_nobody_was_killed_as_far_as_is_known(before, now):
    assert in_words(Memory(GIB, before), Memory(GIB, now)) == ""


@pytest.mark.parametrize(("before", "now", "told"), [(0, 1, "killed 1 process to"), (4, 6, "killed 2 processes to")])
def test_the_figures_are_said(before, now, told):
    words = in_words(Memory(2 * GIB, before), Memory(GIB, now))

    assert told in words
    assert "1.07 GB are granted here" in words
