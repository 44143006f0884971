"""The lines on the progress of a run: one for each phase, with its time and what it waits for.

Nothing here prints, and the clock is an argument: tests need neither a terminal nor time.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.util.local_time import local

Facts = Mapping[str, str | float | int]

READ = "read"
# The phases in which records are sent, processed or read back: an engine works off a backlog before its first answers.
COUNTED = ("backlog", "engine", "warm-up", "load", "drain", READ)
TIME_WIDTH = NAME_WIDTH = 9
INDENT = TIME_WIDTH + 2 + NAME_WIDTH + 1
BAR_WIDTH, LEAST_BAR_WIDTH = 24, 8
LEAST_ROOM = 20  # columns for text; a narrower terminal cuts the lines
NOTES_KEPT = 4  # the newest notes stay, however many phases there are
RATED_EVERY_S = 1.0
DONE_OVER_S = 10.0  # an engine with batches is done with nothing in most seconds
OVER, FAULT = "dim", "magenta"


class Line(NamedTuple):
    """A line, and its style on a terminal."""

    text: str
    style: str = ""


class Counts(NamedTuple):
    """The progress of load and engine, in records. When the log is read back, `sent` are those that were read."""

    sent: int
    planned: int
    done: int | None  # None if the engine reports no progress


class Rates(NamedTuple):
    """Records per second."""

    sent: float = 0.0
    done: float = 0.0


@dataclass(frozen=True)
class Phase:
    """One phase of a run, and the seconds at which it began and ended."""

    name: str
    waits_for: str
    began_s: float
    ended_s: float | None = None

    def seconds(self, now_s: float) -> float:
        return (now_s if self.ended_s is None else self.ended_s) - self.began_s


def counts_of(facts: Facts) -> Counts | None:
    """Read the counts of an update; None if there are none.

    An engine's offsets include opening and closing events, and are newer than the fleet's report. So `done` is limited
    to `sent`.
    """
    if not facts:
        return None
    sent, planned, done = (int(facts[key]) for key in ("sent", "planned", "done"))
    return Counts(sent, planned, None if done < 0 else min(done, sent))


def span(seconds: float) -> str:
    """Write a duration, such as `4.2 s`, `31 s` or `12:05 min`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02} min"


def head(seconds: float, name: str) -> str:
    """Write the two columns before a text: the time and the name of a phase."""
    return f"{span(seconds):>{TIME_WIDTH}}  {name:<{NAME_WIDTH}} "


def phase_lines(name: str, waits_for: str, seconds: float, width: int, *, is_over: bool) -> list[Line]:
    """Write a phase. A phase that is over has one line, the current one as many as it needs."""
    room = room_of(width)
    if is_over:
        return [Line((head(seconds, name) + cut(waits_for, room)).rstrip(), OVER)]
    first, *others = textwrap.wrap(waiting(waits_for), room, break_on_hyphens=False) or [""]
    return [Line((head(seconds, name) + first).rstrip()), *indented(others)]


def waiting(waits_for: str) -> str:
    return f"waits for {waits_for}" if waits_for else ""


def sent_words(phase: str, counts: Counts, rates: Rates) -> str:
    return f"{READ if phase == READ else 'sent'} {counts.sent:,} of {counts.planned:,} ({rates.sent:,.0f}/s)"


def done_words(counts: Counts, rates: Rates) -> str:
    """Write how far the engine is; "" if it reports no progress."""
    if counts.done is None:
        return ""
    return f"done {counts.done:,} ({rates.done:,.0f}/s), {counts.sent - counts.done:,} behind"


def count_lines(phase: str, counts: Counts, rates: Rates, width: int) -> list[Line]:
    """Write the counts for a terminal: a bar with what was sent, then what is done."""
    sent = sent_words(phase, counts, rates)
    size = min(BAR_WIDTH, room_of(width) - len(sent) - 3)
    bar = f"{bar_of(counts.sent / max(1, counts.planned), size)} " if size >= LEAST_BAR_WIDTH else ""
    return indented(filter(None, [f"{bar}{sent}", done_words(counts, rates)]))


def room_of(width: int) -> int:
    """Return the columns beside the time and the name of a phase."""
    return max(LEAST_ROOM, width - INDENT)


def bar_of(share: float, size: int) -> str:
    full = round(size * min(1.0, share))
    return "[" + "#" * full + "." * (size - full) + "]"


def indented(texts: Iterable[str]) -> list[Line]:
    return [Line(" " * INDENT + text) for text in texts]


def cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(0, room - 3)]}..."


def note_lines(notes: Sequence[str], width: int) -> list[Line]:
    """Wrap notes to a width, each with its own indent."""
    return [Line(part) for note in notes for line in note.splitlines() for part in wrapped(line, width)]


def wrapped(line: str, width: int) -> list[str]:
    """Wrap a line with its own indent. A long word stays whole."""
    if len(line) <= width or " " not in line.strip():
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def fitted(notes: Sequence[Line], below: Sequence[Line], height: int) -> list[Line]:
    """Choose the lines that fit a height: the newest of each kind, and at least the last notes."""
    shown = list(below[max(0, len(below) - max(1, height - min(len(notes), NOTES_KEPT))) :])
    room = max(0, height - len(shown))
    return [*notes[max(0, len(notes) - room) :], *shown]


class RunProgress:
    """The phases of a run so far, and its newest counts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began_s = clock, clock()
        self._phases: list[Phase] = []
        self._facts: Facts = {}
        self._rated: list[tuple[float, Counts]] = []  # those of the last DONE_OVER_S, the newest one last
        self._rates = Rates()

    def phase(self, name: str, waits_for: str = "") -> None:
        """End the current phase and begin the next one."""
        now_s = self._clock()
        if self._phases:
            self._phases[-1] = replace(self._phases[-1], ended_s=now_s)
        if name == READ:  # the counts so far are those of the load
            self._facts, self._rated = {}, []
        self._phases.append(Phase(name, local(waits_for), now_s))

    def update(self, facts: Facts) -> None:
        """Take the newest counts and the state of the fault."""
        self._facts = facts
        if (counts := counts_of(facts)) is None:
            return
        now_s = float(facts["now_ms"]) / 1000
        if not self._rated or now_s - self._rated[-1][0] >= RATED_EVERY_S:
            if self._rated:
                (began_s, began), (before_s, before) = self._rated[0], self._rated[-1]
                sent = (counts.sent - before.sent) / (now_s - before_s)
                done = ((counts.done or 0) - (began.done or 0)) / (now_s - began_s)
                self._rates = Rates(max(0.0, sent), max(0.0, done))
            self._rated = [each for each in self._rated if now_s - each[0] < DONE_OVER_S] + [(now_s, counts)]

    def lines(self, width: int) -> list[Line]:
        """Write all phases for a terminal: those that are over, and the current one with its counts."""
        now_s, phases, shown = self._clock(), list(self._phases), list[Line]()
        for each in phases:
            is_over = each is not phases[-1]
            shown += phase_lines(each.name, each.waits_for, each.seconds(now_s), width, is_over=is_over)
        if phases and (counts := self._counts()):
            shown += count_lines(self._current.name, counts, self._rates, width)
        if phases and (fault := self._fault()):
            shown += [line._replace(style=FAULT) for line in indented(textwrap.wrap(fault, room_of(width)))]
        return shown

    def begin_line(self) -> str:
        """Write the current phase for a log, with the time since the run began."""
        return f"{self._head()}{waiting(self._current.waits_for)}".rstrip()

    def line(self) -> str:
        """Write the progress of the current phase for a log."""
        counts = self._counts()
        words = [sent_words(self._current.name, counts, self._rates), done_words(counts, self._rates)] if counts else []
        return f"{self._head()}{', '.join(filter(None, [*words, self._fault()]))}" if words else self.begin_line()

    @property
    def _current(self) -> Phase:
        return self._phases[-1] if self._phases else Phase("", "", self._began_s)

    def _head(self) -> str:
        return head(self._clock() - self._began_s, self._current.name)

    def _counts(self) -> Counts | None:
        counts = counts_of(self._facts) if self._current.name in COUNTED else None
        return counts if counts and counts.sent else None

    def _fault(self) -> str:
        return f"fault {fault}" if (fault := self._facts.get("fault")) else ""
