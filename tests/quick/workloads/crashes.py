"""Jobs that are killed at random, and the right values of all cells: what tests of several questions share."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from harness.evidence.observed import folded
from harness.model import RunSpec
from harness.selftest.declared import Events, in_cells
from workloads.jobs.waiting_process import Events as Waiting
from workloads.jobs.waiting_process import Place
from workloads.registry import oracle_of, results_of

NOTHING_PLANNED = precondition(lambda self: self.batch is None)
PLANNED = precondition(lambda self: self.batch is not None)


class BatchesUnderCrashes(RuleBasedStateMachine):
    """Micro-batches. Each commits its input, its watermark, the state and what leaves together, or all of it is lost by
    a crash before that and comes again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.watermark = 0
        self.batch: Any = None  # one that is planned and not committed

    def ran(self, batch: Any) -> tuple[Any, Any]:
        """Run a batch from the state of the last commit. Return the state behind it, and what leaves."""
        raise NotImplementedError

    @PLANNED
    @rule()
    def crash(self) -> None:
        """The state of the last commit is left, so that nothing that this batch did is known."""
        self.ran(self.batch)


class TimersUnderCrashes(BatchesUnderCrashes):
    """Events that wait for the watermark in the state of one key. The first of each event is its time."""

    def __init__(self, state: tuple[Any, ...]) -> None:
        super().__init__()
        self.state = state  # as it lies in a checkpoint
        self.came = 0
        self.accepted: list[Any] = []
        self.left: list[Any] = []

    def restored(self) -> Any:
        raise NotImplementedError

    def stored(self, state: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def wait(self, state: Any, event: Any) -> None:
        raise NotImplementedError

    def ran(self, batch: Any) -> tuple[Any, Any]:
        state, (events, watermark) = self.restored(), batch
        for event in events:
            if event[0] > self.watermark:
                self.wait(state, event)
        return state, state.fire(watermark)

    def planned(self, events: Sequence[Any], copies: Callable[[list[Any]], Sequence[Any]], forward: int) -> None:
        """Plan a batch of new events, and of copies of some that still wait."""
        self.came += len(events)
        waiting = [event for event in self.accepted if event[0] > self.watermark]
        self.batch = [*events, *(copies(waiting) if waiting else ())], self.watermark + forward

    @PLANNED
    @rule()
    def commit(self) -> None:
        state, left = self.ran(self.batch)
        events, watermark = self.batch
        self.accepted += [event for event in events if event[0] > self.watermark]
        self.left += left
        self.state, self.watermark, self.batch = self.stored(state), watermark, None

    @property
    def due(self) -> list[Any]:
        """The events that the watermark has passed."""
        return sorted(event for event in self.accepted if event[0] <= self.watermark)


def right_values(spec: RunSpec, sent: Events) -> Mapping[tuple[str, int], int]:
    """Return the value of each cell, by the names of results."""
    oracle, keys = oracle_of(spec), results_of(spec.tape).keys
    values = folded(oracle, in_cells(sent, oracle)).items()
    return {(keys[oracle.codes.key(cell)], oracle.codes.field(cell)): value for cell, value in values}


def left_by(
    started: Callable[[set[Place]], Waiting], records: Sequence[tuple[bytes, bytes]], draw: random.Random
) -> tuple[Waiting, list[bytes]]:
    """Feed records to a job that is killed at random, before its transaction or behind it. Return the last start of the
    job, and all that left.
    """
    left: list[bytes] = []

    def again() -> tuple[Waiting, int]:
        return started({tuple(json.loads(each)["of"]) for each in left}), 0

    job, at = again()
    while at < len(records):
        until = min(at + 50, len(records))
        for offset in range(at, until):
            job.add((0, offset), *records[offset])
        at = until
        outputs = job.answered(idle=True)
        if draw.random() < 0.3:
            left += outputs * draw.randrange(2)
            job, at = again()
        else:
            left += outputs
    return job, left
