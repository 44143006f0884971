"""The Flink job on a standalone cluster: a JobManager and a TaskManager as processes, and this process, which submits.

    python flink_standalone.py CONFIG.json

As a cluster's service manager does, it restarts a TaskManager that died, and Flink restores the job from its newest
checkpoint by itself. If the JobManager dies it ends, and the next start continues from that checkpoint.
"""

from __future__ import annotations

import sys

from pyflink.common import JobClient

from workloads.ad_impressions.jobs.flink_ads import prepare_ads
from workloads.ad_impressions.jobs.flink_cluster import Cluster
from workloads.ad_impressions.jobs.flink_query import start_query
from workloads.jobs.flink_late import is_named
from workloads.jobs.flink_process import (
    FLINK_HOME,
    common_settings,
    prepare_java,
    run,
    told,
)
from workloads.jobs.flink_rest import free_port
from workloads.jobs.progress_log import tell_settings
from workloads.jobs.run_config import Config, read_config


def cluster_settings(config: Config) -> dict[str, str]:
    """Return the settings. A dead TaskManager is detected after two failed heartbeats; a slow one has the usual
    timeout.
    """
    common = common_settings(config)
    (python_jar,) = (FLINK_HOME / "opt").glob("flink-python-*.jar")
    return {
        "execution.target": "remote",
        "jobmanager.rpc.port": str(free_port()),
        "taskmanager.numberOfTaskSlots": common["parallelism.default"],
        "jobmanager.memory.process.size": "1g",
        "taskmanager.memory.process.size": "2g",
        "heartbeat.interval": "1 s",
        "heartbeat.rpc-failure-threshold": "2",
        **common,
        "pipeline.jars": f"{common['pipeline.jars']};{python_jar.as_uri()}",
    }


def main(config_path: str) -> int:
    config: Config = read_config(config_path)
    settings = cluster_settings(config)
    tell_settings(config["progress_path"], told(settings))
    prepare_ads(config)
    prepare_java(config, "")
    cluster = Cluster(settings, FLINK_HOME)

    def begin() -> JobClient:
        cluster.wait_until_ready()
        return start_query(config, settings)

    code = run(config, settings, begin, cluster.keep, names_late=is_named(config))
    cluster.stop()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
