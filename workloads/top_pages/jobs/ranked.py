"""The pure part of this question's jobs: the pages of a window with a place."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest
from typing import NamedTuple

LENGTH_MS = 10_000  # length of a window
PLACES = 5
PLACE, VIEWS = "place", "views"  # values


class Ranked(NamedTuple):
    """A page with a place."""

    page: str
    place: int
    views: int


def top(views: Mapping[str, int]) -> list[Ranked]:
    """Return the pages with the most views. Of equal views the smaller name comes first."""
    first = nsmallest(PLACES, views, key=lambda page: (-views[page], page))
    return [Ranked(page, place, views[page]) for place, page in enumerate(first, 1)]


def opens_of(viewed_at: int) -> int:
    """Return the start of the window that holds this time."""
    return viewed_at - viewed_at % LENGTH_MS
