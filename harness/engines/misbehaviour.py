"""Planted bugs of the fake engine. A check must detect each of them.

`--conf misbehave=drop:1000` loses one event in a thousand. At each step the engine calls this module to apply its bug.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.engines.fake_memory import Cell, Counts, Event, FakeStore
from harness.evidence.checksums import PREFIX
from harness.model import FileSeam, UsageError
from harness.util.suggest import nearest

AS_BATCH = "batch-"  # prefix of a bug of the batch job that recounts everything
VISIT = 5, 15  # batches
TORN = 1  # partition
STRETCHES = 6  # batches into which a job may divide the files
MISBEHAVIOURS: dict[str, str] = {
    "drop": "loses every n-th event",
    "double": "counts every n-th event twice",
    "future-window": "counts every n-th event an hour ahead",
    "stranger": "counts every n-th event for a campaign that does not exist",
    "swap": "counts every n-th event twice, and the next one of its cell not at all",
    "replan": "plans a batch that a crash left open anew, as if its plan had been deleted",
    "garble": "writes every n-th count as no number",
    "visiting-text": "shows a field that is no window for some batches",
    "visiting-window": "shows a count of a window without events for some batches",
    "visiting-stranger": "shows a campaign that does not exist for some batches",
    "mute": "never answers",
    "stall": "stops after batch 3",
    "untold": "counts right, and reports no progress",
    "told-to": "counts right, and reports no progress after batch n",
    "die": "ends by itself after batch 3",
    "eat-memory": "is killed by the kernel for want of memory after batch 3",
    "flush": "writes every n seconds only",
    "slow": "works on n events a second and no more",
    "overflow": "drops what a batch holds beyond n events",
    "large-twice": "counts a batch of more than n events twice when a crash made it come again",
    "slow-start": "needs n seconds to be back after a kill",
    "thrash": "needs n ms for each cell of its state at each commit",
    "stale-checkpoint": "goes on from the state before its last batch after a kill",
    "no-checkpoint": "goes on with an empty state after a kill",
    "short-watermark": "drops as late what is n ms behind the newest event, whatever was declared",
    "forget": "goes on at the end of the log after a kill",
    "latest": "begins at the end of the log",
    "stale-state": "hands its state over without its last batch, when another job takes its place",
    "half-state": "keeps half of its state when it is given another question",
    "empty-state": "keeps nothing of its state when it is given another question",
    "old-copies": "shows its state as it was before the last batch",
    "leaky-copies": "shows its state without one of its cells",
    "evict-nothing": "keeps what its watermark has passed in its state",
    "withhold": "never writes one of the cells that are in its state",
    "close-one": "writes the newest one alone of the windows that close at once, where results are final",
    "deaf": "goes on as before when it is given another question",
    "starve": "gets no CPU any more after batch 3, and wants some",
    "early": "begins to read Kafka one record before the files end",
    "late": "begins to read Kafka one record behind the end of the files",
    "earliest": "reads all that Kafka has beside the files",
    "last-window": "counts from Kafka too what the files hold of the window in which they end",
    "torn": "reads half of the files of a partition, and says nothing",
    "stale-files": "begins with what the files held without the last batch of it",
    "batch-drop": "loses every n-th event when it counts all once more",
    "batch-double": "counts every n-th event twice when it counts all once more",
    "batch-add": "adds to what it finds when it counts all once more, and was killed half-way",
    "add": "adds its totals to what stands in the results",
    "seconds": "tells its progress in seconds",
    "twice-done": "tells of twice as many records as it has done",
    "beyond": "tells of n more records than it has done in each partition",
    "hasty": "tells its progress as n seconds old",
    "dedupe-values": "counts equal records once",
    "dedupe-keys": "counts records with equal keys once",
    "expire": "gives each of its keys a time to live of n seconds",
    "expire-at-stop": "gives each of its keys a time to live of n seconds when it is told to stop",
    "double-at-stop": "doubles all counts when it is told to stop",
    "flush-at-stop": "writes nothing from batch 3 on until it is told to stop",
}
_CELL_BUGS: dict[str, Callable[[Cell], list[Cell]]] = {
    "drop": lambda _key: [],
    "double": lambda key: [key, key],
    "future-window": lambda key: [(key[0], key[1] + 3_600_000)],
    "stranger": lambda key: [("nobody" + key[0][6:], key[1])],
}
_VISITORS: dict[str, Callable[[Cell], tuple[str, str]]] = {
    "visiting-text": lambda cell: (cell[0], "soon"),
    "visiting-window": lambda cell: (cell[0], str(cell[1] + 3_600_000)),
    "visiting-stranger": lambda cell: ("nobody" + cell[0][6:], str(cell[1])),
}


@dataclass
class Misbehaviour:
    """A planted bug, with a count of the events it has seen."""

    text: str
    kind: str
    every: int
    passed: int = 0
    held: dict[tuple[str, str], str] = field(default_factory=dict)  # key and window -> the unwritten count
    again: dict[Cell, int] = field(default_factory=dict)  # cell -> the event that replaces the next one
    known: dict[bytes | int, tuple[int, int]] = field(default_factory=dict)  # record -> partition and offset
    visitor: tuple[str, str] | None = None  # key and field of the temporary entry

    @classmethod
    def parse(cls, text: str) -> Misbehaviour:
        kind, _, every = text.partition(":")
        if text and kind not in MISBEHAVIOURS:
            known = ", ".join(f"{name} ({what})" for name, what in MISBEHAVIOURS.items())
            raise UsageError(f"conf misbehave = {text!r}: the fake engine knows {known}{nearest(kind, MISBEHAVIOURS)}.")
        if every and not re.fullmatch("[1-9][0-9]{0,8}", every):
            raise UsageError(
                f"conf misbehave = {text!r}: a whole number from 1 to 999,999,999 is expected after the colon."
            )
        return cls(text, kind, int(every or 1000))

    def _hits(self) -> bool:
        self.passed += 1
        return self.passed % self.every == 0

    def counted(self, cell: Cell, event: int) -> list[tuple[Cell, int]]:
        """Return the cells in which to count one event, each with the event id."""
        if self.kind == "swap":
            if cell in self.again:
                return [(cell, self.again.pop(cell))]
            if self._hits():
                self.again[cell] = event
        change = _CELL_BUGS.get(self.kind)
        return [(each, event) for each in (change(cell) if change and self._hits() else [cell])]

    def knows(self, place: tuple[int, int], event: Event) -> bool:
        """Deduplicate: return whether the event was seen at another place of the log."""
        if self.kind not in ("dedupe-values", "dedupe-keys"):
            return False
        name = event.value if self.kind == "dedupe-values" else event.id
        return self.known.setdefault(name, place) != place

    def overflows(self, taken: int) -> bool:
        """Simulate a queue that holds only so many events of a batch."""
        return self.kind == "overflow" and taken > self.every

    def adds_again(self, taken: int, *, replayed: bool) -> bool:
        """Add a large replayed batch to the results of its first run."""
        return self.kind == "large-twice" and replayed and taken > self.every

    def period_ms(self, usual_ms: int) -> int:
        return self.every * 1000 if self.kind == "flush" else usual_ms

    def watermark_ms(self, declared_ms: int) -> int:
        return self.every if self.kind == "short-watermark" else declared_ms

    @property
    def is_slow(self) -> bool:
        return self.kind == "slow"

    def start_ms(self, starts: int, usual_ms: int) -> int:
        return self.every * 1000 if self.kind == "slow-start" and starts > 1 else usual_ms

    def restored(self, state: Counts, older: Counts) -> Counts:
        """Return the state found in the checkpoint after a restart."""
        if self.kind == "no-checkpoint":
            return {}
        return older if self.kind == "stale-checkpoint" else state

    def commit_ms(self, state: Counts) -> int:
        """Simulate writing the whole state at each commit."""
        return self.every * len(state) if self.kind == "thrash" else 0

    def clock(self, now_ms: int) -> int:
        if self.kind == "hasty":
            return now_ms - self.every * 1000
        return now_ms // 1000 if self.kind == "seconds" else now_ms

    def ends(self, done: Mapping[int, int]) -> Mapping[int, int]:
        """Return the reported offsets."""
        times, more = 2 if self.kind == "twice-done" else 1, self.every if self.kind == "beyond" else 0
        return {part: times * end + more for part, end in done.items()}

    def starves(self, batch: int) -> bool:
        return self.kind == "starve" and batch >= 3

    def spell(self, count: int) -> str:
        return f"{count}?" if self.kind == "garble" and self._hits() else str(count)

    def come_and_go(self, batch: int, store: FakeStore, cell: Cell) -> None:
        """Show a wrong entry in the results for some batches."""
        if batch == VISIT[0] and self.kind in _VISITORS:
            self.visitor = _VISITORS[self.kind](cell)
            store.set(*self.visitor, "1")
        elif batch == VISIT[1] and self.visitor:
            store.delete(*self.visitor)

    def as_kept(self, state: Counts, older: Counts, evicted_ms: int) -> Counts:
        """Return the state as seen by a reader: cells whose windows begin after `evicted_ms`."""
        if self.kind == "evict-nothing":
            return state
        shown = older if self.kind == "old-copies" else state
        found = {cell: shown[cell] for cell in sorted(shown) if cell[1] > evicted_ms}
        if self.kind == "leaky-copies" and found:
            found.pop(max(found, key=lambda cell: found[cell].events))
        return found

    def closed(self, cells: list[Cell]) -> list[Cell]:
        """Return the closed cells that are written."""
        newest_ms = max((window_ms for _, window_ms in cells), default=0)
        return [cell for cell in cells if cell[1] == newest_ms] if self.kind == "close-one" else cells

    def holds_back(self, batch: int, key: str, window: str, count: str) -> bool:
        if self.kind == "flush-at-stop" and batch >= 3:
            self.held[key, window] = count
        if self.kind == "withhold" and batch >= 3 and count == "1" and not self.held:
            self.held[key, window] = count
        return (key, window) in self.held

    def wrote(self, store: FakeStore, key: str) -> None:
        if self.kind == "expire":
            store.lives_ms[key] = self.every * 1000

    def last_deed(self, store: FakeStore) -> None:
        """Apply the bug upon a request to stop."""
        if self.kind == "expire-at-stop":
            store.lives_ms = dict.fromkeys(store.hashes, self.every * 1000)
        for (key, window), count in self.held.items() if self.kind == "flush-at-stop" else ():
            store.set(key, window, count)
        if self.kind == "double-at-stop":
            for key, counts in store.hashes.items():
                for window, count in counts.items() if not key.startswith(("updated:", PREFIX)) else ():
                    store.set(key, window, str(2 * int(count)))

    def handed_over(self, state: Counts) -> Counts:
        """Return the state that survives a change of the question."""
        if self.kind == "empty-state":
            return {}
        return {key: state[key] for key in sorted(state)[::2]} if self.kind == "half-state" else state

    def seam(self, seam: FileSeam, partition: int) -> int:
        """Return the offset at which it continues in the log after the files."""
        begins = seam.begins[partition] if seam.until_ms is not None else seam.ends[partition]
        others = {"early": begins - 1, "late": begins + 1, "earliest": 0, "last-window": seam.begins[partition]}
        return others.get(self.kind, begins)

    def kept(self, partition: int, records: list[Event | None]) -> list[Event | None]:
        """Return the records it reads from the files of a partition."""
        if self.kind == "stale-files":
            return records[: -len(records) // STRETCHES]
        torn = self.kind == "torn" and partition == TORN
        return records[: len(records) // 2] if torn else records

    def told(self, batch: int) -> int:
        """Return the last batch in its reported progress; negative for none."""
        return {"untold": -1, "told-to": min(batch, self.every)}.get(self.kind, batch)

    def dies(self, batch: int) -> bool:
        return self.kind == "die" and batch >= 3

    def eats(self, batch: int) -> bool:
        return self.kind == "eat-memory" and batch >= 3

    def mute(self, batch: int) -> bool:
        return self.kind == "mute" or (self.kind == "stall" and batch >= 3)
