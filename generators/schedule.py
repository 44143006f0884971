"""The schedule of a run: the tape of its load and, if it has one, the tape of its warm-up or backlog before it.

A warm-up is a tape of the same population with its own draws. It ends at the load start, so its times are negative, and
the load's tape is the same without it. The load's servers send it under further numbers, so that every event of a run
has its own id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from generators.tape import BLOCK, Events, Tape
from harness.model import INDEX_BITS, INDEX_MASK, Spell, TapeSpec
from harness.util.seeded_draws import Ints, Lane


def warm_up_of(spec: TapeSpec) -> TapeSpec:
    """Derive the spec of the warm-up.

    It has no silent servers, because what they send after a silence could come after the load start. A backlog is
    uneven: in its first half one partition gets nothing.
    """
    return replace(
        spec,
        seed=int(Lane.of(spec.seed, "warm-up").key),
        profile=spec.warm_up,
        warm_up=(),
        waits=False,
        spells=(Spell("idle-partition", 0, spec.warm_up_ms // 2),) if spec.waits else (),
        disorder=replace(spec.disorder, silent_servers=0),
    )


class Schedule:
    """Both tapes of a run behind the interface of `Tape`. Times are relative to the load start."""

    def __init__(self, spec: TapeSpec) -> None:
        self.spec = spec
        self.load = Tape(spec)
        self.warm_up = Tape(warm_up_of(spec)) if spec.warm_up else None
        self.warm_up_ms = self.warm_up.duration_ms if self.warm_up else 0
        self.warm_up_total = self.warm_up.total if self.warm_up else 0
        self.total = self.warm_up_total + self.load.total
        self.servers = spec.senders * (2 if self.warm_up else 1)

    @property
    def earliest_rel_ms(self) -> int:
        """A lower bound of the event times of both tapes."""
        first_ms = self.load.event_time_bounds_rel_ms()[0]
        if self.warm_up is None:
            return first_ms
        return min(first_ms, self.warm_up.event_time_bounds_rel_ms()[0] - self.warm_up_ms)

    def servers_of(self, sender: int) -> tuple[int, ...]:
        """Return the numbers under which one ad server sends, in order."""
        return (self.spec.senders + sender, sender) if self.warm_up else (sender,)

    def name_of(self, server: int) -> str:
        tape, own = self._tape(server)
        return f"server {own} of the warm-up" if tape is self.warm_up else f"server {own}"

    def server_total(self, server: int) -> int:
        tape, own = self._tape(server)
        return tape.server_total(own)

    def events(self, server: int, slots: Ints) -> Events:
        tape, own = self._tape(server)
        events = tape.events(own, slots)
        return events if tape is self.load else self._before_the_epoch(events)

    def blocks(self, size: int = BLOCK) -> Iterator[Events]:
        """Yield all slots, server by server."""
        yield from self.load.blocks(size)
        if self.warm_up:
            yield from map(self._before_the_epoch, self.warm_up.blocks(size))

    def sealed_blocks(self) -> Iterator[Events]:
        """Yield all slots, and compute the digests of both tapes."""
        yield from self.load.sealed_blocks()
        if self.warm_up:
            yield from map(self._before_the_epoch, self.warm_up.sealed_blocks())

    def copies(self) -> tuple[Ints, Ints]:
        slots, ids = self.load.copies()
        if self.warm_up is None:
            return slots, ids
        early_slots, early_ids = (each + (self.spec.senders << INDEX_BITS) for each in self.warm_up.copies())
        return np.concatenate((slots, early_slots)), np.concatenate((ids, early_ids))

    def by_server(self, ids: Ints) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield for each server the rows of its events, in order, at most a block at a time.

        Events without a slot are skipped.
        """
        server = np.minimum((ids >> INDEX_BITS).astype(np.uint64), self.servers).astype(np.uint16)  # foreign ones last
        order = np.argsort(server, kind="stable")
        ends = np.cumsum(np.bincount(server, minlength=self.servers + 1))
        for number in range(self.servers):
            rows = order[ends[number - 1] if number else 0 : ends[number]]
            rows = rows[(ids[rows] & INDEX_MASK) < self.server_total(number)]
            yield from ((number, rows[lo : lo + BLOCK]) for lo in range(0, len(rows), BLOCK))

    def places(self, ids: Ints) -> Ints:
        """Return the index of each event in the run's order: first those of the load, then those of the warm-up."""
        places = self.load.places(ids)
        if self.warm_up is None:
            return places
        early = self.warm_up.places(ids - (self.spec.senders << INDEX_BITS)) + self.load.total
        return np.where(ids >> INDEX_BITS < self.spec.senders, places, early)

    def id_at(self, place: int) -> int:
        if self.warm_up is None or place < self.load.total:
            return self.load.id_at(place)
        return self.warm_up.id_at(place - self.load.total) + (self.spec.senders << INDEX_BITS)

    def slices(self, server: int, first: int = 0, until: int | None = None) -> Iterator[tuple[int, int, int]]:
        tape, own = self._tape(server)
        return tape.slices(own, first, until)

    def slice_partition(self, server: int, j: int) -> int:
        tape, own = self._tape(server)
        return tape.slice_partition(own, j)

    def slice_due_us(self, server: int, j: int) -> int:
        tape, _ = self._tape(server)
        return tape.slice_due_us(j) - (0 if tape is self.load else self.warm_up_ms * 1000)

    def slices_due_us(self, servers: Ints, numbers: Ints) -> Ints:
        """Return as `slice_due_us` does, for many slices at once."""
        early_us = np.where(servers < self.spec.senders, 0, self.warm_up_ms * 1000)
        return self.load.slice_due_us(numbers) - early_us

    def due_before(self, now_us: int) -> int:
        """Return how many events of both tapes are due by then, without the probes."""
        due = int(self.load.profile.first_due_at(np.array([now_us]))[0])
        if self.warm_up:
            due += int(self.warm_up.profile.first_due_at(np.array([now_us + self.warm_up_ms * 1000]))[0])
        return due

    def _tape(self, server: int) -> tuple[Tape, int]:
        """Return the tape that the server sends, and its number there."""
        if self.warm_up is None or server < self.spec.senders:
            return self.load, server
        return self.warm_up, server - self.spec.senders

    def _before_the_epoch(self, events: Events) -> Events:
        return replace(
            events,
            server=events.server + self.spec.senders,
            id=events.id + np.uint64(self.spec.senders << INDEX_BITS),
            intended_us=events.intended_us - self.warm_up_ms * 1000,
            event_time_rel_ms=events.event_time_rel_ms - self.warm_up_ms,
        )
