"""Runs without a planted bug, of random seeds, disorder, sinks and faults: every one of them has to PASS."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from generators.disorder import PRESETS
from harness.experiments.selftest.report import Tried, words_of
from harness.experiments.selftest.runs import fake_run

SAY_EVERY = 10
# Whatever may befall a sink that claims to be right through it.
FAULTS = ("none", "kill@c1:batch=3", "kill@c2:batch=3", "kill@c3:batch=3", "kill@c4:batch=3", "kill@offset=50%")
SINKS = ("absolute", "fenced")


def tried(folder: Path, runs: int, seed: int, say: Callable[[str], None]) -> list[Tried]:
    found = []
    for number in range(runs):
        if number % SAY_EVERY == 0:
            say(f"clean runs of the fake engine: {number} of {runs}")
        dials = drawn(random.Random(f"selftest {seed} {number}"))
        verdict, _ = fake_run(folder, **dials)
        found.append(Tried("clean", " ".join(_flags(dials)), "PASS", words_of(verdict)))
    return found


def _flags(dials: Mapping[str, Any]) -> Iterator[str]:
    """As `streamgauge run` takes them."""
    for key, value in dials.items():
        if value is True:
            yield f"--{key}"
        elif value is not False:
            yield f"--{key} {value}"


def drawn(dice: random.Random) -> dict[str, Any]:
    """The keys of a scenario in which clean runs differ."""
    return {
        "seed": dice.randrange(2**32),
        "disorder": dice.choice(sorted(PRESETS)),
        "sink": dice.choice(SINKS),
        "fault": dice.choice(FAULTS),
        "checksum": dice.choice((True, False)),
    }
