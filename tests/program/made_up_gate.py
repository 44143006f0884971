"""The program itself, run by a test in a process of its own, but for the minutes of a gate: its rounds are made up, as
the variable ROUNDS says."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import __main__
from harness.config import plan
from harness.drivers import gate
from harness.drivers.gate import GateRequest
from harness.experiments.folder import Folder
from harness.experiments.gating.candidates import look_up
from harness.experiments.gating.gate import Gated, Judged
from harness.experiments.gating.rounds import Round
from harness.model import HarnessError, Outcome
from reports import gated
from tests.program import pages
from tests.quick.experiments.test_gate import measured

WRONG = Judged(Outcome.FAIL, "lost: 251 events are missing from 8 cells", "runs/head")
MADE: dict[str, tuple[list[Round], dict[str, Any]]] = {
    "level": (measured(), {}),
    "slower": (measured(head=0.2), {}),
    "noisy": (measured(starts=4, apart=0.06), {}),
    "wrong": (measured(), {"head": WRONG}),
}


def drive(asked: GateRequest, out: Path) -> tuple[Gated, Path]:
    for text in (asked.base, asked.head):
        look_up(text, asked.engine, plan.workload_of(asked.flags))
    if os.environ["ROUNDS"] == "broken":
        raise HarnessError("The broker ended.\nThe end of its log: 100%")
    made, sides = MADE[os.environ["ROUNDS"]]
    place = pages.gate(Folder.create(out.absolute(), "gate").path, made, asked=asdict(asked), **sides)
    gate.save_exports(place)
    return gated.read(place).found, place.path


gate.drive = drive
if os.environ["ROUNDS"] != "level":
    gate.draw = lambda experiment: None  # it takes longer than all else here
__main__.main()
