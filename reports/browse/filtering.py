"""The filter of the list: by verdict, engine, scenario and word. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.browse.index import FOREIGN, OTHER, Entry

ON_A_PAGE = 100
MOST_LETTERS = 200  # of a word


@dataclass(frozen=True)
class Wanted:
    """The chosen values; "" leaves all in."""

    state: str = ""
    engine: str = ""
    scenario: str = ""
    word: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        state, engine, scenario, word = (query.get(name, "") for name in ("state", "engine", "scenario", "word"))
        return cls(state, engine, scenario, word[:MOST_LETTERS].strip())

    @property
    def is_all(self) -> bool:
        return self == Wanted()

    def as_query(self) -> dict[str, str]:
        values = {"state": self.state, "engine": self.engine, "scenario": self.scenario, "word": self.word}
        return {name: value for name, value in values.items() if value}

    def takes(self, entry: Entry) -> bool:
        return (
            self.state in ("", entry.state)
            and (not self.engine or self.engine in entry.engines)
            and (not self.scenario or self.scenario in entry.scenarios)
            and all(each in _text(entry) for each in self.word.casefold().split())
        )


@dataclass(frozen=True)
class Choices:
    """The values that occur, with the number of entries of each."""

    states: Mapping[str, int]
    engines: Mapping[str, int]
    scenarios: Mapping[str, int]


def choices(entries: Sequence[Entry]) -> Choices:
    return Choices(
        _counted(entry.state for entry in entries if entry.state != FOREIGN),
        _counted(engine for entry in entries for engine in entry.engines),
        _counted(scenario for entry in entries for scenario in entry.scenarios),
    )


def matching(entries: Iterable[Entry], wanted: Wanted) -> list[Entry]:
    """Return the entries that are wanted. A folder that is none of ours is no entry of the list."""
    return [entry for entry in entries if entry.state != FOREIGN and wanted.takes(entry)]


def foreign(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.kind == OTHER and entry.state == FOREIGN]


def page_of(entries: Sequence[Entry], number: str) -> tuple[Sequence[Entry], int, int]:
    """Return the entries of a page, its number from 1, and the number of pages. A wrong number is the nearest one."""
    pages = max(1, -(-len(entries) // ON_A_PAGE))
    chosen = min(max(int(number), 1), pages) if number.isascii() and number.isdigit() and len(number) < 9 else 1
    return entries[(chosen - 1) * ON_A_PAGE : chosen * ON_A_PAGE], chosen, pages


def _text(entry: Entry) -> str:
    words = (entry.name, entry.kind, entry.state, entry.sentence, entry.sink, entry.fault, entry.text)
    return " ".join((*words, *entry.engines, *entry.scenarios)).casefold()


def _counted(values: Iterable[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(values).items()))
