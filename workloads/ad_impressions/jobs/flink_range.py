"""The part of the topic that a batch of Flink reads, and the events that count from the files.

It imports no Flink, so that it can be tested without.
"""

from __future__ import annotations

from workloads.jobs import history_files
from workloads.jobs.batches import Offsets
from workloads.jobs.run_config import Config

ALL = "TRUE"


def range_options(config: Config, ends: Offsets) -> dict[str, str]:
    """Return the options of the source: from the end of the files, if there are any, to below these offsets."""
    bounds = {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": as_option(ends)}
    if not config["history"]:
        return bounds
    begins = as_option(history_files.starting_offsets(config))
    return {**bounds, "scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": begins}


def as_option(offsets: Offsets) -> str:
    return ";".join(f"partition:{partition},offset:{offset}" for partition, offset in offsets.items())


def conditions(config: Config) -> tuple[str, str]:
    """Return the conditions for events in files and in the topic. For a seam by time both hold the events around the
    seam, and each event counts from one of them.
    """
    until_ms = config["history"]["until_ms"]
    return (ALL, ALL) if until_ms is None else (f"event_time_ms < {until_ms}", f"event_time_ms >= {until_ms}")
