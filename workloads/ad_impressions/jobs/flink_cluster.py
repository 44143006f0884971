"""A JobManager and TaskManagers of Flink as children of this process. A TaskManager that died is started again, as a
cluster's service manager does, and as many run as a file says, if there is one.

It imports no Flink, so that it can be tested without.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from workloads.jobs.flink_rest import answer_of
from workloads.jobs.run_config import Config

START_DEADLINE_S = 300.0  # a slow machine: the run has a deadline of its own
STOP_DEADLINE_S = 10.0
FILE = "task-managers.json"  # beside the run config, of a run with --cluster


@dataclass(frozen=True)
class Wanted:
    """The size that the run asks for, and the port that it will ask."""

    workers: int  # TaskManagers
    rest_port: int  # of the JobManager


def wanted(config: Config) -> Wanted | None:
    """Read what the run asks of its cluster at this moment; None if it leaves that to the job."""
    try:
        return Wanted(**json.loads(Path(config["config_path"]).with_name(FILE).read_bytes()))
    except FileNotFoundError:
        return None


class Cluster:
    """The child processes, in the process group of this process: a kill of the group kills them, too."""

    def __init__(self, settings: dict[str, str], home: Path, workers: int = 1) -> None:
        self._settings = settings
        self._options = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        self._home = home
        self._starts = 0
        self._job_manager = self._start("jobmanager.sh")
        self._task_managers = [self._start_worker(number) for number in range(1, workers + 1)]
        self._leaving: list[subprocess.Popen[bytes]] = []

    def wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + START_DEADLINE_S
        while self._free_slots() < len(self._task_managers):
            if self._job_manager.poll() is not None:
                sys.exit(
                    f"The JobManager ended with exit code {self._job_manager.returncode} before it offered a slot. Its "
                    "log above says why."
                )
            if time.monotonic() > deadline_s:
                sys.exit(f"The cluster offered no slots within {START_DEADLINE_S:.0f} s. Its log is above.")
            time.sleep(0.1)

    def keep(self, workers: int = 1) -> bool:
        """Run so many TaskManagers: restart a dead one, start a missing one, and end the last of too many. Return False
        if the JobManager has ended.
        """
        if self._job_manager.poll() is not None:
            print(f"The JobManager has ended with exit code {self._job_manager.returncode}.", file=sys.stderr)
            return False
        self._leaving = [process for process in self._leaving if process.poll() is None]
        while len(self._task_managers) > workers:
            last = self._task_managers.pop()
            last.terminate()
            self._leaving.append(last)
        for number, process in enumerate(self._task_managers, start=1):
            if process.poll() is not None:
                print(f"The TaskManager has ended with exit code {process.returncode}: another one comes.")
                self._task_managers[number - 1] = self._start_worker(number)
        while len(self._task_managers) < workers:
            self._task_managers.append(self._start_worker(len(self._task_managers) + 1))
        return True

    def stop(self) -> None:
        all_of_it = (*self._task_managers, *self._leaving, self._job_manager)
        for process in all_of_it:
            process.terminate()
        for process in all_of_it:
            process.wait(STOP_DEADLINE_S)

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        """The name shows which worker it is, and that it is not the one that died."""
        self._starts += 1
        return self._start("taskmanager.sh", "-D", f"taskmanager.resource-id=worker-{number}-{self._starts}")

    def _start(self, script: str, *options: str) -> subprocess.Popen[bytes]:
        """The script becomes the JVM by exec, so that its process is the watched one."""
        return subprocess.Popen(
            ["bash", str(self._home / "bin" / script), "start-foreground", *self._options, *options]
        )

    def _free_slots(self) -> int:
        try:
            return int(answer_of(self._settings, "overview")["slots-available"])
        except OSError:  # it does not listen yet
            return 0
