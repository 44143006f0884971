"""The result of a selftest, as values and as text: one line for each case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.model import Outcome, Verdict
from harness.terminal.command_end import short_path
from harness.terminal.console import table

EXPECTED = Path(__file__).with_name("expected.toml")
CLEAN, MUTANTS = "clean", "mutants"


@dataclass(frozen=True)
class Tried:
    """One tried case: its expected and its actual outcome."""

    part: str  # the section of expected.toml, or MUTANTS, or CLEAN
    name: str
    expected: str
    seen: str

    @property
    def right(self) -> bool:
        return self.expected == self.seen

    @property
    def planted(self) -> bool:
        """Return whether it is a bug, not an honest case."""
        return self.part not in (CLEAN, MUTANTS) and self.expected != Outcome.PASS.value


@dataclass(frozen=True)
class Report:
    """The result of the whole selftest."""

    tried: tuple[Tried, ...]
    seed: int
    took_s: float

    @property
    def wrong(self) -> tuple[Tried, ...]:
        return tuple(each for each in self.tried if not each.right)

    @property
    def outcome(self) -> Outcome:
        return Outcome.FAIL if self.wrong else Outcome.PASS

    @property
    def sentence(self) -> str:
        bugs = _share([each for each in self.tried if each.planted])
        mutants = _share([each for each in self.tried if each.part == MUTANTS])
        clean = _share([each for each in self.tried if each.part == CLEAN])
        caught = f"{bugs} planted bugs caught under their right names"
        return f"{caught}, {mutants} wrong checkers killed, {clean} clean runs PASS"


def words_of(verdict: Verdict) -> str:
    """Write a verdict as in expected.toml."""
    words = ", ".join(verdict.words)
    return f"{verdict.outcome.value} {words}".rstrip()


def lines(report: Report) -> list[str]:
    shown = [f"{report.outcome.value}  {report.sentence}", ""]
    shown += [f"  {each.part}: {each.name}: expected {each.expected}, seen {each.seen}" for each in report.wrong]
    shown += [""] if report.wrong else []
    rows = [[part, str(len(tried)), str(sum(each.right for each in tried))] for part, tried in _parts(report.tried)]
    shown.append(table(rows, ("part", "tried", "as expected")))
    return [*shown, "", f"{report.took_s:.0f} s, seed {report.seed}; expected outcomes: {short_path(EXPECTED)}"]


def as_object(report: Report) -> dict[str, Any]:
    return {
        "command": "selftest",
        "verdict": report.outcome.value,
        "exit": report.outcome.exit_code,
        "sentence": report.sentence,
        "seed": report.seed,
        "took_s": report.took_s,
        "tried": [{**asdict(each), "right": each.right} for each in report.tried],
    }


def _share(tried: list[Tried]) -> str:
    right = sum(each.right for each in tried)
    return f"{right}" if right == len(tried) else f"{right} of {len(tried)}"


def _parts(tried: Iterable[Tried]) -> list[tuple[str, list[Tried]]]:
    found: dict[str, list[Tried]] = {}
    for each in tried:
        found.setdefault(each.part, []).append(each)
    return list(found.items())
