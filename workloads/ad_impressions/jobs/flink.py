"""The Flink job in one JVM: PyFlink's embedded cluster.

    python flink.py CONFIG.json

SIGTERM ends it cleanly. With the same checkpoint folder it continues where it was.
"""

from __future__ import annotations

import sys

from workloads.ad_impressions.jobs.flink_ads import prepare_ads
from workloads.ad_impressions.jobs.flink_query import start_query
from workloads.jobs.flink_late import is_named
from workloads.jobs.flink_process import run_embedded
from workloads.jobs.run_config import read_config


def main(config_path: str) -> int:
    config = read_config(config_path)
    prepare_ads(config)
    return run_embedded(config, start_query, names_late=is_named(config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
