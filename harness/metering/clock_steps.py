"""Detect during a run that the machine's clock steps, that the machine sleeps, or that the harness does not run.

None of these makes a count wrong, but each makes a figure of speed wrong. An engine stamps by the machine's clock and
may wait by it, and a result that came while the harness did not run is seen too late. So counts are judged, and speed
is withheld.

On Linux, NTP slews both clocks alike, so a difference between them is a step. Elsewhere a slewed clock is reported each
time it has moved by a step. Less than a step changes no figure by more than one poll of the results does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.rundir.store import Store
from harness.util.clock import Reading
from harness.util.wait import ends_within

STEP_MS = 50
# On two cores with eight busy processes a poll of the results came two seconds late; the report shows such delays. With
# longer ones, figures are not reliable.
AWAY_MS = 5000
POLL_EVERY_S = 0.25
JOIN_S = 5.0
MOST_SAID = 3
KIND = "clock"  # of lines in the history


@dataclass(frozen=True)
class Oddity:
    """An irregularity of the clocks."""

    what: str  # "step" | "sleep" | "away"
    at_ms: int  # when it was noticed, by the run's clock
    by_ms: int  # how far, or how long
    ahead_ms: int  # how far the machine's clock is ahead of the run's from then on

    @property
    def deed(self) -> str:
        seconds = f"{abs(self.by_ms) / 1000:,.1f} s"
        deeds = {
            "step": f"the machine's clock was set {'ahead' if self.by_ms > 0 else 'back'} by {seconds}",
            "sleep": f"the machine slept for {seconds}",
            "away": f"the harness did not run for {seconds}",
        }
        return deeds[self.what]

    def in_words(self, epoch_ms: int | None) -> str:
        if epoch_ms is None or self.at_ms < epoch_ms:
            return f"{self.deed} before the load"
        return f"{self.deed}, noticed {(self.at_ms - epoch_ms) / 1000:,.1f} s after the load began"


class Noticing:
    """The detector: successive readings of the clocks in, irregularities out. Pure."""

    def __init__(self, first: Reading) -> None:
        self._last_ms = first.at_ms
        self._ahead_ms, self._slept_ms = 0, first.slept_ms  # as far as they were reported

    def check(self, now: Reading) -> Iterator[Oddity]:
        """Yield what happened since the last reading.

        A machine's clock goes on during sleep, so afterwards it is ahead by that time, without a step.
        """
        slept_ms = now.slept_ms - self._slept_ms
        slept_ms = slept_ms if slept_ms >= STEP_MS else 0
        stepped_ms = now.ahead_ms - self._ahead_ms - slept_ms
        stepped_ms = stepped_ms if abs(stepped_ms) >= STEP_MS else 0
        away_ms = now.at_ms - self._last_ms - round(POLL_EVERY_S * 1000)
        self._last_ms = now.at_ms
        self._slept_ms += slept_ms
        self._ahead_ms += slept_ms + stepped_ms
        for what, by_ms in (("sleep", slept_ms), ("step", stepped_ms), ("away", away_ms if away_ms >= AWAY_MS else 0)):
            if by_ms:
                yield Oddity(what, now.at_ms, by_ms, self._ahead_ms)


class ClockWatch:
    """A thread that watches the clocks from `start` to `stop`, and writes irregularities to the history at once."""

    def __init__(self, store: Store) -> None:
        self._clock, self._store = store.clock, store
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="clock watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after one last reading. A thread that was never started is no error."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)

    def _work(self) -> None:
        noticing, last = Noticing(self._clock.read()), False
        while not last:
            last = ends_within(POLL_EVERY_S, self._stopped)
            for oddity in noticing.check(self._clock.read()):
                tell(self._store, oddity)


def tell(store: Store, oddity: Oddity) -> None:
    store.tell(KIND, at_ms=oddity.at_ms, oddity=oddity)


def ahead_ms(store: Store) -> tuple[int, int]:
    """Return how far ahead of the run's clock the machine's was, at least and at most."""
    found = [0, *(oddity.ahead_ms for oddity in store.values(KIND, "oddity", Oddity))]
    return min(found), max(found)


def in_words(store: Store) -> str:
    """Describe the irregularities in a stored run; "" if there are none, or the version was too old to watch."""
    epochs_ms = store.values("epoch", "epoch_ms", int)
    epoch_ms = epochs_ms[-1] if epochs_ms else None
    ends_ms = store.values("engine", "at_ms", int)
    found = [oddity.in_words(epoch_ms) for oddity in _that_matter(store, epoch_ms, ends_ms)]
    more = [f"and {len(found) - MOST_SAID:,} more like it"] if len(found) > MOST_SAID else []
    return "; ".join([*found[:MOST_SAID], *more])


def _that_matter(store: Store, epoch_ms: int | None, ends_ms: Sequence[int]) -> Iterator[Oddity]:
    """Yield what affects figures: "away" only from the start of the load until the engine is done."""
    for oddity in store.values(KIND, "oddity", Oddity):
        looked_on = epoch_ms is not None and oddity.at_ms >= epoch_ms
        over = bool(ends_ms) and oddity.at_ms - oddity.by_ms > ends_ms[-1]
        if oddity.what != "away" or (looked_on and not over):
            yield oddity
