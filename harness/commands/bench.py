"""`streamgauge bench`."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
import typer

from harness import console
from harness.commands.shared import Json
from harness.experiments.benching import bench as benches
from harness.experiments.benching import tuning
from harness.experiments.curve import proof
from harness.install import environment
from harness.model import UsageError
from harness.services import children


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the sizes.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="The Spark job's stages, each done in several ways.")] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Whether a search finds what is there, on queues whose truth is known.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the limits of the harness itself, each beside something comparable."""
    if search and spark:
        raise UsageError("--spark and --search measure different things. Give one of them.")
    with children.guard():
        if search:
            proved = []
            for each in proof.prove_all(proof.QUICK if quick else proof.SEARCHES, console.say):
                proved.append(each)
                # A class takes minutes, and what is known of it is worth something.
                console.say(f"  {proof.said(each)}")
            found, told = proof.as_objects(proved), list(proof.lines(proved))
        elif spark:
            tuned = list(tuning.tuning(quick=quick, say=console.say))
            found, told = msgspec.to_builtins(tuned), list(tuning.lines(tuned))
        else:
            benched = benches.bench(quick=quick, say=console.say)
            found, told = msgspec.to_builtins(benched), list(benches.lines(benched))
    if as_json:
        print(json.dumps({"command": "bench", "environment": environment.describe(), "bench": found}))
    else:
        print("\n".join(told))
