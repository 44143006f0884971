"""Which part of the topic a batch of Flink reads, and what of the files beside it.

Imports no Flink, so that it is tried without.
"""

from __future__ import annotations

from workloads.jobs import history_files
from workloads.jobs.batches import Offsets
from workloads.jobs.orders import Config

ALL = "TRUE"


def range_options(config: Config, ends: Offsets) -> dict[str, str]:
    """Of the source: from where the files end, if there are some, to below these offsets."""
    bounds = {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": as_option(ends)}
    if not config["history"]:
        return bounds
    begins = as_option(history_files.starting_offsets(config))
    return {**bounds, "scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": begins}


def as_option(offsets: Offsets) -> str:
    return ";".join(f"partition:{partition},offset:{offset}" for partition, offset in offsets.items())


def conditions(config: Config) -> tuple[str, str]:
    """Of events in files, and in the topic. By time both have what lies around the seam, and each counts from one."""
    until_ms = config["history"]["until_ms"]
    return (ALL, ALL) if until_ms is None else (f"event_time_ms < {until_ms}", f"event_time_ms >= {until_ms}")
