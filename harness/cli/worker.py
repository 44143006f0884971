"""`streamgauge worker`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common_flags import Json, answer
from harness.drivers import load_worker
from harness.services.addresses import split


def worker(
    *,
    master: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The address that the run was given as --bind.", show_default=False)
    ],
    kafka_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Properties file with the security settings of the run's Kafka, as for `run`. They are not sent here.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send a part of the load of a run on another host: start the run there with --workers and --bind."""
    try:
        split(master)
    except ValueError as mistake:
        raise typer.BadParameter(f"{mistake}", param_hint="--master") from None
    sent = load_worker.work(master, kafka_config)
    answer(as_json, {"command": "worker", "master": master, "sent": sent}, f"{sent:,} records were sent for {master}")
