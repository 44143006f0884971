"""Waiting: what comes back, and what is said when the deadline passes. By a hand-cranked clock."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import HarnessError
from harness.util.wait import NAP_S, DeadlinePassed, ends_within, patience, wait_until

EVENT = re.compile(r"(\w+) = threading\.Event\(\)")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def now_s(self) -> float:
        return self.now

    def sleep_s(self, seconds: float) -> None:
        self.now += seconds


def test_returns_the_first_true_value():
    clock, answers = Clock(), iter([None, 0, "", "there"])
    assert (
        wait_until(lambda: next(answers), deadline_s=5, what="it", now_s=clock.now_s, sleep_s=clock.sleep_s) == "there"
    )


def test_says_what_for_how_long_and_what_was_seen():
    clock = Clock()
    with pytest.raises(
        DeadlinePassed, match=r"Timed out after 2\.5 s .*the moon to rise\. Last state: clouds"
    ) as caught:
        wait_until(
            lambda: False,
            deadline_s=2.5,
            what="the moon to rise",
            state=lambda: "clouds",
            now_s=clock.now_s,
            sleep_s=clock.sleep_s,
        )
    assert isinstance(caught.value, HarnessError)
    assert clock.now == pytest.approx(2.5)


def test_an_error_of_the_predicate_ends_the_wait():
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0, deadline_s=5, what="it")


@given(comes_at=st.floats(0, 10), deadline_s=st.floats(0, 10), every_s=st.floats(0.01, 3))
def test_never_gives_up_before_the_deadline_nor_stays_long_after_it(comes_at, deadline_s, every_s):
    clock = Clock()

    def waited() -> bool:
        try:
            return wait_until(
                lambda: bool(clock.now >= comes_at),
                deadline_s=deadline_s,
                what="it",
                every_s=every_s,
                now_s=clock.now_s,
                sleep_s=clock.sleep_s,
            )
        except DeadlinePassed:
            return False

    came = waited()
    assert clock.now <= deadline_s + 1e-6
    assert came == (clock.now >= comes_at)
    assert came or clock.now >= deadline_s - 1e-6


def test_patience_stretches_a_deadline_and_goes_with_its_run():
    clock = Clock()
    with patience(3), pytest.raises(DeadlinePassed, match=r"after 15 s while waiting for it"):
        wait_until(lambda: None, deadline_s=5, what="it", now_s=clock.now_s, sleep_s=clock.sleep_s)
    with pytest.raises(DeadlinePassed, match=r"after 5 s while waiting for it"):
        wait_until(lambda: None, deadline_s=5, what="it", now_s=clock.now_s, sleep_s=clock.sleep_s)


def test_a_loop_goes_on_when_its_time_is_over_and_ends_when_it_is_told():
    clock, ending = Clock(), threading.Event()

    assert not ends_within(2.5, ending, clock.now_s, clock.sleep_s)
    assert clock.now == pytest.approx(2.5)
    assert not ends_within(-1, ending, clock.now_s, clock.sleep_s)

    def told_meanwhile(seconds: float) -> None:
        clock.sleep_s(seconds)
        ending.set()

    assert ends_within(3600, ending, clock.now_s, told_meanwhile)
    assert clock.now == pytest.approx(2.5 + NAP_S)


def test_no_thread_waits_by_the_clock_of_the_machine():
    """The wait of an Event does where Python was built for an old C library."""
    root = Path(__file__).resolve().parents[3]
    paths = [path for folder in ("harness", "generators", "reports") for path in sorted((root / folder).rglob("*.py"))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    events = [(path, name) for path, text in texts.items() for name in EVENT.findall(text)]
    waiting = [f"{path.relative_to(root)}: {name}" for path, name in events if f"{name}.wait(" in texts[path]]

    assert len(events) > 3
    assert waiting == []
