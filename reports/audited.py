"""The results of an audit as text and JSON: groups by engine and word, one line per set, totals."""

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
ROWS = 13  # most rows on a screen
WIDTH, ALSO = 79, 22  # characters of a line, and of the column "also"
FEW = 3  # up to so many sets are listed one by one
ORDER = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS)


@dataclass(frozen=True)
class Group:
    """Sets of one engine with the same first word and outcome."""

    engine: str
    word: str
    outcome: Outcome
    sets: tuple[Audited, ...]

    @property
    def also(self) -> Counter[str]:
        return Counter(word for each in self.sets for word in each.words if word != self.word)

    @property
    def distance(self) -> float:
        """The largest distance of a set's share from 1. A set without a share counts as 0, thus as far away."""
        return max(abs((0.0 if each.share is None else each.share) - 1) for each in self.sets)


def groups(audited: Sequence[Audited]) -> list[Group]:
    found: dict[tuple[str, str, Outcome], list[Audited]] = {}
    for each in audited:
        found.setdefault((each.engine, each.words[0], each.outcome), []).append(each)
    made = [Group(engine, word, outcome, tuple(sets)) for (engine, word, outcome), sets in found.items()]
    return sorted(made, key=lambda each: (ORDER.index(each.outcome), -round(each.distance, 1), -len(each.sets)))


def screen(audited: Sequence[Audited], most: int | None = ROWS) -> list[list[str]]:
    """Return the rows of the worst groups, at most `most`; None returns all."""
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
    words = [word for word, _ in group.also.most_common()]
    told = ", ".join(words)
    return told if len(told) <= ALSO else f"{words[0]} +{len(words) - 1}"


def short(per_s: float) -> str:
    """Write a rate briefly, such as 50k."""
    return f"{per_s / 1000:,.4g}k" if per_s >= 1000 else f"{per_s:.4g}"


def endings(audited: Sequence[Audited]) -> Iterator[str]:
    """Yield the groups that the screen left out, the count of each word, and the sources of the assumed load."""
    left = groups(audited)[ROWS:]
    if left:
        yield f"... and {many(len(left), 'more group')} with {many(sum(len(each.sets) for each in left), 'set')}: --all"
    yield ""
    yield from _wrapped("words   ", totals(audited))
    yield from _wrapped("load    ", loads(audited))


def _wrapped(name: str, text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=name, subsequent_indent=" " * len(name))


def totals(audited: Sequence[Audited]) -> str:
    """Count the words of all sets. A set may have several."""
    words = Counter(word for each in audited for word in each.words)
    return ", ".join(f"{count:,} {word}" for word, count in words.most_common())


def loads(audited: Sequence[Audited]) -> str:
    sources = Counter(each.offered.source for each in audited)
    told = {"": "not known", "folder": "from names of folders"}
    return ", ".join(f"{count:,} {told.get(source, f'from {source}')}" for source, count in sources.most_common())


def rows(audited: Sequence[Audited], below: Path) -> list[list[str]]:
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
    del told["curve"], told["digest"]  # the page draws the curve, and a digest is of no use to a reader
    return told | {"outcome": each.outcome.value, "words": list(each.words), "sentence": each.sentence}


def place(each: Audited, below: Path) -> str:
    return os.path.relpath(each.place, below) if below.is_dir() and each.place.startswith(str(below)) else each.place
