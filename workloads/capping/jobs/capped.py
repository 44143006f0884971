"""The pure part of this question's jobs: the state of a user, which changes by its timers only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

SHOW, SUPPRESS = 1, 2
Request = tuple[int, int]  # event time and number


class Cap(NamedTuple):
    """The rule of a user."""

    ads: int
    hour_ms: int
    cool_down_ms: int


class Answer(NamedTuple):
    """The answer to a request."""

    event: int
    action: int  # SHOW or SUPPRESS
    shown: int  # ads in this hour


class User:
    """The requests of a user that wait for the watermark, and the timers.

    There are three kinds of timers: one for each waiting request, at its own time; one for the end of the hour, which
    the first ad sets; one for the end of the cool-down, which each ad sets. They fire in order of time. At equal times
    the hour and the cool-down end first.
    """

    def __init__(
        self, cap: Cap, shown: int = 0, hour_ends: int = 0, cools_until: int = 0, waiting: Iterable[Request] = ()
    ) -> None:
        """`hour_ends`, `cools_until`: 0 if the timer is not set."""
        self._cap, self.shown, self.hour_ends, self.cools_until = cap, shown, hour_ends, cools_until
        self.waiting = list(waiting)
        heapify(self.waiting)

    @property
    def next_ms(self) -> int | None:
        """The time of the next timer; None: no timer is set, as for a user without a state."""
        set_ms = [at_ms for at_ms in (self.hour_ends, self.cools_until) if at_ms]
        return min([*set_ms, *(at_ms for at_ms, _ in self.waiting[:1])], default=None)

    def ask(self, at_ms: int, event: int) -> None:
        heappush(self.waiting, (at_ms, event))

    def fire(self, until_ms: int) -> list[Answer]:
        """Fire the timers that are due, and return the answers of the requests among them."""
        answers: list[Answer] = []
        while (at_ms := self.next_ms) is not None and at_ms <= until_ms:
            if at_ms == self.hour_ends:
                self.shown = self.hour_ends = 0
            elif at_ms == self.cools_until:
                self.cools_until = 0
            else:
                answers.append(self._answer(*heappop(self.waiting), answers))
        return answers

    def _answer(self, at_ms: int, event: int, before: list[Answer]) -> Answer:
        if before and before[-1].event == event:  # a copy, which comes directly behind its original
            return before[-1]
        if self.cools_until or self.shown >= self._cap.ads:
            return Answer(event, SUPPRESS, self.shown)
        if not self.shown:
            self.hour_ends = at_ms + self._cap.hour_ms
        self.shown += 1
        self.cools_until = at_ms + self._cap.cool_down_ms
        return Answer(event, SHOW, self.shown)


def read_caps(table: Mapping[str, str]) -> dict[str, Cap]:
    """Read the rules of all users from the hash in Redis."""
    return {user: Cap(*map(int, rule.split())) for user, rule in table.items()}
