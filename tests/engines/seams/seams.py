"""A Spark job with a mistake where files end and Kafka begins.

python seams.py CONFIG.json [JOB]
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from workloads.jobs import history_files
from workloads.jobs.run_config import read_config

TORN = 1  # partition
UNSEEN = ("torn-unseen", "packed-unseen", "stale")


def offsets_by(shift):
    """It begins so many records behind the files."""
    right = history_files.starting_offsets

    def shifted(config):
        return {partition: offset + shift for partition, offset in right(config).items()}

    return shifted


def earliest(config):
    """It begins where Kafka does, and files and Kafka have the same for a while."""
    return {str(partition): offset for partition, offset in enumerate(config["history"]["begins"])}


def tear(config, ending):
    """The middle of a file is its end. A restart finds it torn."""
    files = sorted(Path(config["history"]["folder"]).rglob(f"{TORN}-*{ending}"))
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[: len(whole) // 2])


def forget_the_last_batch(config):
    """Of each partition the last file is gone."""
    ends = config["history"]["ends"]
    for path in history_files.files_of(Path(config["history"]["folder"])):
        stretch = history_files.stretch_of(path.name)
        if stretch and stretch.end == ends[stretch.partition]:
            path.unlink()


def main(path: str, job: str = "spark") -> int:
    config = read_config(path)
    bug = config["options"]["streamgauge.bug"]
    if bug in ("torn", "torn-unseen", "packed-unseen"):
        tear(config, ".gz" if bug == "packed-unseen" else ".json")
    if bug == "stale":
        forget_the_last_batch(config)
    if bug in UNSEEN:  # it counts what it finds
        history_files.refuse = lambda *_: None
    begins = {"early": offsets_by(-1), "late": offsets_by(1), "earliest": earliest}
    history_files.starting_offsets = begins.get(bug, history_files.starting_offsets)
    code: int = importlib.import_module(f"workloads.ad_impressions.jobs.{job}").main(path)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
