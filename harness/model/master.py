"""The Spark master of a run: one JVM, processes of its own on this machine, or a cluster elsewhere."""

from __future__ import annotations

import re

REMOTE_MASTERS = ("spark://", "yarn", "k8s://")
# In Spark's syntax: slots, and how often a task may fail.
LOCAL_MASTER = re.compile(
    r"local|local\[([1-9]\d*|\*)(,\s*[1-9]\d*)?\]|local-cluster\[(\s*[1-9]\d*\s*,){2}\s*[1-9]\d*\s*\]"
)


MOST_WORKERS = 16
OWN_CLUSTER = re.compile(r"cluster\[([1-9]\d*)\]")  # of this run: so many workers


def workers_of_master(master: str) -> int:
    """Return how many workers the run starts for itself, beside a master; 0 for any other master."""
    found = OWN_CLUSTER.fullmatch(master)
    return int(found[1]) if found else 0


def is_remote_master(master: str) -> bool:
    """Return whether the executors are no processes of the run: they belong to a cluster that it did not start."""
    return master.startswith(REMOTE_MASTERS)


def servers_of_master(master: str) -> tuple[str, ...]:
    """Return the servers of a standalone master, as HOST:PORT; none for other masters."""
    scheme, _, servers = master.partition("://")
    return tuple(servers.split(",")) if scheme == "spark" else ()
