"""Apply the settings of disorder to one server's slots, seeded and vectorised.

Each setting has its own random draws, so that a change of one does not change the effect of another. A slot is a place
in a server's schedule. Disorder decides which event is sent in it (its own, or a copy of an earlier one), by how much
that event's time differs from its due time, and whether the record is an event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.model import Disorder, Spell, SpellKind
from harness.util.seeded_draws import Draws, Ints, Lane, below, between, fires, unit

PRESETS: dict[str, Disorder] = {
    "none": Disorder(),
    # The original's -w: skew 50 - rand[0, 99], one in 100,000 late by rand[0, 59999].
    "yahoo": Disorder(skew_min_ms=-49, skew_max_ms=50, late_share=1e-5, late_min_ms=0, late_max_ms=59_999),
    # Phones on bad networks: all events arrive within the default watermark of 10 s, with 2 s left for transport.
    "mobile": Disorder(delay_scale_ms=300, delay_max_ms=7_500, clock_offset_ms=200),
    "late": Disorder(skew_min_ms=-49, skew_max_ms=50, late_share=0.005, late_min_ms=12_000, late_max_ms=60_000),
    "storm": Disorder(
        delay_scale_ms=300,
        delay_max_ms=7_500,
        skew_min_ms=-49,
        skew_max_ms=50,
        late_share=0.005,
        late_min_ms=12_000,
        late_max_ms=60_000,
        duplicate_share=0.01,
        duplicate_gap=200,
        silent_servers=2,
        silent_start_ms=8_000,
        silent_ms=5_000,
        clock_offset_ms=200,
        future_share=0.0005,
        future_ms=5_000,
        poison_share=0.001,
    ),
}

# With these presets an engine that closes windows may drop late events; with the others it may not.
LATE_PRESETS = frozenset({"yahoo", "late", "storm"})

_STAGGER_MS = 1000
NOT_AHEAD = np.zeros(1, dtype=np.int64)
DUPLICATE_GAP = 200  # of a spell of duplicates if the setting is 0


class ServerDisorder:
    """The disorder of one server."""

    def __init__(
        self, dials: Disorder, seed: int, server: int, servers: int, spells: tuple[Spell, ...] = (), *, poisons: int
    ) -> None:
        self.dials = _silenced(dials, spells)
        self.spells = ServerSpells(spells, seed, server, poisons)
        self._poisons = poisons
        self._seed, self._server, self._servers = seed, server, servers

    @cached_property
    def clock_offset_ms(self) -> int:
        reach = self.dials.clock_offset_ms
        return int(between(self._lane("clock").one(), -reach, reach)[0])

    @cached_property
    def silence_us(self) -> tuple[int, int] | None:
        """The silence of this server.

        Events due from the first time on are sent at the second, as one backlog. None: never silent.
        """
        if not (self.dials.silent_servers and self.dials.silent_ms) or self._server not in self._silent_servers():
            return None
        stagger = int(between(self._lane("stagger").one(), 0, min(_STAGGER_MS, self.dials.silent_ms // 4))[0])
        start_us = (self.dials.silent_start_ms + stagger) * 1000
        return start_us, start_us + self.dials.silent_ms * 1000

    @property
    def doubles(self) -> bool:
        """True if any slot may send a copy of an earlier event."""
        return bool(self.dials.duplicate_share and self.dials.duplicate_gap) or self.spells.doubles

    def copies(self, slots: Ints, due_us: Callable[[Ints], Ints]) -> tuple[NDArray[np.bool_], Ints]:
        """Return which slots send a copy of an earlier event, and the slot from which each slot's event comes.

        A copy is never copied, so every event has one original, and each copy carries its id.
        """
        if not self.doubles:
            return np.zeros(len(slots), dtype=np.bool_), slots
        copy = self._copies_at(slots, due_us)
        at = slots[copy]
        gap = self.dials.duplicate_gap or DUPLICATE_GAP
        source = at - 1 - below(self._lane("duplicate gap").at(at), gap)
        sound = source >= 0
        source = np.maximum(source, 0)
        sound &= ~self._copies_at(source, due_us)
        sound &= due_us(at) - due_us(source) <= self.dials.duplicate_max_ms * 1000
        origin = slots.copy()
        origin[copy] = np.where(sound, source, at)
        copy[copy] = sound
        return copy, origin

    def shift_ms(self, origins: Ints) -> Ints:
        """Return by how much each event's time differs from its due time."""
        dials = self.dials
        shift = np.full(len(origins), self.clock_offset_ms, dtype=np.int64)
        if dials.skew_min_ms or dials.skew_max_ms:
            shift += between(self._draws("skew", origins), dials.skew_min_ms, dials.skew_max_ms)
        if dials.delay_scale_ms:
            shift -= self._delay_ms(origins)
        if dials.late_share:
            late = fires(self._draws("late", origins), dials.late_share)
            by_ms = between(self._draws("late by", origins[late]), dials.late_min_ms, dials.late_max_ms)
            shift[late] -= by_ms
        if dials.future_share:
            shift[fires(self._draws("future", origins), dials.future_share)] += dials.future_ms
        return shift

    def poison(self, origins: Ints) -> NDArray[np.int8]:
        """Return 0 for an event, else the kind of record that is sent instead."""
        kinds = np.zeros(len(origins), dtype=np.int8)
        if self.dials.poison_share:
            bad = fires(self._draws("poison", origins), self.dials.poison_share)
            kinds[bad] = 1 + below(self._draws("poison kind", origins[bad]), self._poisons)
        return kinds

    def _copies_at(self, slots: Ints, due_us: Callable[[Ints], Ints]) -> NDArray[np.bool_]:
        dialled = fires(self._draws("duplicate", slots), self.dials.duplicate_share)
        return dialled | self.spells.doubled(slots, due_us) if self.spells.doubles else dialled

    def _delay_ms(self, origins: Ints) -> Ints:
        """Draw from a heavy-tailed distribution: scale * (1 / sqrt(u) - 1), capped."""
        delay_ms = self.dials.delay_scale_ms * (1.0 / np.sqrt(unit(self._draws("delay", origins))) - 1.0)
        return np.minimum(delay_ms, self.dials.delay_max_ms).astype(np.int64)

    def _silent_servers(self) -> list[int]:
        order = np.argsort(Lane.of(self._seed, "silent").at(np.arange(self._servers)), kind="stable")
        return [int(server) for server in order[: self.dials.silent_servers]]

    def _draws(self, name: str, slots: Ints) -> Draws:
        return self._lane(name).at(slots)

    def _lane(self, name: str) -> Lane:
        return Lane.of(self._seed, self._server, name)


def _silenced(dials: Disorder, spells: tuple[Spell, ...]) -> Disorder:
    """Apply a spell of silence through the settings of silence, which exist once."""
    for spell in spells:
        if spell.kind == "silent":
            length_ms = spell.until_ms - spell.from_ms
            dials = replace(dials, silent_servers=spell.servers, silent_start_ms=spell.from_ms, silent_ms=length_ms)
    return dials


class ServerSpells:
    """The effect of spells on one server. Each spell has its own draws, so that nothing changes outside of it."""

    def __init__(self, spells: tuple[Spell, ...], seed: int, server: int, poisons: int) -> None:
        self._by_kind = {kind: [s for s in spells if s.kind == kind] for kind in {spell.kind for spell in spells}}
        self._seed, self._server, self._poisons = seed, server, poisons

    @property
    def doubles(self) -> bool:
        return "duplicates" in self._by_kind

    def doubled(self, slots: Ints, due_us: Callable[[Ints], Ints]) -> NDArray[np.bool_]:
        return self._fires("duplicates", slots, due_us(slots))

    def poisoned(self, origins: Ints, due_us: Ints, kinds: NDArray[np.int8]) -> NDArray[np.int8]:
        bad = self._fires("poison", origins, due_us)
        if bad.any():
            drawn = 1 + below(self._lane("poison kind").at(origins[bad]), self._poisons)
            kinds[bad] = drawn.astype(np.int8)
        return kinds

    def skewed(self, origins: Ints, due_us: Ints) -> NDArray[np.bool_]:
        """Return the events that go to the hot key."""
        return self._fires("skew", origins, due_us)

    def ahead_ms(self, origins: Ints, due_us: Callable[[Ints], Ints]) -> Ints:
        """Date one event ahead: the first of the first server that is due in the spell."""
        if self._server or "future" not in self._by_kind or not len(origins):
            return NOT_AHEAD
        due, before = due_us(origins), np.where(origins > 0, due_us(np.maximum(origins - 1, 0)), -1)
        shifts = np.zeros(len(origins), dtype=np.int64)
        for spell in self._by_kind["future"]:
            shifts[(due >= spell.from_ms * 1000) & (before < spell.from_ms * 1000)] += spell.ahead_ms
        return shifts

    def _fires(self, kind: SpellKind, slots: Ints, due_us: Ints) -> NDArray[np.bool_]:
        hit = np.zeros(len(slots), dtype=np.bool_)
        for number, spell in enumerate(self._by_kind.get(kind, ())):
            within = (due_us >= spell.from_ms * 1000) & (due_us < spell.until_ms * 1000)
            hit |= within & fires(self._lane(kind, number).at(slots), spell.share)
        return hit

    def _lane(self, *names: object) -> Lane:
        return Lane.of(self._seed, self._server, "spell", *names)
