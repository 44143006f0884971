"""What the Flink job dropped as late, by places in the topic: Flink writes files of them, and here they become lines.

Flink closes a file when a checkpoint is complete, so that what it takes back after a crash is in none.
"""

from __future__ import annotations

import sys
from pathlib import Path

from workloads.jobs.orders import OWN_OPTION, Config

LATE, NAMED = OWN_OPTION + "late", "named"
FILE, PARTS = "late.jsonl", "late-parts"  # beside the progress
CLOSED = "part-*"  # while Flink still writes one, its name begins with a dot


def is_named(config: Config) -> bool:
    asked = config["options"].get(LATE, "")
    if asked not in ("", NAMED):
        sys.exit(f"{LATE} is {asked!r}; the only value is {NAMED!r}.")
    return bool(asked)


def parts_folder(config: Config) -> Path:
    return Path(config["progress_path"]).with_name(PARTS)


class LateLog:
    """The lines grow with each look. A crash between two steps names some events twice, which says no more."""

    def __init__(self, config: Config) -> None:
        self._parts = parts_folder(config)
        self._path = Path(config["progress_path"]).with_name(FILE)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n")  # it is there when nothing is late, and a torn line costs only itself

    def take(self) -> None:
        for part in sorted(self._parts.rglob(CLOSED)):
            places = part.read_text(encoding="utf-8").split()
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(f"[{place}]\n" for place in places))
            part.unlink()
