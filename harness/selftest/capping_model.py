"""The rule of capping in plain words: what happens to the requests of one user, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SHOW, SUPPRESS = 1, 2


class Rule(NamedTuple):
    """The rule of a user. All are at least 1."""

    cap: int  # ads in an hour
    hour_ms: int  # from the first ad of an hour
    cool_down_ms: int  # after each ad


class Action(NamedTuple):
    """The answer to a request."""

    action: int  # SHOW or SUPPRESS
    shown: int  # ads of the hour up to and including this request


def actions(requests: Iterable[tuple[int, int]], rule: Rule) -> dict[int, Action]:
    """Return the action of each request by its event id. `requests` are pairs of time and event id, in any order.
    Copies of a request are one request.
    """
    answers: dict[int, Action] = {}
    shown, hour_ends, cool_until = 0, 0, 0
    for at_ms, event in sorted(set(requests)):
        if at_ms >= hour_ends:
            shown = 0
        show = shown < rule.cap and at_ms >= cool_until
        if show:
            if shown == 0:
                hour_ends = at_ms + rule.hour_ms
            shown, cool_until = shown + 1, at_ms + rule.cool_down_ms
        answers[event] = Action(SHOW if show else SUPPRESS, shown)
    return answers
