"""The run config of a job. An engine that starts beside its services gets their addresses later."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

Config = dict[str, Any]

OWN_OPTION = "streamgauge."  # an option of the job, which is not passed to the engine
POLL_EVERY_S = 0.02
PATIENCE_S = 300.0
OF_SERVICES = ("kafka", "redis", "redis_prefix", "sql")  # keys that the run config may get later


def read_config(path: str) -> Config:
    return {**json.loads(Path(path).read_bytes()), "config_path": path}


def engine_options(config: Config) -> dict[str, str]:
    """Return the options of `--conf` for the engine."""
    return {key: value for key, value in config["options"].items() if not key.startswith(OWN_OPTION)}


def await_services(config: Config) -> None:
    """Wait until the run config has the addresses of Kafka and Redis, which are up by then."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not config["kafka"]["bootstrap"]:
        if time.monotonic() > deadline_s:
            sys.exit(f"After {PATIENCE_S:.0f} s {config['config_path']} still has no address of Kafka.")
        time.sleep(POLL_EVERY_S)
        config |= {key: value for key, value in read_config(config["config_path"]).items() if key in OF_SERVICES}
