"""The selftest: everything that is planted, tried on the checker as it is and on wrong ones."""

from __future__ import annotations

import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.judging.checks.case import Case
from harness.judging.judge import conclude
from harness.selftest import clean, planted, sinks, stored
from harness.selftest.mutants import Mutant, mutants
from harness.selftest.report import EXPECTED, Report, Tried, words_of

MISSING = "nothing: expected.toml does not have it"
UNTRIED = "nothing: it was not tried"
KILLED, SURVIVED = "killed", "SURVIVED: no planted bug tells it from the real one"

Say = Callable[[str], None]


def expected() -> dict[str, dict[str, str]]:
    """The matrix as a person wrote it: part, name, outcome and words."""
    return tomllib.loads(EXPECTED.read_text(encoding="utf-8"))


def selftest(runs: int, seed: int, say: Say) -> Report:
    """All of it. Nothing is left behind."""
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
    """Cases put together by hand, against their sections of the matrix."""
    matrix = expected()
    return list(_compared({name: conclude_in_words(case) for name, case in planted.planted()}, matrix, planted.PARTS))


def in_fake_runs(folder: Path, say: Say) -> list[Tried]:
    """Whole runs of the fake engine, and stored runs whose files were changed."""
    say("reference sinks of known class on the fake engine")
    seen = dict(sinks.outcomes(folder))
    say("results, samples and logs of a stored run, changed")
    seen |= dict(stored.outcomes(folder))
    return list(_compared(seen, expected(), (*sinks.PARTS, *stored.PARTS)))


def on_mutants(say: Say) -> list[Tried]:
    """Each wrong checker on all that was put together by hand."""
    say("checkers that are wrong on purpose")
    told = {name: words for part in expected().values() for name, words in part.items()}
    return [Tried("mutants", mutant.name, KILLED, _fate(mutant, told)) for mutant in mutants()]


def conclude_in_words(case: Case) -> str:
    return words_of(conclude(case))


def _fate(mutant: Mutant, told: dict[str, str]) -> str:
    """The cases are put together anew: the late rule has its part in some of them."""
    with mutant.planted():
        dead = any(conclude_in_words(case) != told.get(name) for name, case in planted.planted())
    return KILLED if dead else SURVIVED


def _compared(seen: dict[str, str], matrix: dict[str, dict[str, str]], parts: tuple[str, ...]) -> Iterator[Tried]:
    """What was tried, in the order of the matrix; what stands in it and was not tried; what does not stand in it."""
    for part in parts:
        for name, words in matrix[part].items():
            yield Tried(part, name, words, seen.pop(name, UNTRIED))
    for name, words in seen.items():
        yield Tried("unknown", name, MISSING, words)
