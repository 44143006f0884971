"""The TaskManagers of a Flink cluster, which the job starts and ends: as many as a file of ours says.

The file also names the port of Flink's REST interface, which reports how many TaskManagers have registered, and with
which parallelism the job runs. The adaptive scheduler rescales the job by itself when one joins or leaves.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.engines.base import ClusterState, Member
from harness.engines.config import write_privately
from harness.services.addresses import LOOPBACK, free_ports
from harness.util.texts import many

FILE = "task-managers.json"  # beside the run config; workloads/ad_impressions/jobs/flink_cluster.py reads it
RESOURCE_ID = "taskmanager.resource-id=worker-"  # on the command line of a TaskManager, with its number and its start
ANSWER_S = 5.0
RUNNING = "RUNNING"


class TaskManagers:
    """See `harness.engines.base.Workers`. `folder` is that of the run config; `members` returns the engine's
    processes.
    """

    head = "JobManager"

    def __init__(self, size: int, folder: Path, members: Callable[[], tuple[Member, ...]]) -> None:
        self.size = size
        self._folder, self._members = folder, members
        self._port = 0

    def prepare(self) -> None:
        """Write the file for a start: another process may have the port of the last one by now."""
        (self._port,) = free_ports(1)
        self._write()

    def seen(self) -> ClusterState | None:
        """Ask the JobManager; None if it does not answer. While it rescales a job, that has the parallelism that was
        asked for, and does not run.
        """
        try:
            overview = self._answer("overview")
            jobs = [self._answer(f"jobs/{each['jid']}") for each in self._answer("jobs/overview")["jobs"]]
            running = [each for each in jobs if each["state"] == RUNNING]
            widths = [vertex["parallelism"] for job in running for vertex in job["vertices"]]
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return None
        return ClusterState(True, overview["taskmanagers"], len(running), max(widths, default=0))

    def worker_pids(self, number: int) -> tuple[int, ...]:
        """Return the JVM of a TaskManager, and the processes below it."""
        members = self._members()
        found = {each.pid for each in members if any(f"{RESOURCE_ID}{number}-" in word for word in each.command)}
        while below := {each.pid for each in members if each.parent in found} - found:
            found |= below
        return tuple(sorted(found))

    def add_worker(self) -> int:
        self.size += 1
        self._write()
        return self.size

    def remove_worker(self) -> str:
        number, pids = self.size, self.worker_pids(self.size)
        self.size -= 1
        self._write()
        return (
            f"the job was asked to run {many(self.size, 'TaskManager')}, so that it ends worker {number} in order "
            f"(processes {', '.join(map(str, pids)) or 'none'})"
        )

    def _write(self) -> None:
        text = json.dumps({"workers": self.size, "rest_port": self._port})
        write_privately(self._folder / FILE, text)

    def _answer(self, path: str) -> Any:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=ANSWER_S)
        try:
            connection.request("GET", f"/{path}")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()
