"""The Flink job on a standalone cluster: a JobManager and a TaskManager, each a process, and this one that submits.

    python flink_standalone.py CONFIG.json

It does what a cluster's service manager does: a TaskManager that died is started again, and Flink by itself restores
the job from its newest checkpoint. When the JobManager died it ends, and the next start goes on from that checkpoint.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from pyflink.common import JobClient

from workloads.ad_impressions.jobs.flink_process import (
    FLINK_HOME,
    LOOPBACK,
    Config,
    common_settings,
    prepare_java,
    run,
    told,
)
from workloads.ad_impressions.jobs.flink_query import start_query
from workloads.ad_impressions.jobs.progress_log import tell_settings

START_DEADLINE_S = 90.0
STOP_DEADLINE_S = 10.0


def cluster_settings(config: Config) -> dict[str, str]:
    """A TaskManager that is gone is missed after two heartbeats; one that only is slow has the usual time."""
    common = common_settings(config)
    (python_jar,) = (FLINK_HOME / "opt").glob("flink-python-*.jar")
    return {
        "execution.target": "remote",
        "jobmanager.rpc.port": str(free_port()),
        "rest.port": str(free_port()),
        "taskmanager.numberOfTaskSlots": common["parallelism.default"],
        "jobmanager.memory.process.size": "1g",
        "taskmanager.memory.process.size": "2g",
        "heartbeat.interval": "1 s",
        "heartbeat.rpc-failure-threshold": "2",
        **common,
        "pipeline.jars": f"{common['pipeline.jars']};{python_jar.as_uri()}",
    }


class Cluster:
    """Children of this process, in its own process group: whoever kills that kills them too."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._rest = f"http://{settings['rest.address']}:{settings['rest.port']}/overview"
        self._options = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        self._job_manager = self._start("jobmanager.sh")
        self._task_manager = self._start("taskmanager.sh")

    def wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + START_DEADLINE_S
        while self._free_slots() == 0:
            if self._job_manager.poll() is not None or time.monotonic() > deadline_s:
                sys.exit(f"The cluster offered no slots within {START_DEADLINE_S:.0f} s. Its log is above.")
            time.sleep(0.1)

    def keep(self) -> bool:
        """Whether there still is a cluster."""
        if self._job_manager.poll() is not None:
            print(f"The JobManager has ended with exit code {self._job_manager.returncode}.", file=sys.stderr)
            return False
        if self._task_manager.poll() is not None:
            print(f"The TaskManager has ended with exit code {self._task_manager.returncode}: another one comes.")
            self._task_manager = self._start("taskmanager.sh")
        return True

    def stop(self) -> None:
        for process in (self._task_manager, self._job_manager):
            process.terminate()
        for process in (self._task_manager, self._job_manager):
            process.wait(STOP_DEADLINE_S)

    def _start(self, script: str) -> subprocess.Popen[bytes]:
        """The script becomes the JVM, so that its process is what is watched."""
        return subprocess.Popen(["bash", str(FLINK_HOME / "bin" / script), "start-foreground", *self._options])

    def _free_slots(self) -> int:
        try:
            with urllib.request.urlopen(self._rest, timeout=5) as answer:
                return int(json.load(answer)["slots-available"])
        except OSError:  # it does not listen yet
            return 0


def free_port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])


def main(config_path: str) -> int:
    config: Config = json.loads(Path(config_path).read_bytes())
    settings = cluster_settings(config)
    tell_settings(config["progress_path"], told(settings))
    prepare_java(config, "")
    cluster = Cluster(settings)

    def begin() -> JobClient:
        cluster.wait_until_ready()
        return start_query(config, settings)

    code = run(config, begin, cluster.keep)
    cluster.stop()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
