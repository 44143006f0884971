"""`up` and `down`."""

from __future__ import annotations

from harness.cli.common_flags import Json, answer
from harness.install import jvm
from harness.services import keeper


def up(as_json: Json = False) -> None:
    """Start an embedded Kafka and Redis for your own experiments."""
    services, started = keeper.up(jvm.jars("services"), jvm.java())
    if as_json:
        answer({"command": "up", "kafka": services.kafka, "redis": services.redis, "started": started})
    else:
        print(f"{'up' if started else 'already up'}: --kafka {services.kafka} --redis {services.redis}")
        print(f"The logs are in {services.folder}. `streamgauge down` stops both.")


def down(as_json: Json = False) -> None:
    """Stop the Kafka and Redis that `up` started."""
    stopped = keeper.down()
    if as_json:
        answer({"command": "down", "stopped": stopped})
    else:
        print("stopped" if stopped else "nothing was running")
