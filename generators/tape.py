"""The sealed plan of all events: a pure function of (spec, server, slot), computed on demand and never stored.

Server s sends the events s, s + servers, s + 2 * servers, ... of the profile, each in its own slot. If there are probes
(generators/probes.py), one further server sends them. Slots are sent in slices: a slice holds all slots of a server
that are due within one interval of `slice_ms`. It goes to one partition at the end of the interval, so that no event is
sent before its due time.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from generators.disorder import ServerDisorder
from generators.probes import ProbeSchedule
from generators.profiles import Profile, raised
from harness.model import AD_IMPRESSIONS, INDEX_BITS, INDEX_MASK, Segment, TapeSpec
from harness.util.seeded_draws import Ints, Lane
from workloads.base import Columns
from workloads.registry import codec_of

Slice = TypeVar("Slice", int, Ints)  # the number of one, or of several

# Small enough for a block's columns to stay in the cache, large enough to make numpy's overhead negligible.
BLOCK = 1 << 15
_SLICES_AT_ONCE = 1024
IDLE_PARTITION = 0  # the partition that a spell makes idle


@dataclass(frozen=True)
class Events:
    """Events as columns, one row per slot."""

    server: int
    id: NDArray[np.uint64]  # of the event: a copy has the id of its original
    slot: Ints
    intended_us: Ints
    event_time_rel_ms: Ints
    partition: NDArray[np.int16]
    content: Columns  # the draws of the workload's codec
    poison: NDArray[np.int8]  # 0: an event; else the kind of the codec's poison
    duplicate: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.slot)

    def columns(self) -> tuple[NDArray[np.generic], ...]:
        return (
            self.id,
            self.slot,
            self.intended_us,
            self.event_time_rel_ms,
            self.partition,
            *self.content.values(),
            self.poison,
            self.duplicate,
        )


class Tape:
    """The plan of one run."""

    def __init__(self, spec: TapeSpec) -> None:
        self.spec = spec
        self.codec = codec_of(spec)
        self.profile = Profile(offered_by(spec))
        self.probes = ProbeSchedule(spec.seed, spec.probes, spec.probe_every_ms, self.profile.duration_ms)
        self.total = self.profile.total + self.probes.total
        self._slice_us = spec.slice_ms * 1000
        self._servers: dict[int, tuple[ServerDisorder, Lane]] = {}

    def server_total(self, server: int) -> int:
        if self._probing(server):
            return self.probes.total
        return max(0, -(-(self.profile.total - server) // self.spec.servers))

    def events(self, server: int, slots: Ints) -> Events:
        disorder, content = self._server(server)
        copy, origin = disorder.copies(slots, lambda some: self._due_us(server, some))
        due_us = self._due_us(server, slots)
        intended_us = _after_silence(due_us, disorder.silence_us)
        origin_due_us = self._due_us(server, origin) if copy.any() else due_us
        ahead_ms = disorder.spells.ahead_ms(origin, lambda some: self._due_us(server, some))
        probing = self._probing(server)
        return Events(
            server=server,
            id=origin.astype(np.uint64) | np.uint64(server << INDEX_BITS),
            slot=slots,
            intended_us=intended_us,
            event_time_rel_ms=origin_due_us // 1000 + disorder.shift_ms(origin) + ahead_ms,
            partition=self._partitions(server, intended_us // self._slice_us).astype(np.int16),
            content=self.codec.draw(
                content.at(origin),
                probes=self.probes.campaign(slots) if probing else None,
                hot=disorder.spells.skewed(origin, origin_due_us),
                sure=np.asarray(ahead_ms > 0) | probing,  # a job ignores the time of an event of another kind
            ),
            poison=disorder.spells.poisoned(origin, origin_due_us, disorder.poison(origin)),
            duplicate=copy,
        )

    @cached_property
    def slice_count(self) -> int:
        last = [self._last_intended_us(server) for server in range(self.spec.senders) if self.server_total(server)]
        return max(last, default=-1) // self._slice_us + 1

    @cached_property
    def duration_ms(self) -> int:
        """The time until the end of the profile, or until the last slice is due if a silent server ends later."""
        return max(self.profile.duration_ms, self.slice_count * self.spec.slice_ms)

    def slices(self, server: int, first: int = 0, until: int | None = None) -> Iterator[tuple[int, int, int]]:
        """Yield the slices (j, lo, hi) of a server that have events, in order: all, or only first <= j < until."""
        end = self.slice_count if until is None else until
        for begin in range(first, end, _SLICES_AT_ONCE):
            numbers = np.arange(begin, min(begin + _SLICES_AT_ONCE, end) + 1, dtype=np.int64)
            begins = self._first_slots(server, numbers)
            for at in np.flatnonzero(begins[1:] > begins[:-1]):
                yield int(numbers[at]), int(begins[at]), int(begins[at + 1])

    def slots_to(self, partition: int, server: int, first: int, until: int) -> tuple[Ints, Ints]:
        """Return the slots of a server for a partition in the slices first <= j < until, and the slice of each."""
        numbers, begins, lengths = self._spans_to(partition, server, first, until)
        ends = np.cumsum(lengths)
        slots = np.repeat(begins - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
        return slots, np.repeat(numbers, lengths)

    def count_to(self, partition: int, server: int, first: int, until: int) -> int:
        """Return how many slots `slots_to` returns, in the memory of the slices."""
        return int(self._spans_to(partition, server, first, until)[2].sum())

    @property
    def slices_settled(self) -> int:
        """The number of slices that an extension of the profile can't change."""
        return self.profile.duration_ms // self.spec.slice_ms

    def slice_due_us(self, j: Slice) -> Slice:
        """Return when a slice, or each of several, may be sent: at its end."""
        return (j + 1) * self._slice_us

    def slice_partition(self, server: int, j: int) -> int:
        return int(self._partitions(server, np.array([j], dtype=np.int64))[0])

    def _partitions(self, server: int, slices: Ints) -> Ints:
        """Use partitions in turn, and the next one instead of an idle one."""
        partition = (slices + server) % self.spec.partitions
        for spell in self.spec.spells:
            if spell.kind == "idle-partition":
                begin_ms = slices * self.spec.slice_ms
                idle = (begin_ms >= spell.from_ms) & (begin_ms < spell.until_ms) & (partition == IDLE_PARTITION)
                partition = np.where(idle, (partition + 1) % self.spec.partitions, partition)
        return partition

    def _spans_to(self, partition: int, server: int, first: int, until: int) -> tuple[Ints, Ints, Ints]:
        """Return the slices that go to a partition, and where the slots of a server in each begin and how many."""
        numbers = np.arange(first, until, dtype=np.int64)
        begins = self._first_slots(server, np.arange(first, until + 1, dtype=np.int64))
        own = np.flatnonzero(self._partitions(server, numbers) == partition)
        return numbers[own], begins[own], begins[own + 1] - begins[own]

    def blocks(self, size: int = BLOCK) -> Iterator[Events]:
        """Yield all slots, server by server, in the memory of one block."""
        for server in range(self.spec.senders):
            total = self.server_total(server)
            for lo in range(0, total, size):
                yield self.events(server, np.arange(lo, min(lo + size, total), dtype=np.int64))

    def copies(self) -> tuple[Ints, Ints]:
        """Return all slots that send a copy, as the ids of their own events, and the ids that they send."""
        found = [np.zeros((2, 0), dtype=np.int64)]
        for server in range(self.spec.senders):
            disorder, _ = self._server(server)
            due_us, total = partial(self._due_us, server), self.server_total(server) if disorder.doubles else 0
            for lo in range(0, total, BLOCK):
                slots = np.arange(lo, min(lo + BLOCK, total), dtype=np.int64)
                copy, origin = disorder.copies(slots, due_us)
                found.append(np.stack((slots[copy], origin[copy])) | server << INDEX_BITS)
        slots, ids = np.concatenate(found, axis=1)
        return slots, ids

    def places(self, ids: Ints) -> Ints:
        """Return the index of each event in the tape: first those of the profile in its order, then the probes."""
        server, index = ids >> INDEX_BITS, ids & INDEX_MASK
        probing = server == self.spec.servers
        return np.where(probing, self.profile.total + index, index * self.spec.servers + server)

    def id_at(self, place: int) -> int:
        """Return the id of the event at an index."""
        if place >= self.profile.total:
            return self.spec.servers << INDEX_BITS | place - self.profile.total
        return place % self.spec.servers << INDEX_BITS | place // self.spec.servers

    def event_time_bounds_rel_ms(self) -> tuple[int, int]:
        """Return bounds [first, last] of all event times."""
        dials = self.spec.disorder
        behind = (dials.delay_max_ms if dials.delay_scale_ms else 0) + (dials.late_max_ms if dials.late_share else 0)
        ahead = dials.future_ms if dials.future_share else 0
        ahead += sum(spell.ahead_ms for spell in self.spec.spells)
        first = dials.skew_min_ms - behind - dials.clock_offset_ms
        return first, self.profile.duration_ms + dials.skew_max_ms + dials.clock_offset_ms + ahead

    def digest(self) -> str:
        """Return the digest of the tape. Equal digests mean equal tapes, whatever produced them."""
        if self.spec not in _digests:
            deque(self.sealed_blocks(), maxlen=0)
        return _digests[self.spec]

    def sealed_blocks(self) -> Iterator[Events]:
        """Yield all slots and compute the digest on the way, because drawing all events takes time."""
        seal = hashlib.blake2b(json.dumps(self._sealed_spec(), sort_keys=True).encode(), digest_size=16)
        for block in self.blocks():
            for column in block.columns():
                seal.update(column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes())
            yield block
        _digests[self.spec] = seal.hexdigest()

    def _sealed_spec(self) -> dict[str, object]:
        """Leave out unused newer settings (probes, spells, checksum, workload), so that older tapes keep their digests.

        A warm-up is another tape, and the place of its events (Kafka or files) is no part of the digest.
        """
        spec = self.spec
        used = {"probe": spec.probes, "spells": spec.spells, "checksum": spec.checksum}
        used |= {"workload": spec.workload != AD_IMPRESSIONS, "declaration": spec.declaration}
        unsealed = ("warm_up", "waits", "history", *(name for name, value in used.items() if not value))
        return {key: value for key, value in asdict(spec).items() if not key.startswith(unsealed)}

    def _probing(self, server: int) -> bool:
        return server == self.spec.servers

    def _server(self, server: int) -> tuple[ServerDisorder, Lane]:
        if server not in self._servers:
            spec = self.spec
            dials = spec.disorder
            if self._probing(server):  # a probe needs a cell to itself, and a constant load
                dials = replace(dials, duplicate_share=0.0, poison_share=0.0, silent_servers=0)
            spells = () if self._probing(server) else spec.spells
            disorder = ServerDisorder(dials, spec.seed, server, spec.servers, spells, poisons=self.codec.poisons)
            self._servers[server] = disorder, Lane.of(spec.seed, server, "content")
        return self._servers[server]

    def _due_us(self, server: int, slots: Ints) -> Ints:
        if self._probing(server):
            return self.probes.due_us(slots)
        return self.profile.inverse(slots * self.spec.servers + server)

    def _last_intended_us(self, server: int) -> int:
        last = self._due_us(server, np.array([self.server_total(server) - 1], dtype=np.int64))
        return int(_after_silence(last, self._server(server)[0].silence_us)[0])

    def _first_slots(self, server: int, slices: Ints) -> Ints:
        """Return the first slot of a server that is intended at or after the start of each slice."""
        begin_us = _before_silence(slices * self._slice_us, self._server(server)[0].silence_us)
        if self._probing(server):
            return self.probes.first_due_at(begin_us)
        slots = -(-(self.profile.first_due_at(begin_us) - server) // self.spec.servers)
        return np.clip(slots, 0, self.server_total(server))


_digests: dict[TapeSpec, str] = {}  # of sealed tapes: judging a run soon needs the digest again


def offered_by(spec: TapeSpec) -> tuple[Segment, ...]:
    """Return the rate over the load, including the bursts of faults."""
    segments = spec.profile
    for spell in spec.spells:
        if spell.kind == "burst":
            segments = raised(segments, spell.from_ms, spell.until_ms, spell.factor)
    return segments


def _after_silence(due_us: Ints, silence_us: tuple[int, int] | None) -> Ints:
    """Move times within a silence to its end: a silent server sends them then."""
    if silence_us is None:
        return due_us
    start, end = silence_us
    return np.where((due_us >= start) & (due_us < end), end, due_us)


def _before_silence(intended_us: Ints, silence_us: tuple[int, int] | None) -> Ints:
    """Invert `_after_silence`: return the earliest due time that is intended at or after each time."""
    if silence_us is None:
        return intended_us
    start, end = silence_us
    return np.where((intended_us > start) & (intended_us <= end), start, intended_us)
