"""The Flink job as a batch in one JVM: it counts the topic from its beginning up to now, again whenever it has grown.

    python flink_batch.py CONFIG.json

Nothing is kept between two batches; see workloads/jobs/batches.py.
"""

from __future__ import annotations

import sys

from pyflink.table import EnvironmentSettings

from workloads.ad_impressions.jobs.flink_ads import prepare_ads
from workloads.ad_impressions.jobs.flink_batch_query import FlinkTopicEnd, count
from workloads.ad_impressions.jobs.flink_query import make_environment
from workloads.ad_impressions.jobs.spark_record import FIELDS
from workloads.jobs import batches, history_files
from workloads.jobs.flink_process import HEAP, batch_settings, prepare_java, told
from workloads.jobs.progress_log import tell_settings
from workloads.jobs.run_config import read_config


def main(config_path: str) -> None:
    to_end = batches.until_told()
    config = read_config(config_path)
    settings = {"rest.port": "0", **batch_settings(config)}
    tell_settings(config["progress_path"], told(settings))
    if config["history"]:
        history_files.refuse(config, FIELDS)
    prepare_ads(config)
    prepare_java(config, HEAP)
    tables = make_environment(EnvironmentSettings.new_instance().in_batch_mode(), settings)
    ends_now = FlinkTopicEnd(config).ends
    batches.run(to_end, ends_now, lambda ends, batch: count(tables, config, ends, batch), config["progress_path"])


if __name__ == "__main__":
    main(sys.argv[1])
