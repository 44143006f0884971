"""What an audit found: a screen of groups by engine and word, a line per set, as JSON."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from harness.audit.checks import Audited
from harness.model import Outcome
from harness.util.texts import many

HEADER = ("engine", "found", "sets", "share", "events/s", "also")
EACH = ("results", "verdict", "found", "cells", "share", "events/s", "from", "p99")
ROWS = 13  # a screen has no more
WIDTH, ALSO = 79, 22  # letters of a line, and of the words besides
FEW = 3  # sets that are told one by one
ORDER = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS)


@dataclass(frozen=True)
class Group:
    """Sets of one engine of which the first thing to say is the same."""

    engine: str
    word: str
    outcome: Outcome
    sets: tuple[Audited, ...]

    @property
    def also(self) -> Counter[str]:
        return Counter(word for each in self.sets for word in each.words if word != self.word)

    @property
    def distance(self) -> float:
        """How far the worst one is from what was offered; without a share nothing is known of it."""
        return max(abs((0.0 if each.share is None else each.share) - 1) for each in self.sets)


def groups(audited: Sequence[Audited]) -> list[Group]:
    found: dict[tuple[str, str, Outcome], list[Audited]] = {}
    for each in audited:
        found.setdefault((each.engine, each.words[0], each.outcome), []).append(each)
    made = [Group(engine, word, outcome, tuple(sets)) for (engine, word, outcome), sets in found.items()]
    return sorted(made, key=lambda each: (ORDER.index(each.outcome), -round(each.distance, 1), -len(each.sets)))


def screen(audited: Sequence[Audited], most: int | None = ROWS) -> list[list[str]]:
    """The worst groups, as far as a screen goes; None: all of them."""
    return [
        [
            each.engine,
            each.word,
            f"{len(each.sets):,}",
            _range([one.share for one in each.sets if one.share is not None], "{:.2f}".format),
            _range([one.offered.total_per_s for one in each.sets if one.offered.total_per_s is not None], short),
            _also(each),
        ]
        for each in groups(audited)[:most]
    ]


def _range(values: Sequence[float], form: Callable[[float], str]) -> str:
    ends = dict.fromkeys(form(each) for each in (min(values), max(values))) if values else ()
    return "-".join(ends)


def _also(group: Group) -> str:
    """The words that its sets say besides, the most frequent first, as far as there is room."""
    words = [word for word, _ in group.also.most_common()]
    told = ", ".join(words)
    return told if len(told) <= ALSO else f"{words[0]} +{len(words) - 1}"


def short(per_s: float) -> str:
    """50k."""
    return f"{per_s / 1000:,.4g}k" if per_s >= 1000 else f"{per_s:.4g}"


def endings(audited: Sequence[Audited]) -> Iterator[str]:
    """What the screen left out, how often each word was said, and what load was assumed."""
    left = groups(audited)[ROWS:]
    if left:
        yield f"... and {many(len(left), 'more group')} with {many(sum(len(each.sets) for each in left), 'set')}: --all"
    yield ""
    yield from _wrapped("words   ", totals(audited))
    yield from _wrapped("load    ", loads(audited))


def _wrapped(name: str, text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=name, subsequent_indent=" " * len(name))


def totals(audited: Sequence[Audited]) -> str:
    """A set may have several words."""
    words = Counter(word for each in audited for word in each.words)
    return ", ".join(f"{count:,} {word}" for word, count in words.most_common())


def loads(audited: Sequence[Audited]) -> str:
    sources = Counter(each.offered.source for each in audited)
    told = {"": "not known", "folder": "from names of folders"}
    return ", ".join(f"{count:,} {told.get(source, f'from {source}')}" for source, count in sources.most_common())


def rows(audited: Sequence[Audited], below: Path) -> list[list[str]]:
    """Each set, the worst first."""
    return [
        [
            place(each, below),
            each.outcome.value,
            ", ".join(each.words),
            f"{each.cells:,}",
            share(each),
            "" if each.offered.total_per_s is None else f"{each.offered.total_per_s:,.0f}",
            each.offered.source,
            latency(each.latency_p99_ms),
        ]
        for each in audited
    ]


def share(each: Audited) -> str:
    return "" if each.share is None else f"{each.share:.3f}"


def latency(ms: float | None) -> str:
    return "" if ms is None else f"{ms / 1000:,.1f} s"


def sentences(audited: Sequence[Audited], below: Path) -> Iterator[str]:
    for each in audited:
        for finding in each.findings:
            yield f"{place(each, below)}: {finding.word}: {finding.sentence}"


def summary(audited: Sequence[Audited]) -> str:
    counts = {outcome: sum(each.outcome is outcome for each in audited) for outcome in Outcome}
    told = [f"{counts[o]:,} {o.value}" for o in ORDER if counts[o]]
    return f"{outcome(audited).value}  {many(len(audited), 'result')}: {', '.join(told)}"


def outcome(audited: Sequence[Audited]) -> Outcome:
    return Outcome.worst([each.outcome for each in audited])


def as_object(audited: Sequence[Audited], target: str) -> dict[str, Any]:
    worst = outcome(audited)
    return {
        "command": "audit",
        "path": target,
        "verdict": worst.value,
        "exit": int(worst.exit_code),
        "words": dict(Counter(word for each in audited for word in each.words)),
        "results": [_as_object(each) for each in audited],
    }


def _as_object(each: Audited) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(each)
    del told["curve"], told["digest"]  # the page draws it; and it says nothing to a reader
    return told | {"outcome": each.outcome.value, "words": list(each.words), "sentence": each.sentence}


def place(each: Audited, below: Path) -> str:
    return os.path.relpath(each.place, below) if below.is_dir() and each.place.startswith(str(below)) else each.place
