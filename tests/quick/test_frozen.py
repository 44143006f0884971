"""What others rely on, and what old runs are judged by, is as it was written down in frozen.txt."""

from __future__ import annotations

import pytest

from tests.quick import frozen


@pytest.mark.parametrize("section", frozen.SECTIONS)
def test_what_was_written_down_holds(section):
    """A line that is another one is a decision: `python -m tests.quick.frozen` writes all of them anew."""
    found, kept = frozen.of(section), frozen.kept()[section]

    assert [line for line in kept if line not in found] == [], "these lines are gone, or were other ones"
    assert [line for line in found if line not in kept] == [], "these lines were not written down"
    assert found == kept, "the order is another one"


def test_nothing_else_was_written_down():
    assert [*frozen.kept()] == [*frozen.SECTIONS]
    assert all(len(lines) > 4 for lines in frozen.kept().values())
