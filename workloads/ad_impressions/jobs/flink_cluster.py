"""A JobManager and a TaskManager of Flink as children of this process. A TaskManager that died is started again, as a
cluster's service manager does.

It imports no Flink, so that it can be tested without.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from workloads.jobs.flink_rest import answer_of

START_DEADLINE_S = 90.0
STOP_DEADLINE_S = 10.0


class Cluster:
    """The child processes, in the process group of this process: a kill of the group kills them, too."""

    def __init__(self, settings: dict[str, str], home: Path) -> None:
        self._settings = settings
        self._options = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        self._home = home
        self._job_manager = self._start("jobmanager.sh")
        self._task_manager = self._start("taskmanager.sh")

    def wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + START_DEADLINE_S
        while self._free_slots() == 0:
            if self._job_manager.poll() is not None:
                sys.exit(
                    f"The JobManager ended with exit code {self._job_manager.returncode} before it offered a slot. Its "
                    "log above says why."
                )
            if time.monotonic() > deadline_s:
                sys.exit(f"The cluster offered no slots within {START_DEADLINE_S:.0f} s. Its log is above.")
            time.sleep(0.1)

    def keep(self) -> bool:
        """Restart a dead TaskManager. Return False if the JobManager has ended."""
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
        """The script becomes the JVM by exec, so that its process is the watched one."""
        return subprocess.Popen(["bash", str(self._home / "bin" / script), "start-foreground", *self._options])

    def _free_slots(self) -> int:
        try:
            return int(answer_of(self._settings, "overview")["slots-available"])
        except OSError:  # it does not listen yet
            return 0
