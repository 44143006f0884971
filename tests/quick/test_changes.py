"""A look that is dear is taken seldom, and tells when the results changed."""

from __future__ import annotations

from harness.clock import Clock
from harness.model import HarnessError
from harness.wait import wait_until
from harness.watching import changes
from harness.watching.changes import Changes


class Results:
    def __init__(self):
        self.rows, self.looks, self.released, self.broken = ["a"], 0, False, False

    def look(self):
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
    monkeypatch.setattr(changes, "LOOK_EVERY_S", 0.001)
    results = Results()
    watch = Changes(results.look, results.release, Clock())
    watch.start()
    results.looked_again()
    assert watch.changed_ms() is None

    results.broken = True
    results.looked_again()
    results.broken = False
    results.looked_again()
    assert watch.changed_ms() is None

    results.rows.append("b")
    results.looked_again()
    first_ms = watch.changed_ms()
    assert first_ms is not None
    results.looked_again()
    assert watch.changed_ms() == first_ms

    watch.stop()
    assert results.released
