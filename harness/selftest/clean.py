"""Runs without a planted bug, with random seeds, disorder, sinks, faults, pauses, and units of time: every one must
PASS.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from generators.disorder import PRESETS
from harness.selftest.report import Tried, words_of
from harness.selftest.runs import fake_run

SAY_EVERY = 10
# Faults that the tested sinks claim to survive.
KILLS = ("kill@c1:batch=3", "kill@c2:batch=3", "kill@c3:batch=3", "kill@c4:batch=3", "kill@offset=50%")
PAUSES_MS = (500, 1500, 4000)
PAUSED_AT_MS = (1000, 6500)
SINKS = ("absolute", "fenced")
# The same time can be written in many units.
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000}
DURATIONS_MS = (9000, 12_000)
WARM_UPS_MS = (0, 3500)
WINDOWS_MS = (3000, 4000)
WATERMARK_MS = 10_000


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
    """Yield the flags in the form of `streamgauge run`."""
    for key, value in dials.items():
        if value is True:
            yield f"--{key}"
        elif value is not False:
            yield f"--{key.replace('_', '-')} {shlex.quote(str(value))}"


def drawn(dice: random.Random) -> dict[str, Any]:
    """Draw the keys of a scenario in which clean runs differ."""
    return {
        "seed": dice.randrange(2**32),
        "disorder": dice.choice(sorted(PRESETS)),
        "sink": dice.choice(SINKS),
        "fault": dice.choice(("none", dice.choice(KILLS), _pause(dice))),
        "checksum": dice.choice((True, False)),
        "duration": spelled(dice.choice(DURATIONS_MS), dice),
        "warm_up": spelled(dice.choice(WARM_UPS_MS), dice),
        "window": spelled(dice.choice(WINDOWS_MS), dice),
        "watermark": spelled(WATERMARK_MS, dice),
    }


def _pause(dice: random.Random) -> str:
    """Draw a fault that pauses the whole engine for a while."""
    held, at = (spelled(dice.choice(times_ms), dice) for times_ms in (PAUSES_MS, PAUSED_AT_MS))
    return f"pause(for={held})@t>={at}"


def spelled(time_ms: int, dice: random.Random) -> str:
    """Write a time in a random unit in which it has few digits."""
    texts = [f"{time_ms / unit_ms:g}{unit}" for unit, unit_ms in UNITS_MS.items()]
    return dice.choice([text for text in texts if len(text) <= len(f"{time_ms}ms")])
