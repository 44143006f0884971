"""The Flink job on a standalone cluster: a JobManager and a TaskManager as processes, and this process, which submits.

    python flink_standalone.py CONFIG.json

As a cluster's service manager does, it restarts a TaskManager that died, and Flink restores the job from its newest
checkpoint by itself. If the JobManager dies it ends, and the next start continues from that checkpoint.

A run with --cluster N has N TaskManagers with one slot each, and more or fewer when it asks for that. The job asks for
a task for each partition, and Flink's adaptive scheduler runs it with as many as there are slots.
"""

from __future__ import annotations

import sys

from pyflink.common import JobClient

from workloads.ad_impressions.jobs.flink_ads import prepare_ads
from workloads.ad_impressions.jobs.flink_cluster import Cluster, Wanted, wanted
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
from workloads.jobs.run_config import Config, engine_options, read_config

# Flink's own defaults wait for up to minutes before they rescale, which is as long as a whole run.
ADAPTIVE = {
    "jobmanager.scheduler": "adaptive",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "1 s",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "1 s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1 s",
    "taskmanager.numberOfTaskSlots": "1",
}


def cluster_settings(config: Config, asked: Wanted | None) -> dict[str, str]:
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
        **(adaptive_settings(config, asked) if asked else {}),
        "pipeline.jars": f"{common['pipeline.jars']};{python_jar.as_uri()}",
    }


def adaptive_settings(config: Config, asked: Wanted) -> dict[str, str]:
    """Return the settings of a cluster that may grow and shrink. Those of `--conf` take precedence."""
    own = {**ADAPTIVE, "parallelism.default": str(config["partitions"]), "rest.port": str(asked.rest_port)}
    return {**own, **engine_options(config)}


def main(config_path: str) -> int:
    config: Config = read_config(config_path)
    asked = wanted(config)
    settings = cluster_settings(config, asked)
    tell_settings(config["progress_path"], told(settings))
    prepare_ads(config)
    prepare_java(config, "")
    cluster = Cluster(settings, FLINK_HOME, asked.workers if asked else 1)

    def begin() -> JobClient:
        cluster.wait_until_ready()
        return start_query(config, settings)

    def keep() -> bool:
        now = wanted(config)
        return cluster.keep(now.workers if now else 1)

    code = run(config, settings, begin, keep, names_late=is_named(config))
    cluster.stop()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
