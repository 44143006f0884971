"""The Flink job in one JVM: PyFlink's embedded cluster.

    python flink.py CONFIG.json

SIGTERM ends it cleanly. With the same checkpoint folder it continues where it was.
"""

from __future__ import annotations

import sys

from workloads.ad_impressions.jobs.flink_ads import prepare_ads
from workloads.ad_impressions.jobs.flink_query import start_query
from workloads.jobs.flink_process import HEAP, common_settings, prepare_java, run, told
from workloads.jobs.progress_log import tell_settings
from workloads.jobs.run_config import read_config


def main(config_path: str) -> int:
    config = read_config(config_path)
    common = common_settings(config)
    settings = {"rest.bind-port": common["rest.port"], **common}
    tell_settings(config["progress_path"], told(settings))
    prepare_ads(config)
    prepare_java(config, HEAP)
    return run(config, settings, lambda: start_query(config, settings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
