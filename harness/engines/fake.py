"""An engine without processes: it counts lists in memory under simulated time.

It has the three sinks and the four crash points of the Spark job, its batches, its watermark and its replay, so that
every phase of a run, every fault and every check can be tested within a second. Two more sinks record a batch in a
separate step before or after its write: one loses events, the other counts them twice. It can also misbehave on request
(see `misbehaviour.py`). It ships with the program because the checker must be shown to fail wherever it runs.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from harness.engines.base import Member, Reached, RestartOffsets
from harness.engines.fake_memory import VIEW, Cell, Counts, Event, FakeClock, FakeStore, Log, Tally
from harness.engines.group_progress import Commits
from harness.engines.job import Job
from harness.engines.misbehaviour import Misbehaviour
from harness.evidence.checksums import PREFIX, Checksum
from harness.model import (
    CRASH_POINTS,
    Batch,
    BatchLog,
    EngineManifest,
    FileSeam,
    KeptState,
    LastWords,
    Progress,
    SinkClaim,
)

FAKE = "fake"
BATCH_MS = 500
CHECKPOINT_MS = 2500  # between two commits to a consumer group
START_MS = 2000
MARKER = "marker"
# Options with the names of the shipped Spark job.
COUNTS, BY = "streamgauge.counts", "streamgauge.by"
NEVER_LATE_MS = 1 << 50
FAKE_PID = 1_000_000_000  # no real pid: systems have smaller ones

MANIFEST = EngineManifest(
    id=FAKE,
    command=(),
    home=".",
    shipped=True,
    sinks=(
        SinkClaim("absolute", late="drop", guarantee="exactly-once", crash_points=CRASH_POINTS),
        SinkClaim("fenced", late="keep", guarantee="exactly-once", crash_points=CRASH_POINTS, bookkeeping=("fence:*",)),
        SinkClaim("increment", late="keep", guarantee="at-least-once", crash_points=CRASH_POINTS),
        SinkClaim("marker-first", "keep", "at-most-once", CRASH_POINTS, bookkeeping=(MARKER,)),
        SinkClaim("marker-last", "keep", "at-least-once", CRASH_POINTS, bookkeeping=(MARKER,)),
    ),
    evidence="spark-checkpoint",
    checksum=True,
    history=True,
    settings=("misbehave",),
    ready_s=30.0,
    drain_s=30.0,
)


# The same engine as a foreign job: it reports neither its progress nor its dropped events.
SILENT = replace(
    MANIFEST,
    progress=False,
    evidence="none",
    sinks=tuple(replace(claim, crash_points=()) for claim in MANIFEST.sinks),
)


def check_conf(conf: Mapping[str, str]) -> None:
    """Refuse options that the fake engine does not have."""
    Misbehaviour.parse(conf.get("misbehave", ""))


class FakeEngine:
    """See `harness.engines.base.Engine`; `crank` lets it work up to the current time."""

    def __init__(
        self,
        log: Log,
        store: FakeStore,
        clock: FakeClock,
        *,
        sink: str,
        window_ms: int,
        watermark_ms: int,
        misbehave: str = "",
        checksum: bool = False,
        manifest: EngineManifest = MANIFEST,
    ) -> None:
        self.manifest = manifest
        self.ran_ms = self.waited_ms = 0  # CPU times of its one thread
        self.killed_for_memory = 0  # count
        self._log, self._store, self._clock = log, store, clock
        self._sink, self._window_ms, self._watermark_ms = sink, window_ms, watermark_ms
        self._bad = Misbehaviour.parse(misbehave)
        self._checksum = checksum
        self._types, self._by_ad = {VIEW}, False
        self._files: list[list[Event | None]] = [[] for _ in log]  # the only place of events that Kafka has deleted
        self._seam = FileSeam((), ())
        self._files_end_ms = 0  # of the newest event in them
        self._running, self._frozen, self._forgets = False, False, False
        self._exit_code: int | None = None
        self._busy_until_ms = 0
        # Survives a crash: planned batches, the state at each commit, and the log of both.
        self._planned: dict[int, dict[int, int]] = {}
        self._watermarks: dict[int, int] = {}
        self._committed = -1
        self._state: Counts = {}
        self._older: Counts = {}  # before the last batch
        self._newest_ms = 0
        self._next_watermark_ms = 0
        self._replayed: set[int] = set()
        self._commits, self._checkpoint_due_ms = Commits(), clock.now_ms + CHECKPOINT_MS
        self._in_group: Progress | None = None  # the newest commit to its consumer group
        self._kept: dict[int, Counts] = {}  # by number
        # Lost in a crash.
        self._armed: tuple[str, int] | None = None
        self._reached: Reached | None = None
        self._work: _Batch | None = None
        self._left: list[Counts] = []  # the unwritten part of the batch at a crash point
        self._second: FakeGhost | None = None
        self.starts = 0
        self.cluster = None

    def start(self) -> None:
        self._running, self._frozen, self._work = True, False, None
        self.starts += 1
        if self.starts > 1:
            self._state = self._bad.restored(self._state, self._older)
        self._busy_until_ms = self._clock.now_ms + self._bad.start_ms(self.starts, START_MS)
        self._forgets = self._bad.kind == ("forget" if self.starts > 1 else "latest")
        open_batch = self._committed + 1
        if open_batch in self._planned:
            self._replayed.add(open_batch)
            if self._bad.kind == "replan":
                del self._planned[open_batch]

    restart = start

    @property
    def job(self) -> Job:
        return Job(self.manifest)

    def swap_job(self, job: Job) -> None:
        """Continue from its state or, with a planted bug, from the one before its last batch."""
        self.manifest = job.manifest
        if self._bad.kind == "stale-state":
            self._state = self._older

    def end(self) -> str:
        self.stop()
        return "the fake engine was told to stop, and did"

    def change(self, changed: Mapping[str, Any]) -> None:
        self._sink = changed.get("sink", self._sink)
        self._watermark_ms = changed.get("watermark_ms", self._watermark_ms)
        if "history" in changed:
            self._seam, self._files = changed["history"].seam, changed["files"]
            self._files_end_ms = max((each.time_ms for records in self._files for each in records if each), default=0)
        if "options" in changed and self._bad.kind != "deaf":
            options: Mapping[str, str] = changed["options"]
            self._types, self._by_ad = set(options.get(COUNTS, VIEW).split("+")), options.get(BY) == "ad"
            self._window_ms = changed.get("window_ms", self._window_ms)
            self._state = self._bad.handed_over(self._state)

    @property
    def checkpoint(self) -> Path | None:
        return None

    def alive(self) -> bool:
        return self._running

    def exit_code(self) -> int | None:
        return None if self._running else self._exit_code

    def progress(self) -> Progress | None:
        batch = self._bad.told(self._committed)
        ends = self._planned.get(batch)
        if ends is None or not self.manifest.progress:
            return None
        if self.manifest.progress_group:
            return self._commits_seen(batch)
        at_ms, watermark_ms = self._bad.clock(self._clock.wall_ms), self._watermarks.get(batch, 0)
        cells, commit_ms = len(self._state), self._bad.commit_ms(self._state)
        done = self._bad.ends(ends)
        return Progress(at_ms, batch, 0, done, watermark_ms, state_cells=cells, commit_ms=commit_ms)

    def _commits_seen(self, batch: int) -> Progress | None:
        """It commits like Flink, at checkpoints that are batches apart, so only offsets are known."""
        if self._clock.now_ms >= self._checkpoint_due_ms:
            self._checkpoint_due_ms = self._clock.now_ms + CHECKPOINT_MS
            new = self._commits.progress(self._bad.clock(self._clock.wall_ms), self._planned[batch])
            self._in_group = new or self._in_group
        return self._in_group

    def collect(self) -> None:
        """Do nothing: its evidence lies in memory and is never purged."""

    def batch_log(self) -> BatchLog | None:
        if self.manifest.evidence == "none":
            return None
        files = dict(enumerate(self._seam.ends))
        batches = tuple(
            Batch(n, ends, self._watermarks.get(n, 0), n <= self._committed, n in self._replayed, files=files)
            for n, ends in sorted(self._planned.items())
        )
        return BatchLog(batches, drops_late=self._claim.late == "drop", complete=True)

    def keep_state(self, number: int, batch: int) -> KeptState | None:
        """Like Spark, evict by the watermark of the last batch's plan: the next batch drops by it."""
        if batch != self._committed:
            return None
        watermark_ms = self._watermarks.get(batch + 1, self._next_watermark_ms)
        self._kept[number] = self._bad.as_kept(self._state, self._older, watermark_ms - self._window_ms)
        return KeptState(number, batch, tuple(self._planned[batch].values()), watermark_ms, 0)

    def read_states(self) -> Mapping[str, Sequence[str | int]]:
        rows = [
            (number, key, str(window), str(tally.events))
            for number, state in self._kept.items()
            for (key, window), tally in state.items()
        ]
        return {name: [row[i] for row in rows] for i, name in enumerate(("number", "key", "field", "value"))}

    def tail(self, lines: int) -> tuple[str, ...]:
        return (f"fake engine, {self._bad.text or 'honest'}, batch {self._committed} committed",)[:lines]

    def last_words(self) -> LastWords:
        return LastWords("", self.tail(1))

    def notes(self) -> tuple[str, ...]:
        return ()

    def stop(self) -> None:
        if self._running:
            self._bad.last_deed(self._store)
        self._running = False
        self._exit_code = 0

    def kill(self) -> str:
        self._running, self._exit_code = False, -9
        return "the fake engine was stopped where it stood"

    def members(self) -> tuple[Member, ...]:
        return (_member(FAKE_PID + self.starts, stopped=self._frozen),) if self._running else ()

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None:
        deeds = {signal.SIGSTOP: self.freeze, signal.SIGCONT: self.thaw, signal.SIGTERM: self.stop}
        if FAKE_PID + self.starts in pids:
            deeds.get(number, self.kill)()

    def detach(self) -> FakeGhost:
        assert self._reached
        number, left = self._reached.batch, self._left
        self._running = False

        def finish() -> None:
            for part in left:
                self._write(number, part)

        return FakeGhost(FAKE_PID + self.starts, finish, stopped=self._frozen)

    def start_second(self) -> FakeGhost:
        """The second works on the next batch together with the first, and fails at the commit."""
        self._second = FakeGhost(FAKE_PID)
        return self._second

    def freeze(self) -> None:
        self._frozen = True

    def thaw(self) -> None:
        self._frozen = False

    def arm(self, point: str, batch: int) -> None:
        self._armed, self._reached = (point, batch), None

    def disarm(self) -> None:
        self._armed = self._reached = None

    def reached(self) -> Reached | None:
        return self._reached

    def planned(self, batch: int) -> bytes | None:
        ends = self._planned.get(batch)
        return None if ends is None else msgspec.json.encode(ends)

    def committed(self, batch: int) -> bool:
        return batch <= self._committed

    def restart_offsets(self) -> RestartOffsets:
        restored = self._planned.get(self._committed, {})
        written = self._planned.get(self._committed + 1, restored)
        return RestartOffsets(tuple(restored.values()), tuple(written.values()))

    def restored(self) -> RestartOffsets:
        return RestartOffsets()

    def crank(self) -> None:
        """Do the work that is due: one batch every BATCH_MS, after the start-up."""
        if not self._running or self._frozen or (self._reached and self._reached.point != "c4"):
            return
        if self._reached:  # c4: the commit happens, the next plan does not, until the kill
            self._commit(self._reached.batch)
            return
        if self._clock.now_ms < self._busy_until_ms:
            return
        if self._forgets:
            self._skip()
        self._busy_until_ms = self._clock.now_ms + self._bad.period_ms(BATCH_MS)
        self.ran_ms += BATCH_MS // 10
        if self._bad.starves(self._committed):
            self.waited_ms += 2 * BATCH_MS
            return
        if self._bad.dies(self._committed):
            self._running, self._exit_code = False, 1
        elif self._bad.eats(self._committed):
            self._running, self._exit_code, self.killed_for_memory = False, -9, self.killed_for_memory + 1
        elif not self._bad.mute(self._committed) and not self._begins():
            self._one_batch()

    def _begins(self) -> bool:
        """A slow batch is planned now, and written when its time has passed."""
        number = self._committed + 1
        if not self._bad.is_slow or number in self._planned or not self._plan(number):
            return False
        before = self._planned.get(number - 1, {})
        events = sum(end - before.get(p, 0) for p, end in self._planned[number].items())
        self._busy_until_ms = self._clock.now_ms + BATCH_MS // 2 + events * 1000 // self._bad.every
        return True

    def _skip(self) -> None:
        """Continue at the end of the log, like a consumer without committed offsets."""
        self._planned[self._committed] = {p: len(records) for p, records in enumerate(self._log)}
        self._planned.pop(self._committed + 1, None)
        self._forgets = False

    def _one_batch(self) -> None:
        number = self._committed + 1
        if number not in self._planned and not self._plan(number):
            return
        self._work = self._count(number)
        writes = sorted(self._work.writes)
        keys = sorted({key for key, _ in writes})
        half, other_half = keys[: len(keys) // 2], keys[len(keys) // 2 :]
        armed = self._armed if self._armed and number >= self._armed[1] and len(keys) > 1 else None
        parts = [{cell: self._work.writes[cell] for cell in writes if cell[0] in some} for some in (half, other_half)]
        marked = int(self._store.get(MARKER, "batch") or -1) >= number
        for point, part, left in (("c1", {}, parts), ("c2", parts[0], parts[1:]), ("c3", parts[1], [])):
            self._mark(number, now=(self._sink, point) == ("marker-first", "c2"))
            self._write(number, {} if marked else part)
            self._mark(number, now=(self._sink, point) == ("marker-last", "c3"))
            if armed and armed[0] == point:
                self._left = left
                self._reached = Reached(point, number, self._clock.now_ms)
                return
        if armed:
            self._reached = Reached("c4", number, self._clock.now_ms)
            return
        if self._second and self._second.alive():
            self._write(number, self._work.writes)
            self._second.lose()
        self._commit(number)

    def _plan(self, number: int) -> bool:
        before = self._planned.get(number - 1, {})
        ends = {p: len(records) for p, records in enumerate(self._log)}
        # With results at window close, a batch without records follows if the watermark has advanced.
        closes = self._claim.final and self._newest_ms - self._watermark_ms > self._next_watermark_ms
        if ends == {p: before.get(p, 0) for p in ends} and not closes:
            return False
        self._planned[number] = ends
        # Spark's rule: a batch drops by the watermark of the plan before it.
        self._watermarks[number] = self._next_watermark_ms
        self._next_watermark_ms = max(
            self._next_watermark_ms, self._newest_ms - self._bad.watermark_ms(self._watermark_ms)
        )
        return True

    def _count(self, number: int) -> _Batch:
        ids: dict[Cell, list[int]] = {}
        newest_ms, taken = self._newest_ms, 0
        before = self._planned.get(number - 1, {})
        for p, end in self._planned[number].items():
            for offset, event in self._read(p, before.get(p, 0), end):
                if event is None or event.type not in self._types or self._bad.knows((p, offset), event):
                    continue
                taken += 1
                if self._bad.overflows(taken):
                    continue
                newest_ms = max(newest_ms, event.time_ms)
                window = event.time_ms // self._window_ms * self._window_ms
                if self._claim.late == "drop" and window + self._window_ms <= self._watermarks[number]:
                    continue
                name = event.ad if self._by_ad else event.campaign
                for key, number_of_event in self._bad.counted((name, window), event.id):
                    ids.setdefault(key, []).append(number_of_event)
        if self._bad.adds_again(taken, replayed=number in self._replayed):
            ids = {key: members + members for key, members in ids.items()}
        counts = {key: Tally(len(members), Checksum.of(members)) for key, members in ids.items()}
        if self._sink == "absolute":
            state = dict(self._state)
            for key, tally in counts.items():
                state[key] = state.get(key, Tally()) + tally
            shown = self._closed(number, state, counts) if self._claim.final else counts
            return _Batch({key: state[key] for key in shown}, state, newest_ms)
        return _Batch(counts, {}, newest_ms)

    def _closed(self, number: int, state: Counts, changed: Collection[Cell]) -> list[Cell]:
        """Return the cells whose windows this batch closes, or that changed after their window closed."""
        before_ms, now_ms = (each - self._window_ms for each in (self._watermarks[number], self._next_watermark_ms))
        closed = [cell for cell in state if cell[1] <= now_ms and (cell[1] > before_ms or cell in changed)]
        return self._bad.closed(closed)

    def _read(self, p: int, begin: int, end: int) -> Iterator[tuple[int, Event | None]]:
        """The very first batch reads the files, and the log from where they end."""
        if not self._files[p] or begin:
            yield from enumerate(self._log[p][begin:end], begin)
            return
        until_ms = self._seam.until_ms
        old = list(enumerate(self._bad.kept(p, self._files[p])))
        first = self._bad.seam(self._seam, p)
        new = [row for row in enumerate(self._log[p][first:end], first) if self._is_read_again(p, *row)]
        if until_ms is not None:
            old = [(offset, event) for offset, event in old if event and event.time_ms < until_ms]
            new = [(offset, event) for offset, event in new if event and event.time_ms >= until_ms]
        yield from (*old, *new)

    def _is_read_again(self, p: int, offset: int, event: Event | None) -> bool:
        """Return whether a record after the start offset is read; only a planted bug skips any."""
        if self._bad.kind != "last-window" or offset >= self._seam.ends[p]:
            return True
        return event is not None and event.time_ms // self._window_ms == self._files_end_ms // self._window_ms

    def _write(self, number: int, part: Mapping[Cell, Tally]) -> None:
        fenced_out = set()
        if self._sink == "fenced":
            keys = {key for key, _ in part}
            fenced_out = {key for key in keys if int(self._store.get(f"fence:{key}", "batch") or -1) >= number}
        for (key, window), tally in part.items():
            if key in fenced_out:
                continue
            total = self._written(key, str(window)) + tally if self._adds else tally
            if self._bad.holds_back(number, key, str(window), str(total.events)):
                continue
            self._store.set(key, str(window), self._bad.spell(total.events))
            self._bad.wrote(self._store, key)
            if self._checksum:
                self._store.set(PREFIX + key, str(window), str(total.sums))
            self._store.set(f"updated:{key}", str(window), str(self._clock.wall_ms))
            if self._sink == "fenced":
                self._store.set(f"fence:{key}", "batch", str(number))

    @property
    def _claim(self) -> SinkClaim:
        return self.manifest.sink(self._sink)

    @property
    def _adds(self) -> bool:
        """Return whether it adds to the results, where others write totals."""
        return self._sink != "absolute" or self._bad.kind == "add"

    def _written(self, key: str, window: str) -> Tally:
        sums = Checksum.read(self._store.get(PREFIX + key, window) or "")
        return Tally(int(self._store.get(key, window) or 0), sums or Checksum())

    def _mark(self, number: int, *, now: bool) -> None:
        """Record a done batch, as marker sinks do: a separate step, which is their bug."""
        if now:
            self._store.set(MARKER, "batch", str(number))

    def _commit(self, number: int) -> None:
        if self._work is None or number <= self._committed:
            return
        self._bad.come_and_go(number, self._store, min(self._work.writes, default=("", 0)))
        self._older = self._state
        self._committed, self._state, self._newest_ms = number, self._work.state, self._work.newest_ms
        self._busy_until_ms += self._bad.commit_ms(self._state)
        self._work = None


class FakeBatch(FakeEngine):
    """Counts all events, including late ones, and writes totals. It keeps no state for its next start."""

    def start(self) -> None:
        self._planned, self._watermarks, self._committed, self._state = {}, {}, -1, {}
        super().start()

    restart = start


def _member(pid: int, *, stopped: bool) -> Member:
    return Member(pid, 0, ("fake",), stopped=stopped, leads=True)


class FakeGhost:
    """See `harness.engines.base.Ghost`: when thawed, it finishes its write and fails at its commit."""

    def __init__(self, pid: int, finish: Callable[[], object] = lambda: None, *, stopped: bool = False) -> None:
        self._pid, self._finish, self._stopped = pid, finish, stopped
        self._exit_code: int | None = None

    def alive(self) -> bool:
        return self._exit_code is None

    def exit_code(self) -> int | None:
        return self._exit_code

    def members(self) -> tuple[Member, ...]:
        return (_member(self._pid, stopped=self._stopped),) if self.alive() else ()

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None:
        if number is signal.SIGCONT and self._pid in pids:
            self._stopped = False
            self._finish()
            self.lose()

    def lose(self) -> None:
        self._exit_code = 1

    def told(self) -> Progress | None:
        return None

    def tail(self, lines: int) -> tuple[str, ...]:
        return () if self.alive() else ("CONCURRENT_STREAM_LOG_UPDATE: another has this batch",)[:lines]

    def stop(self) -> None:
        if self.alive():
            self._exit_code = 0


@dataclass(frozen=True)
class _Batch:
    """The results and the state of one batch."""

    writes: Counts
    state: Counts
    newest_ms: int
