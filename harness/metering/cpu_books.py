"""Resource use by part, over the life and death of processes. Pure: snapshots in, cumulative sums per part out.

The use of a process up to its last snapshot is never lost. A process that lived too shortly for a snapshot is included
in its parent's account of ended children. The excess of that account over the dead processes that were seen belongs to
such processes, or to the last moments of one that has just died.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Identity = tuple[int, str]  # pid and start: another process may get the pid later


@dataclass(frozen=True)
class Cpu:
    """Seconds of processor time."""

    user_s: float = 0.0
    system_s: float = 0.0

    def __add__(self, other: Cpu) -> Cpu:
        return Cpu(self.user_s + other.user_s, self.system_s + other.system_s)

    def beyond(self, other: Cpu) -> Cpu:
        """Subtract the other; never negative."""
        return Cpu(max(0.0, self.user_s - other.user_s), max(0.0, self.system_s - other.system_s))

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s


@dataclass(frozen=True)
class Seen:
    """A snapshot of one process."""

    pid: int
    start: str
    parent: int
    part: str
    cpu: Cpu
    ended_children: Cpu
    rss_bytes: int
    name: str = ""

    @property
    def identity(self) -> Identity:
        return self.pid, self.start


@dataclass
class Usage:
    """The CPU time of a part up to now, and its current memory."""

    cpu: Cpu = field(default_factory=Cpu)
    rss_bytes: int = 0


class Books:
    """The accounts of all parts. Call `take` about once a second with all processes of all parts."""

    def __init__(self) -> None:
        self._last: dict[Identity, Seen] = {}
        self._parents: dict[Identity, Identity] = {}
        self._alive: set[Identity] = set()
        self._newborn: set[Identity] = set()
        self._unseen: dict[Identity, Cpu] = {}
        self._extra: dict[str, Cpu] = {}  # part -> CPU time that only the accounts of parents include

    def take(self, snapshot: Iterable[Seen]) -> Mapping[str, Usage]:
        now = {each.identity: each for each in snapshot}
        pids = {each.pid: each.identity for each in now.values()}
        just_died = self._alive - set(now)
        self._last |= now
        self._alive = set(now)
        # Until a child executes a program of its own, it shares its parent's memory (a JVM starts its helpers so),
        # which would count twice. At the next snapshot it has its own, or is gone.
        self._newborn = {each.identity for each in now.values() if each.parent in pids} - set(self._parents)
        self._parents |= {each.identity: pids[each.parent] for each in now.values() if each.parent in pids}
        self._book_unseen(just_died)
        return self._sums()

    def _book_unseen(self, just_died: set[Identity]) -> None:
        """Book unaccounted child CPU to the process that just exited."""
        dead = self._dead_children()
        for identity in self._alive:
            unseen = self._last[identity].ended_children.beyond(self._total(dead.get(identity, ()), dead))
            grown = unseen.beyond(self._unseen.get(identity, Cpu()))
            self._unseen[identity] = self._unseen.get(identity, Cpu()) + grown
            died = [self._last[child] for child in dead.get(identity, ()) if child in just_died]
            heir = max(died, key=lambda each: each.cpu.total_s, default=self._last[identity])
            self._extra[heir.part] = self._extra.get(heir.part, Cpu()) + grown

    def _dead_children(self) -> dict[Identity, list[Identity]]:
        children: dict[Identity, list[Identity]] = {}
        for child, parent in self._parents.items():
            if child not in self._alive:
                children.setdefault(parent, []).append(child)
        return children

    def _total(self, family: Iterable[Identity], dead: Mapping[Identity, list[Identity]]) -> Cpu:
        """Sum what dead processes used according to snapshots, with the dead processes below them."""
        total = Cpu()
        for each in family:
            below = self._total(dead.get(each, ()), dead)
            total += self._last[each].cpu + below + self._last[each].ended_children.beyond(below)
        return total

    def _sums(self) -> dict[str, Usage]:
        sums: dict[str, Usage] = {part: Usage(cpu) for part, cpu in self._extra.items()}
        with_memory = self._alive - self._newborn
        for identity, seen in self._last.items():
            usage = sums.setdefault(seen.part, Usage())
            usage.cpu += seen.cpu
            usage.rss_bytes += seen.rss_bytes if identity in with_memory else 0
        return sums
