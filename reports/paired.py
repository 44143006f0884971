"""Pairs of engines as their folder keeps them, and the text that a terminal, a CI job and a program get."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments import pairing
from harness.experiments.folder import Folder
from harness.experiments.gating.rounds import Round, kept
from harness.experiments.pairing import Measured, Paired, PairsRequest, Progress, rounds_file
from harness.install.origin import COMMAND
from harness.util.texts import many, three_digits
from reports.command_flags import flag

HEADER = ("engine", "costs", "it lies within", "of", "starts", "CPU-s/M of both")
NO_RATIO = "-"


@dataclass(frozen=True)
class Record:
    """Everything that a page or an export of pairs is made of."""

    folder: Folder
    asked: PairsRequest
    environment: Mapping[str, Any]
    found: Paired


def read(folder: Folder) -> Record:
    asked: PairsRequest = folder.part("asked", PairsRequest)
    numbered = list(enumerate(pairing.all_of(asked, folder.load("progress", list[Progress])), 1))
    over = [(number, each) for number, each in numbered if each.is_over(asked.budget_s)]
    pairs = (pairing.measured(each, _rounds(folder, number, each)) for number, each in over)
    missing = tuple(each.pair for _, each in numbered if not each.is_over(asked.budget_s))
    machine: dict[str, Any] = folder.load("environment", dict[str, Any])
    return Record(folder, asked, machine, Paired(asked.labels, tuple(pairs), missing))


def _rounds(folder: Folder, number: int, progress: Progress) -> list[Round]:
    """Read the rounds of the starts that ended."""
    starts = range(1, progress.starts + 1)
    return [each for start in starts for each in kept(folder.path / rounds_file(number, start))]


def rows(found: Paired) -> list[list[str]]:
    return [_row(each) for each in found.pairs]


def _row(each: Measured) -> list[str]:
    if not each.ratio:
        return [each.pair.first, each.outcome.value, NO_RATIO, each.pair.second, NO_RATIO, NO_RATIO]
    span = f"{three_digits(each.ratio.low)} to {three_digits(each.ratio.high)}"
    costs = " and ".join(map(three_digits, each.costs))
    times = f"{three_digits(each.ratio.estimate)} times"
    return [each.pair.first, times, span, each.pair.second, str(len(each.starts)), costs]


def notes(found: Paired) -> Iterator[str]:
    """Yield what a reader has to know beside the ratios."""
    for each in found.pairs:
        if not each.ratio:
            yield each.sentence
        for note in each.notes:
            yield f"{each.pair.first} and {each.pair.second}: {note}"
    for pair in found.missing:
        yield f"{pair.first} and {pair.second}: not measured"
    for three in found.triangles:
        yield three.sentence


def command(record: Record) -> str:
    asked = record.asked
    flags = [word for name, value in asked.flags.items() for word in flag(name, value)]
    budget = f"{asked.budget_s / 60:g}"
    return shlex.join([COMMAND, "compare", *asked.engines, "--pairs", asked.which.value, "--budget", budget, *flags])


def subtitle(record: Record) -> str:
    began = f", {record.folder.begun}" if record.folder.begun else ""
    return f"{many(len(record.found.pairs), 'pair')}, {record.asked.budget_s / 60:g} minutes each{began}"


def as_object(found: Paired, experiment: Path) -> dict[str, Any]:
    return {
        "command": "compare",
        "verdict": found.outcome.value,
        "exit": found.outcome.exit_code,
        "sentence": found.sentence,
        "experiment": str(experiment),
        "pairs": msgspec.to_builtins(found.pairs),
        "triangles": [
            {**msgspec.to_builtins(three), "agrees": three.agrees, "sentence": three.sentence}
            for three in found.triangles
        ],
    }
