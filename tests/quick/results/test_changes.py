"""A look that is dear is taken seldom, and tells when the results changed."""

from __future__ import annotations

from harness.model import HarnessError
from harness.results import change_watch
from harness.results.change_watch import Changes
from harness.util.clock import Clock
from harness.util.wait import wait_until


class Results:
    def __init__(self):
        self.rows, self.looks, self.released, self.broken = ["a"], 0, False, False

    def poll(self):
        self.looks += 1
        if self.broken:
            raise HarnessError("locked")
        return list(self.rows)

    def release(self):
        self.released = True

    def looked_again(self):
        before = self.looks
        wait_until(lambda: self.looks > before + 1, deadline_s=10, what="two more looks")


def test_only_a_change_is_one_and_a_failed_look_is_none(monkeypatch):
    monkeypatch.setattr(change_watch, "POLL_EVERY_S", 0.001)
    results = Results()
    watch = Changes(results.poll, results.release, Clock())
    watch.start()
    results.looked_again()
    assert watch.changed() is None

    results.broken = True
    results.looked_again()
    results.broken = False
    results.looked_again()
    assert watch.changed() is None

    results.rows.append("b")
    results.looked_again()
    first = watch.changed()
    assert first is not None
    assert 0 < first.since_ms <= first.at_ms
    results.looked_again()
    assert watch.changed() == first

    watch.stop()
    assert results.released
