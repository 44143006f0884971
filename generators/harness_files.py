"""The files that the harness and its load process exchange in one folder.

`config.json` says what to send and where Kafka is, `workers.json` on which hosts workers have joined, `ready.json` that
all servers are up and the topic is known, `go.json` the load start and the run's clock. `status.jsonl` gets a line
every half second, and the end writes `sends.parquet` and `done.json`. Every file but the status appears whole, by
renaming.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

WORKERS, READY, GO, STATUS = "workers.json", "ready.json", "go.json", "status.jsonl"
SENDS_FILE, DONE = "sends.parquet", "done.json"


class Go(NamedTuple):
    """The load start, and the clock of the run: the machine's time at zero of its monotonic clock."""

    epoch_ms: int
    zero_ns: int


def write_workers(folder: Path, hosts: Sequence[str]) -> None:
    _write_json(folder / WORKERS, {"hosts": hosts})


def read_workers(folder: Path) -> list[str]:
    """Return the host of each worker that has joined so far."""
    path = folder / WORKERS
    hosts: list[str] = json.loads(path.read_bytes())["hosts"] if path.exists() else []
    return hosts


def write_ready(folder: Path, servers: int, nice: int) -> None:
    _write_json(folder / READY, {"servers": servers, "nice": nice})


def read_go(folder: Path) -> Go | None:
    """Return None until the harness has set the load start."""
    path = folder / GO
    return Go(**json.loads(path.read_text())) if path.exists() else None


def append_status(folder: Path, line: Mapping[str, int]) -> None:
    with (folder / STATUS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def write_end(folder: Path, sends: pa.Table, done: Mapping[str, Any]) -> None:
    """Write the send log, then the last word on the load."""
    _rename_into(folder / SENDS_FILE, lambda part: pq.write_table(sends, part))
    _write_json(folder / DONE, done)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    _rename_into(path, lambda part: part.write_text(json.dumps(value)))


def _rename_into(path: Path, write: Callable[[Path], object]) -> None:
    part = path.with_suffix(".part")
    write(part)
    part.replace(path)
