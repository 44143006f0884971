"""`up` and `down`."""

from __future__ import annotations

from harness.cli.common_flags import Json, answer
from harness.install import jvm
from harness.services import keeper


def up(as_json: Json = False) -> None:
    """Start an embedded Kafka and Redis for your own experiments."""
    services, started = keeper.up(jvm.jars("services"), jvm.java())
    text = f"{'up' if started else 'already up'}: --kafka {services.kafka} --redis {services.redis}"
    text += f"\nThe logs are in {services.folder}. `streamgauge down` stops both."
    answer(as_json, {"command": "up", "kafka": services.kafka, "redis": services.redis, "started": started}, text)


def down(as_json: Json = False) -> None:
    """Stop the Kafka and Redis that `up` started."""
    stopped = keeper.down()
    answer(as_json, {"command": "down", "stopped": stopped}, "stopped" if stopped else "nothing was running")
