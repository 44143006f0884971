"""Poll the results during a run, from the store itself, and keep each change with its time.

The core is pure: it converts successive polls to rows of changes. The thread around it sends Redis one prepared request
for all keys and compares the answer as bytes, so that a poll of unchanged results costs almost nothing.

Hashes grow with every window, and most windows change no more. Once there are many, most polls are partial (a glance):
they read only windows that may still change, from the newest seen window back over the declared lateness and a little
more. The windows before these are closed. Twenty of them are read in turn, ten times a second, or less often if that
takes long; their answer is mostly unchanged, so that nothing is parsed. A whole poll comes about once a second, or less
often if it takes long, and always at the end. So the final values and their number are those of whole polls. A change
outside the partial poll is seen late, is counted (`seen_late`), and may hide a shorter dip.

The times of polls are random: an engine that knew the period could change results between two polls without being seen.

A table may keep its own history. Then each version counts as seen at the time at which it could be read first, also one
that stood only between two polls.

A poll takes time. A change that it sees happened between the start of the previous poll of the same window (`since_us`)
and its own end (`at_us`). Both times are needed to decide if a change is younger than a kill.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any, NamedTuple

import hiredis
import numpy as np
import redis
from numpy.typing import NDArray

from harness.model import Change, HarnessError, TapeSpec
from harness.results.glitches import ANOTHER_TYPE, Glitches
from harness.results.redis_pipeline import REPLY_TIMEOUT_S, Prepared
from harness.results.redis_scan import strangers
from harness.util.clock import Clock
from harness.util.integers import parse_int64
from harness.util.nearest_rank import of_samples
from harness.util.seeded_draws import Lane
from harness.util.texts import readable
from harness.util.wait import ends_within
from workloads.base import Columns
from workloads.prefixed import prefix_of
from workloads.registry import results_of

POLL_EVERY_S = 0.05
# The largest share of its period that a poll may take. Slower polls come less often, and leave Redis to the engine.
BUSY_SHARE = 1 / 3
MOST_KEYS = 500
# Windows are settled if they ended before the newest one by more than the declared lateness and this many windows.
SETTLED_WINDOWS = 2
WHOLE_EVERY_S = 1.0
CLOSED_EVERY_S = 0.1
CLOSED_AT_ONCE = 20  # windows
CLOSED_SHARE = 0.02  # the largest share of the time for polls of closed windows
JITTER = 0.5  # a pause differs from the period by up to this share
WHOLE_SHARE = 0.05  # the largest share of the time for whole polls
STRANGERS_EVERY_S = 0.5
NAMES_AT_ONCE = 1000
VERSION_COLUMNS = ("at_us", "version", "writer")
WHOLE_KEY = ""  # instead of a window: a glitch of a key's whole hash
_RECENT_POLLS = 20


@dataclass(frozen=True)
class Looks:
    """Statistics of the polls."""

    begun_ms: int  # the observer was started; 0: never
    scans: int
    whole: int  # the number of whole polls
    whole_period_max_ms: float
    closed_period_ms: float  # between polls of the closed windows, whole polls included: the median
    closed_period_max_ms: float
    seen_late: int  # changes outside the partial polls
    period_ms: float  # the median
    period_p99_ms: float
    period_max_ms: float
    took_ms: float  # a poll, from its request to its last answer: the median
    took_p99_ms: float
    campaigns: int
    cells_sampled_share: float
    garbage: int  # values that were no counts
    glitches: int  # rows of glitches.parquet
    errors: int
    first_error: str
    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class Sampled:
    """The changes as the columns of samples.parquet, the glitches, and the statistics of the polls."""

    columns: Mapping[str, NDArray[Any]]
    glitches: Mapping[str, Any]
    looks: Looks
    versions: Mapping[str, Any]  # of the store itself, for those that keep them


class Polled(NamedTuple):
    """One state of the results: at the time of a poll, or with a time of its own from the store's history."""

    replies: Sequence[object]  # for each key [field, value, ...]
    strangers: Collection[str]  # the hashes of unknown keys
    at_us: int | None = None
    version: str = ""
    writer: str = ""
    whole: bool = True  # False: the replies have only the fields that changed since the poll before


def sampled_keys(tape: TapeSpec) -> tuple[int, ...]:
    """Return the numbers of all keys if there are few; else of the probes and a seeded sample of the others."""
    count = len(results_of(tape).keys)
    if count <= MOST_KEYS:
        return tuple(range(count))
    others = count - tape.probes
    probes = range(others, count)[:MOST_KEYS]
    order = np.argsort(Lane.of(tape.seed, "sampled campaigns").at(np.arange(others)), kind="stable")
    return tuple(sorted([*order[: MOST_KEYS - len(probes)].tolist(), *probes]))


def unsettled(newest_ms: int | None, now_ms: int, window_ms: int, watermark_ms: int) -> range:
    """Return the windows that may still change; empty while no window was seen.

    They start from the newest window that was seen, not from the clock: an engine that fell behind still has all of
    them to change. They end as far ahead as the closing events of a run.
    """
    if newest_ms is None:
        return range(0)
    begin_ms = (newest_ms - watermark_ms) // window_ms * window_ms - SETTLED_WINDOWS * window_ms
    return range(begin_ms, (now_ms + watermark_ms) // window_ms * window_ms + 3 * window_ms, window_ms)


class Recorder:
    """Converts polls to changes. A count that vanished becomes 0; a value that is no number changes nothing."""

    def __init__(self, keys: Sequence[int]) -> None:
        self._keys = keys
        self._index_of = {key: index for index, key in enumerate(keys)}
        self._replies: list[object] = [[] for _ in keys]
        self._texts: list[dict[Any, Any]] = [{} for _ in keys]
        self._counts: list[dict[int, int]] = [{} for _ in keys]
        self._begun_us: int | None = None
        self._looks_us, self._whole_us = array("q"), array("q")
        self._closed_ms = array("d")  # between two polls of the same closed windows
        self._closed_at_us: dict[int, int] = {}  # the first window of a part -> the poll before
        self._took_ms = array("d")
        self._glanced: range | None = None  # by the poll before; None: it was whole
        self._began_us = self._whole_began_us = 0  # the poll before, and the last whole one; 0: none
        self._closed_began_us: dict[int, int] = {}  # window -> its last poll among the closed ones
        self._answered = True  # the poll got an answer for each key
        self._seen_late = 0
        self._changed_since_us = 0  # the newest `since_us` of all changes
        self._rows = {name: array("q") for name in ("at_us", "since_us", "campaign", "window_ms", "count")}
        self._garbage = 0
        self._glitches = Glitches()
        self._errors: list[str] = []
        self._versions: list[tuple[int, str, str]] = []
        self.oldest_ms: int | None = None
        self.newest_ms: int | None = None  # of windows that have begun: dates in the future are ignored
        self.windows = 0  # of the key with the most

    def begin(self, at_us: int) -> None:
        """Record the start: the time to the first poll counts as one between two polls."""
        self._begun_us = at_us

    def record(self, at_us: int, replies: Sequence[object], *, began_us: int | None = None, whole: bool = True) -> None:
        """Record a poll of everything that ended at `at_us`; without `began_us` it took no time.

        A reply is the key's hash as Redis returns it, [field, value, ...]; any other reply is no hash. If they are not
        `whole`, the other fields have not changed.
        """
        self._looks_us.append(at_us)
        self._whole_us.append(at_us)
        self._saw_closed(at_us, [*self._closed_at_us])
        compare = self._compare_whole if whole else self._add
        compare(at_us, replies)
        self._saw(at_us if began_us is None else began_us, None)

    def version(self, at_us: int, replies: Sequence[object], name: str, writer: str) -> None:
        """Record all hashes as they were from `at_us` on, by the store's own history."""
        self._versions.append((at_us, name, writer))
        self._began_us = at_us
        self._compare_whole(at_us, replies)

    def glance(self, at_us: int, windows: range, replies: Sequence[object], *, began_us: int | None = None) -> None:
        """Record a partial poll: for each key the counts of these windows in order, None if there is none."""
        self._looks_us.append(at_us)
        self._compare(at_us, windows, replies)
        self._saw(at_us if began_us is None else began_us, windows)

    def closed(self, at_us: int, windows: range, replies: Sequence[object] | None, *, began_us: int) -> None:
        """Record a poll of closed windows. Replies None: the same answer as the poll before."""
        self._saw_closed(at_us, [windows.start])
        if replies is not None:
            self._compare(at_us, windows, replies)
        if self._answered:
            self._closed_began_us.update(dict.fromkeys(windows, began_us))

    def _saw_closed(self, at_us: int, firsts: Sequence[int]) -> None:
        for first in firsts:
            if first in self._closed_at_us:
                self._closed_ms.append((at_us - self._closed_at_us[first]) / 1000)
            self._closed_at_us[first] = at_us

    def _compare_whole(self, at_us: int, replies: Sequence[object]) -> None:
        for index, reply in self._hashes(at_us, replies):
            if reply == self._replies[index]:
                continue
            self._replies[index] = reply
            old, new = self._texts[index], dict(zip(reply[::2], reply[1::2], strict=True))
            self._texts[index] = new
            self._changed(at_us, index, old, new)
            self.windows = max(self.windows, len(new))

    def _add(self, at_us: int, replies: Sequence[object]) -> None:
        for index, reply in self._hashes(at_us, replies):
            texts, new = self._texts[index], dict(zip(reply[::2], reply[1::2], strict=True))
            old = {field: texts[field] for field in new.keys() & texts.keys()}
            texts.update(new)
            self._changed(at_us, index, old, new)
            self.windows = max(self.windows, len(texts))

    def _compare(self, at_us: int, windows: range, replies: Sequence[object]) -> None:
        fields = [b"%d" % window_ms for window_ms in windows]
        for index, reply in self._hashes(at_us, replies):
            texts = self._texts[index]
            old = {field: texts[field] for field in fields if field in texts}
            new = {field: text for field, text in zip(fields, reply, strict=True) if text is not None}
            if old == new:
                continue
            self._replies[index] = None  # the next whole poll must be parsed, even if it returns what the last one did
            for field in old.keys() - new.keys():
                del texts[field]
            texts.update(new)
            self._changed(at_us, index, old, new)

    def unchanged(self, at_us: int, *, full: bool = True, began_us: int | None = None) -> None:
        """Record a poll with the same answer as the one before."""
        self._saw(at_us if began_us is None else began_us, None if full else self._glanced)
        self._looks_us.append(at_us)
        if full:
            self._whole_us.append(at_us)
            self._saw_closed(at_us, [*self._closed_at_us])

    def strangers(self, at_us: int, keys: Collection[str]) -> None:
        """Record the hashes of unknown keys from a scan of all names."""
        self._glitches.strangers(at_us, keys)

    def took(self, ms: float) -> None:
        """Record the time that a reader of all keys waits."""
        self._took_ms.append(ms)

    def failed(self, error: Exception) -> None:
        """Record a poll without a result."""
        self._errors.append(f"{type(error).__name__}: {error}")

    def shows(self, key: int, window_ms: int) -> bool:
        """Return True if this cell was seen in any form, or is not polled."""
        index = self._index_of.get(key)
        return index is None or window_ms in self._counts[index]

    def changes(self, since: int) -> Columns:
        """Return the changes from this row on, as columns of samples.parquet. Another thread may record meanwhile."""
        until = len(self._rows["count"])  # the column that is appended to last
        return {name: np.array(column[since:until], dtype=np.int64) for name, column in self._rows.items()}

    @property
    def changed(self) -> Change | None:
        """The interval of the newest change between two polls. The first poll's content is no change."""
        at_us = self._rows["at_us"]
        seen = at_us and self._looks_us and at_us[-1] > self._looks_us[0]
        return Change(at_us[-1] // 1000, self._changed_since_us // 1000) if seen else None

    def sampled(self, all_keys: int, cpu_s: float) -> Sampled:
        looks_us = np.array(self._looks_us, dtype=np.int64)
        from_us = looks_us if self._begun_us is None or not len(looks_us) else np.append(self._begun_us, looks_us)
        periods_ms = np.diff(from_us) / 1000 if len(from_us) > 1 else np.zeros(1)
        middle_ms, high_ms, most_ms = of_samples(periods_ms, (0.5, 0.99, 1.0))
        whole_ms = np.diff(np.array(self._whole_us, dtype=np.int64)) / 1000
        closed_ms = np.array(self._closed_ms or (whole_ms if len(whole_ms) else [0.0]))
        took_ms, took_high_ms = of_samples(self._took_ms or [0.0], (0.5, 0.99))
        looks = Looks(
            begun_ms=(self._begun_us or 0) // 1000,
            scans=len(looks_us),
            whole=len(self._whole_us),
            whole_period_max_ms=float(whole_ms.max(initial=0)),
            closed_period_ms=float(np.median(closed_ms)),
            closed_period_max_ms=float(closed_ms.max()),
            seen_late=self._seen_late,
            period_ms=middle_ms,
            period_p99_ms=high_ms,
            period_max_ms=most_ms,
            took_ms=took_ms,
            took_p99_ms=took_high_ms,
            campaigns=len(self._keys),
            cells_sampled_share=len(self._keys) / all_keys,
            garbage=self._garbage,
            glitches=len(self._glitches),
            errors=len(self._errors),
            first_error=self._errors[0] if self._errors else "",
            cpu_s=cpu_s,
            wall_s=float(periods_ms.sum()) / 1000,
        )
        columns = {name: np.array(column, dtype=np.int64) for name, column in self._rows.items()}
        columns["campaign"] = columns["campaign"].astype(np.int32)
        versions = {name: [row[number] for row in self._versions] for number, name in enumerate(VERSION_COLUMNS)}
        return Sampled(columns, self._glitches.columns, looks, versions)

    def _hashes(self, at_us: int, replies: Sequence[object]) -> Iterator[tuple[int, list[Any]]]:
        """Yield the keys that hold a hash, or are missing.

        A key of another type is a glitch. Other errors come from the service and show nothing of the results.
        """
        refused = None
        for index, reply in enumerate(replies):
            if isinstance(reply, list):
                self._glitches.gone(at_us, self._keys[index], WHOLE_KEY)
                yield index, reply
            elif str(reply).startswith("WRONGTYPE"):
                self._garbage += self._glitches.seen(at_us, self._keys[index], WHOLE_KEY, ANOTHER_TYPE)
            else:
                refused = reply
        self._answered = refused is None
        if isinstance(refused, Exception):
            self.failed(refused)

    def _saw(self, began_us: int, windows: range | None) -> None:
        """End a poll.

        A poll with a refused answer does not update the times, because it shows nothing of the results.
        """
        self._glanced = windows
        if self._answered:
            self._began_us = began_us
            self._whole_began_us = began_us if windows is None else self._whole_began_us

    def _changed(self, at_us: int, index: int, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> None:
        for field in old.keys() - new.keys():
            self._glitches.gone(at_us, self._keys[index], field)
            if (window_ms := parse_int64(field)) is not None and window_ms in self._counts[index]:
                self._keep(at_us, index, window_ms, 0)
        for field, text in new.items():
            if old.get(field) == text:
                continue
            window_ms, count = parse_int64(field), parse_int64(text)
            if window_ms is None or count is None:
                self._garbage += self._glitches.seen(at_us, self._keys[index], field, text)
            else:
                self._glitches.gone(at_us, self._keys[index], field)
                self._keep(at_us, index, window_ms, count)

    def _keep(self, at_us: int, index: int, window_ms: int, count: int) -> None:
        if self._counts[index].get(window_ms) == count:
            return
        self._counts[index][window_ms] = count
        was_glanced_at = self._glanced is None or window_ms in self._glanced
        self._seen_late += not was_glanced_at
        if window_ms * 1000 <= at_us:
            self.newest_ms = max(window_ms, self.newest_ms or window_ms)
            self.oldest_ms = min(window_ms, self.oldest_ms or window_ms)
        closed_us = self._closed_began_us.get(window_ms, 0)
        since_us = self._began_us if was_glanced_at else max(closed_us, self._whole_began_us)
        self._changed_since_us = max(self._changed_since_us, since_us)
        row = (at_us, since_us, self._keys[index], window_ms, count)
        for column, value in zip(self._rows.values(), row, strict=True):
            column.append(value)


class Pace:
    """The time from one poll to the next: POLL_EVERY_S, or more while polls take too much of it."""

    def __init__(self, seed: int) -> None:
        self._took_s: deque[float] = deque(maxlen=_RECENT_POLLS)
        self._draws = Random(seed)

    def period_s(self, took_s: float) -> float:
        """Draw the next period.

        The median of recent polls decides, because a single slow one is the machine's hiccup.
        """
        self._took_s.append(took_s)
        period_s = max(POLL_EVERY_S, median(self._took_s) / BUSY_SHARE)
        return period_s * self._draws.uniform(1 - JITTER, 1 + JITTER)


class _Watch(ABC):
    """A thread that polls the sampled keys from `start` until `stop`. It records a failed poll and tries again."""

    def __init__(self, names: Sequence[str], tape: TapeSpec, clock: Clock) -> None:
        self._clock = clock
        self._keys = len(names)
        keys = sampled_keys(tape)
        self._recorder, self._pace = Recorder(keys), Pace(tape.seed)
        self._names = [names[key] for key in keys]
        self._stopped = threading.Event()
        self._cpu_s = 0.0
        self._thread = threading.Thread(target=self._work, name="observer", daemon=True)

    def start(self) -> None:
        self._recorder.begin(self._clock.now_us())
        self._thread.start()

    def stop(self) -> Sampled:
        """Stop after one last poll."""
        self._stopped.set()
        self._thread.join(3 * REPLY_TIMEOUT_S)
        return self._recorder.sampled(self._keys, self._cpu_s)

    def changed(self) -> Change | None:
        return self._recorder.changed

    def shows(self, key: int, field: int) -> bool:
        return self._recorder.shows(key, field)

    def changes(self, since: int) -> Columns:
        return self._recorder.changes(since)

    @abstractmethod
    def _poll(self, *, full: bool) -> None: ...

    @abstractmethod
    def _disconnect(self) -> None:
        """Close a connection that may be broken."""

    def _work(self) -> None:
        begun_cpu_s, due_s = time.thread_time(), time.monotonic()
        while True:
            last, began_s = self._stopped.is_set(), time.monotonic()
            try:
                self._poll(full=last)
                self._recorder.took((time.monotonic() - began_s) * 1000)
            except (redis.RedisError, OSError, hiredis.HiredisError, HarnessError) as error:
                self._recorder.failed(error)
                self._disconnect()
            self._cpu_s = time.thread_time() - begun_cpu_s
            if last:
                break
            now_s = time.monotonic()
            due_s = max(due_s + self._pace.period_s(now_s - began_s), now_s)
            ends_within(due_s - now_s, self._stopped)
        self._disconnect()


class PlainObserver(_Watch):
    """An observer that polls with a function; each poll is whole.

    The function yields the versions since the poll before, if the store has them, and the present state at last.
    """

    def __init__(
        self,
        poll: Callable[[Sequence[str]], Iterable[Polled]],
        release: Callable[[], None],
        names: Sequence[str],
        tape: TapeSpec,
        clock: Clock,
    ) -> None:
        super().__init__(names, tape, clock)
        self._ask, self._release = poll, release

    def _poll(self, *, full: bool) -> None:  # noqa: ARG002
        began_us = self._clock.now_us()
        for seen in self._ask(self._names):
            if seen.at_us is None:
                at_us = self._clock.now_us()
                self._recorder.record(at_us, seen.replies, began_us=began_us, whole=seen.whole)
            else:
                at_us = seen.at_us
                self._recorder.version(at_us, seen.replies, seen.version, seen.writer)
            self._recorder.strangers(at_us, seen.strangers)

    def _disconnect(self) -> None:
        self._release()


class RedisObserver(_Watch):
    """Polls our own schema with one prepared request for all keys, and compares the answers as bytes."""

    def __init__(
        self,
        client: redis.Redis,
        names: Sequence[str],
        tape: TapeSpec,
        window_ms: int,
        watermark_ms: int,
        *,
        clock: Clock,
        bookkeeping: Sequence[str] = (),
    ) -> None:
        super().__init__(names, tape, clock)
        self._known, self._bookkeeping, self._strangers_due_s = frozenset(names), bookkeeping, 0.0
        self._window_ms, self._watermark_ms = window_ms, watermark_ms
        self._hashes_at_once, self._prefix = Prepared(client, self._names), prefix_of(client).encode()
        self._whole = self._hashes_at_once.request("HGETALL")
        self._whole_due_s = self._closed_due_s = 0.0
        self._closed: dict[range, tuple[bytes, bytes]] = {}  # -> request, and the answer before
        self._closed_turn = 0
        self._glance, self._glance_at = b"", range(0)
        self._last = (b"", b"")  # request and answer

    def _poll(self, *, full: bool) -> None:
        self._poll_sampled(full=full)
        if full or time.monotonic() >= self._strangers_due_s:
            self._look_for_strangers()

    def _look_for_strangers(self) -> None:
        """Scan the names of all hashes. They are many, so a slow scan comes as seldom as a whole poll."""
        began_s = time.monotonic()
        found = strangers(map(readable, self._hashes()), self._known, self._bookkeeping)
        self._recorder.strangers(self._clock.now_us(), found)
        self._strangers_due_s = began_s + max(STRANGERS_EVERY_S, (time.monotonic() - began_s) / WHOLE_SHARE)

    def _hashes(self) -> Iterator[bytes]:
        connection, cursor = self._hashes_at_once.connected(), b""
        while cursor != b"0":
            ours = "MATCH", self._prefix + b"*"
            connection.send_command("SCAN", cursor or b"0", *ours, "COUNT", NAMES_AT_ONCE, "TYPE", "hash")  # type: ignore[no-untyped-call]
            cursor, names = connection.read_response(disable_decoding=True)
            yield from (name.removeprefix(self._prefix) for name in names)

    def _poll_sampled(self, *, full: bool) -> None:
        began_s = time.monotonic()
        windows = unsettled(self._recorder.newest_ms, self._clock.now_ms(), self._window_ms, self._watermark_ms)
        if full or began_s >= self._whole_due_s or self._recorder.windows <= 2 * len(windows):
            self._see(self._whole, None)
            took_s = time.monotonic() - began_s
            self._whole_due_s = began_s + max(WHOLE_EVERY_S, took_s / WHOLE_SHARE)
            return
        if windows != self._glance_at:
            self._glance, self._glance_at = self._hashes_at_once.request("HMGET", *map(str, windows)), windows
        self._see(self._glance, windows)
        self._poll_closed(windows)

    def _poll_closed(self, unsettled: range) -> None:
        """Poll closed windows in turn. An equal answer shows that none changed."""
        began_s, oldest_ms = time.monotonic(), self._recorder.oldest_ms
        if began_s < self._closed_due_s or oldest_ms is None:
            return
        all_of = range(oldest_ms, unsettled.start, self._window_ms)
        parts = [all_of[begin : begin + CLOSED_AT_ONCE] for begin in range(0, len(all_of), CLOSED_AT_ONCE)]
        if not parts:
            return
        self._closed_turn += 1
        windows = parts[self._closed_turn % len(parts)]
        request, before = self._closed.get(windows, (b"", b""))
        request = request or self._hashes_at_once.request("HMGET", *map(str, windows))
        began_us = self._clock.now_us()
        answer = self._hashes_at_once.ask(request)
        replies = self._replies(answer) if answer != before else None
        self._recorder.closed(self._clock.now_us(), windows, replies, began_us=began_us)
        self._closed = {part: self._closed[part] for part in parts if part in self._closed}
        self._closed[windows] = request, answer
        self._closed_due_s = began_s + max(CLOSED_EVERY_S, (time.monotonic() - began_s) / CLOSED_SHARE)

    def _see(self, request: bytes, windows: range | None) -> None:
        """Poll these windows, or all, and record the answer if it differs from the last one to the same request."""
        began_us = self._clock.now_us()
        answer = self._hashes_at_once.ask(request)
        at_us = self._clock.now_us()
        if (request, answer) == self._last:
            self._recorder.unchanged(at_us, full=windows is None, began_us=began_us)
            return
        replies = self._replies(answer)
        if windows is None:
            self._recorder.record(at_us, replies, began_us=began_us)
        else:
            self._recorder.glance(at_us, windows, replies, began_us=began_us)
        self._last = (request, answer)

    def _replies(self, answer: bytes) -> list[Any]:
        reader = hiredis.Reader()
        reader.feed(answer)
        return [reader.gets() for _ in self._names]

    def _disconnect(self) -> None:
        self._hashes_at_once.disconnect()
