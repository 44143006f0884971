"""Simulated queues of counts without bytes, many at once: engines whose truth is known, for the proof of a search.

An engine takes all arrived events, works on them as one batch, and takes the events that arrived meanwhile. A batch of
n events is work of a + b * n: the larger the batch, the cheaper each event. The speed of a machine changes with time:
pauses, maintenance once a minute, noisy neighbours and a cold start are all a speed below one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.experiments.curve.plateau import Floats

STEP_S = 0.25  # resolution of a machine's speed
IDLE_S = 0.02  # poll interval of an idle engine
NEVER = np.inf


@dataclass(frozen=True)
class Engines:
    """One engine per lane."""

    base_s: Floats  # work of each batch
    each_s: Floats  # work of each event in it
    noise: float = 0.0  # standard deviation of the logarithm of a batch's work
    memory: float = 0.0  # autocorrelation of that between batches

    @property
    def most_per_s(self) -> Floats:
        """The capacity in infinite batches."""
        return 1 / self.each_s

    def chosen(self, lanes: NDArray[np.int64]) -> Engines:
        return Engines(self.base_s[lanes], self.each_s[lanes], self.noise, self.memory)


class Machines:
    """Converts between time and work done, for each lane. Several lanes may share a machine."""

    def __init__(self, speed: Floats, lanes_each: int = 1) -> None:
        count, steps = speed.shape
        self._lanes = np.repeat(np.arange(count), lanes_each)
        self._done_s = np.zeros((count, steps + 1))
        np.cumsum(speed * STEP_S, axis=1, out=self._done_s[:, 1:])
        whole = np.arange(steps + 1) * STEP_S
        self._when_s = np.stack([np.interp(whole, done, whole, right=whole[-1]) for done in self._done_s])

    def ended_s(self, begun_s: Floats, work_s: Floats) -> Floats:
        return self._read(self._when_s, self._read(self._done_s, begun_s) + work_s)

    def _read(self, table: Floats, at: Floats) -> Floats:
        position = np.minimum(at / STEP_S, table.shape[1] - 1.001)
        low = position.astype(np.int64)
        before, after = table[self._lanes, low], table[self._lanes, low + 1]
        return np.asarray(before + (after - before) * (position - low))


def late_shares(
    engines: Engines, machines: Machines, rates_per_s: Floats, objective_s: float, within_s: tuple[float, float]
) -> Floats:
    """Return the share of events that take longer than the objective, at a steady rate per lane, without noise of
    batches.
    """
    from_s, until_s = within_s
    before_s, begun_s, late_s = (
        np.zeros(len(rates_per_s)),
        np.full(len(rates_per_s), STEP_S),
        np.zeros(len(rates_per_s)),
    )
    each_s = engines.each_s * rates_per_s
    while (begun_s < until_s).any():
        ended_s = machines.ended_s(begun_s, engines.base_s + each_s * (begun_s - before_s))
        ended_s = np.where(ended_s >= until_s, NEVER, ended_s)
        late_s += np.maximum(0, np.minimum(ended_s - objective_s, begun_s) - np.maximum(before_s, from_s))
        before_s, begun_s = begun_s, np.minimum(np.maximum(ended_s, begun_s + IDLE_S), until_s)
    return np.asarray(late_s / (until_s - from_s))


@dataclass
class Offered:
    """Events by their due time: windows of one length with a rate for each lane."""

    window_s: float
    lanes: int
    rates: Floats = field(init=False)  # (windows, lanes)
    due: Floats = field(init=False)  # before each window

    def __post_init__(self) -> None:
        self.rates, self.due = np.zeros((0, self.lanes)), np.zeros((1, self.lanes))

    def append(self, rates_per_s: Floats) -> None:
        self.rates = np.vstack((self.rates, rates_per_s))
        self.due = np.vstack((self.due, self.due[-1] + rates_per_s * self.window_s))

    @property
    def until_s(self) -> float:
        return len(self.rates) * self.window_s

    def by(self, at_s: Floats) -> Floats:
        """Return how many events are due at a moment of each lane."""
        lanes = np.arange(self.lanes)
        position = np.minimum(at_s / self.window_s, len(self.rates) - 0.5).astype(np.int64)
        within_s = np.minimum(at_s - position * self.window_s, self.window_s)
        return np.asarray(self.due[position, lanes] + self.rates[position, lanes] * within_s)


@dataclass
class Batches:
    """One step of all lanes. A lane without events made no batch."""

    taken_s: Floats  # all events due until then are in the batch
    ended_s: Floats
    events: Floats


class Queues:
    """Queues of all lanes, which advance together, each by its own batches."""

    def __init__(self, engines: Engines, machines: Machines, seed: int) -> None:
        lanes = len(engines.base_s)
        self._engines, self._machines = engines, machines
        self._draw = np.random.default_rng(seed)
        self._free_s, self._taken, self._stirred = np.zeros(lanes), np.zeros(lanes), np.zeros(lanes)
        self.batches: list[Batches] = []

    def go_on(self, offered: Offered, until_s: float) -> None:
        """Advance until no lane can begin another batch before that moment."""
        while (self._free_s < until_s).any():
            self.batches.append(self._step(offered, until_s))

    def _step(self, offered: Offered, until_s: float) -> Batches:
        engines, going = self._engines, self._free_s < until_s
        begun_s = np.minimum(self._free_s, until_s)
        due = np.floor(offered.by(begun_s))
        events = np.where(going, due - self._taken, 0.0)
        some = events > 0
        fresh = self._draw.standard_normal(len(events))
        self._stirred = engines.memory * self._stirred + np.sqrt(1 - engines.memory**2) * fresh
        work_s = (engines.base_s + engines.each_s * events) * np.exp(engines.noise * self._stirred)
        ended_s = np.where(some, self._machines.ended_s(begun_s, np.where(some, work_s, 0.0)), begun_s + IDLE_S)
        self._taken = np.where(some, due, self._taken)
        self._free_s = np.where(going, ended_s, self._free_s)
        return Batches(begun_s, np.where(some, ended_s, NEVER), events)
