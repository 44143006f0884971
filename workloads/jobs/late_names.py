"""late.jsonl: the names of events that a job dropped as late, beside its file of progress."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from workloads.jobs.run_config import Config

FILE = "late.jsonl"


def late_path(config: Config) -> Path:
    return Path(config["progress_path"]).with_name(FILE)


def add_names(path: Path, names: Sequence[Sequence[int] | Mapping[str, int]]) -> None:
    """Append a line for each event. They have to be on disk before the offsets behind them are."""
    if names:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(name)}\n" for name in names)
