"""Runs the selftest: all planted bugs on the real checker and on wrong ones."""

from __future__ import annotations

import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harness.judging.checks.case import RunFacts
from harness.judging.judge import conclude
from harness.selftest import clean, planted, sinks, stored
from harness.selftest.mutants import Mutant, mutants
from harness.selftest.report import EXPECTED, Report, Tried, words_of

MISSING = "nothing: it is missing from expected.toml"
UNTRIED = "nothing: it was not tried"
KILLED, SURVIVED = "killed", "SURVIVED: no planted bug distinguishes it from the real one"

Say = Callable[[str], None]


def expected() -> dict[str, dict[str, str]]:
    """Read the hand-written matrix: part, name, outcome and words."""
    return tomllib.loads(EXPECTED.read_text(encoding="utf-8"))


def selftest(runs: int, seed: int, say: Say) -> Report:
    """Run everything in a temporary folder."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="streamgauge-selftest-") as folder:
        tried = [
            *by_hand(),
            *in_fake_runs(Path(folder), say),
            *on_mutants(say),
            *clean.tried(Path(folder), runs, seed, say),
        ]
    return Report(tuple(tried), seed, time.monotonic() - began_s)


def by_hand() -> list[Tried]:
    """Compare the cases that are assembled by hand with their sections of the matrix."""
    matrix = expected()
    return list(_compared({name: conclude_in_words(case) for name, case in planted.planted()}, matrix, planted.PARTS))


def in_fake_runs(folder: Path, say: Say) -> list[Tried]:
    """Compare runs of the fake engine, and stored runs whose files were changed."""
    say("reference sinks on the fake engine")
    seen = dict(sinks.outcomes(folder))
    say("a stored run with changed results, samples and logs")
    seen |= dict(stored.outcomes(folder))
    return list(_compared(seen, expected(), (*sinks.PARTS, *stored.PARTS)))


def on_mutants(say: Say) -> list[Tried]:
    """Run each wrong checker on all cases that are assembled by hand."""
    say("wrong checkers")
    told = {name: words for part in expected().values() for name, words in part.items()}
    return [Tried("mutants", mutant.name, KILLED, _fate(mutant, told)) for mutant in mutants()]


def conclude_in_words(case: RunFacts) -> str:
    return words_of(conclude(case))


def _fate(mutant: Mutant, told: dict[str, str]) -> str:
    """Judge all cases with the mutant. They are assembled again, because some use the rule for late events."""
    with mutant.planted():
        dead = any(conclude_in_words(case) != told.get(name) for name, case in planted.planted())
    return KILLED if dead else SURVIVED


def _compared(seen: dict[str, str], matrix: dict[str, dict[str, str]], parts: Iterable[str]) -> Iterator[Tried]:
    """Yield all entries of the matrix in its order, tried or not, then cases without an entry."""
    for part in parts:
        for name, words in matrix[part].items():
            yield Tried(part, name, words, seen.pop(name, UNTRIED))
    for name, words in seen.items():
        yield Tried("unknown", name, MISSING, words)
