"""`up` and `down`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from harness.cli.common_flags import Json, answer
from harness.install import jvm
from harness.services import keeper

Attached = Annotated[bool, typer.Option("--attached", help="Start other ones, and stop them when standard input ends.")]


def up(attached: Attached = False, as_json: Json = False) -> None:
    """Start an embedded Kafka and Redis for your own experiments."""
    if attached:
        until = "Both stop when standard input ends: press Ctrl-D."
        keeper.attached(jvm.jars("services"), jvm.java(), partial(_say, as_json, until, started=True))
        return
    services, started = keeper.up(jvm.jars("services"), jvm.java())
    until = f"The logs are in {services.folder}. `streamgauge down` stops both."
    _say(as_json, until, services.kafka, services.redis, started=started)


def _say(as_json: bool, until: str, kafka: str, redis: str, *, started: bool) -> None:
    text = f"{'up' if started else 'already up'}: --kafka {kafka} --redis {redis}\n{until}"
    answer(as_json, {"command": "up", "kafka": kafka, "redis": redis, "started": started}, text)
    sys.stdout.flush()  # one who waits for the addresses reads them from a pipe


def down(as_json: Json = False) -> None:
    """Stop the Kafka and Redis that `up` started."""
    stopped = keeper.down()
    answer(as_json, {"command": "down", "stopped": stopped}, "stopped" if stopped else "nothing was running")
