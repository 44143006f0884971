"""The CI exports of a repeated run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.experiments.repeat import Repeated
from harness.model import EngineManifest, RunSpec
from reports.exports import experiment, suite
from reports.sections import fairness, reproduce


def save(done: Repeated, spec: RunSpec, manifest: EngineManifest, machine: Mapping[str, Any], folder: Path) -> None:
    """Write the exports, with a case for each round."""
    group = suite.classname((spec.title, spec.engine, spec.sink))
    cases = tuple(
        experiment.ExperimentCase(
            group, f"seed {each.seed}", each.outcome, each.sentence, os.path.relpath(each.run, folder)
        )
        for each in done.rounds
    )
    facts = {"seed": str(spec.tape.seed), "fault": spec.fault.text, **dict(fairness.flat(machine))}
    command = f"{reproduce.recipe_of(spec, manifest).texts()[-1]} --repeat {len(cases)}"
    experiment.save(experiment.Answer("repeat", done.outcome, done.sentence, command, facts, cases), folder)
