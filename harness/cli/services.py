"""`up` and `down`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from harness.cli.common_flags import Json, answer
from harness.install import jvm
from harness.services import keeper

Attached = Annotated[bool, typer.Option("--attached", help="Start other ones, and stop them when standard input ends.")]


def up(attached: Attached = False, as_json: Json = False) -> None:
    """Start an embedded Kafka and Redis for your own experiments."""
    if attached:
        keeper.attached(jvm.jars("services"), jvm.java(), lambda kafka, redis: _attached(kafka, redis, as_json=as_json))
        return
    services, started = keeper.up(jvm.jars("services"), jvm.java())
    text = f"{'up' if started else 'already up'}: --kafka {services.kafka} --redis {services.redis}"
    text += f"\nThe logs are in {services.folder}. `streamgauge down` stops both."
    answer(as_json, {"command": "up", "kafka": services.kafka, "redis": services.redis, "started": started}, text)


def _attached(kafka: str, redis: str, *, as_json: bool) -> None:
    text = f"up: --kafka {kafka} --redis {redis}\nBoth stop when standard input ends: press Ctrl-D."
    answer(as_json, {"command": "up", "kafka": kafka, "redis": redis, "started": True}, text)
    sys.stdout.flush()


def down(as_json: Json = False) -> None:
    """Stop the Kafka and Redis that `up` started."""
    stopped = keeper.down()
    answer(as_json, {"command": "down", "stopped": stopped}, "stopped" if stopped else "nothing was running")
