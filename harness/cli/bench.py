"""`streamgauge bench`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from harness.cli.common_flags import Json, answer
from harness.install import environment, origin
from harness.model import UsageError
from harness.services import children
from harness.terminal import console


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Use a tenth of the usual sizes.")] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Test `search` on simulated queues whose true limit is known.")
    ] = False,
    locality: Annotated[
        bool,
        typer.Option(
            "--locality", help="Measure what a hop costs: function call, queue, sockets, Kafka, Flink, Spark."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the limits of the harness itself, each next to a comparable program."""
    if not origin.IS_CHECKOUT:
        raise UsageError("An installed wheel does not contain `bench`. Run it from a checkout of the project.")
    if search and locality:
        raise UsageError("--search and --locality measure different things. Give one of them.")
    from tools.bench import bench as benches
    from tools.locality import locality as hops
    from tools.locality import ways
    from tools.search_proof import proof

    with children.guard():
        if search:
            proved = []
            for each in proof.prove_all(proof.QUICK if quick else proof.SEARCHES, console.note):
                proved.append(each)
                # A class takes minutes: show its result now.
                console.note(f"  {proof.said(each)}")
            found, told = proof.as_objects(proved), list(proof.lines(proved))
        elif locality:
            measured = hops.measure(quick=quick, say=console.note)
            found, told = msgspec.to_builtins(measured), list(ways.lines(measured))
        else:
            benched = benches.bench(quick=quick, say=console.note)
            found, told = msgspec.to_builtins(benched), list(benches.lines(benched))
    answer(as_json, {"command": "bench", "environment": environment.describe(), "bench": found}, "\n".join(told))
