"""Duration and size of each of a Flink job's checkpoints, and its restarts by Flink itself, from its REST interface.

It imports no Flink, so that it can be tested without.
"""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workloads.jobs.run_config import Config

LOOPBACK = "127.0.0.1"
FILE = "checkpoints.jsonl"  # in the folder of the progress file
ASK_EVERY_S = 1.0  # Flink keeps the last ten
REPLY_TIMEOUT_S = 5.0
UNDER_WAY = "IN_PROGRESS"
# The interface is on this machine, where a proxy from the environment could not reach it.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])


def answer_of(settings: Mapping[str, str], path: str) -> Any:
    """Return the answer to a request. Raises OSError if Flink does not listen, or not yet."""
    place = f"http://{settings['rest.address']}:{settings['rest.port']}"
    with DIRECT.open(f"{place}/{path}", timeout=REPLY_TIMEOUT_S) as answer:
        return json.load(answer)


class CheckpointLog:
    """Writes a line for each checkpoint that has ended, including failed ones, but not for savepoints."""

    def __init__(self, config: Config, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._path = Path(config["progress_path"]).with_name(FILE)
        self._told: set[int] = set()
        self._due_s = 0.0
        self._add(["\n"])  # a torn line of the last start costs only itself

    def take(self, job: str) -> None:
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + ASK_EVERY_S
        try:
            known = answer_of(self._settings, f"jobs/{job}/checkpoints")["history"]
        except OSError:  # the next call asks again
            return
        over = [each for each in known if each["status"] != UNDER_WAY and each["id"] not in self._told]
        self._told.update(each["id"] for each in over)
        self._add([*lines(over)])

    def _add(self, lines: Sequence[str]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))


class RestartLog:
    """Prints a line for each time that Flink has restarted the job by itself: after a failure, or to rescale it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._due_s = 0.0
        self._runs_since, self._parallelism = 0, 0

    def take(self, job: str) -> None:
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + ASK_EVERY_S
        with suppress(OSError):  # the next call asks again
            self._compare(job, answer_of(self._settings, f"jobs/{job}"))

    def _compare(self, job: str, seen: Mapping[str, Any]) -> None:
        since, widths = int(seen["timestamps"]["RUNNING"]), [each["parallelism"] for each in seen["vertices"]]
        if seen["state"] != "RUNNING" or since == self._runs_since or not widths:
            return
        if self._runs_since:
            known = answer_of(self._settings, f"jobs/{job}/exceptions")["exceptionHistory"]["entries"]
            why = reason([each for each in known if each["timestamp"] >= self._runs_since])
            print(
                f"Flink restarted the job by itself: parallelism {max(widths)}, before {self._parallelism}; {why}",
                flush=True,
            )
        self._runs_since, self._parallelism = since, max(widths)


def reason(failures: Sequence[Mapping[str, Any]]) -> str:
    """Return the first line of the newest failure."""
    if not failures:
        return "no task had failed"
    newest = max(failures, key=lambda each: int(each["timestamp"]))
    return str(newest["stacktrace"]).partition("\n")[0] or str(newest["exceptionName"])


def lines(over: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in sorted(over, key=lambda each: int(each["id"])):
        if not each["is_savepoint"]:
            yield json.dumps(told(each)) + "\n"


def told(checkpoint: Mapping[str, Any]) -> dict[str, int | bool]:
    """Convert a checkpoint to a line. The duration ends when the last task has acknowledged. `in_flight_bytes` were
    between two tasks: an unaligned checkpoint stores them, and an aligned one waits for them. An incremental checkpoint
    writes less than its size.
    """
    return {
        "at": checkpoint["trigger_timestamp"],
        "took_ms": checkpoint["end_to_end_duration"],
        "bytes": checkpoint["state_size"],
        "in_flight_bytes": checkpoint["persisted_data"],
        "written_bytes": checkpoint["checkpointed_size"],
        "failed": checkpoint["status"] != "COMPLETED",
    }
