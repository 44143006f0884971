"""Events that the Flink job dropped as late, by partition and offset: Flink writes files of them, which become lines
here.

Flink closes a file when a checkpoint is complete, thus events that are rolled back after a crash are in no file.
"""

from __future__ import annotations

import sys
from pathlib import Path

from workloads.jobs.late_names import late_path
from workloads.jobs.run_config import OWN_OPTION, Config

LATE, NAMED = OWN_OPTION + "late", "named"
PARTS = "late-parts"  # in the folder of the progress file
CLOSED = "part-*"  # the name of an open file begins with a dot


def is_named(config: Config) -> bool:
    asked = config["options"].get(LATE, "")
    if asked not in ("", NAMED):
        sys.exit(f"{LATE} is {asked!r}; the only value is {NAMED!r}.")
    return bool(asked)


def parts_folder(config: Config) -> Path:
    return Path(config["progress_path"]).with_name(PARTS)


def late_table(config: Config) -> str:
    """Return the statement for the table that Flink writes late events to."""
    options = f"'connector' = 'filesystem', 'path' = '{parts_folder(config).as_uri()}', 'format' = 'csv'"
    return f"CREATE TEMPORARY TABLE late (source_partition INT, source_offset BIGINT) WITH ({options})"


class LateLog:
    """Appends the late events of all closed files. A crash between two steps repeats some lines, which does not change
    their meaning.
    """

    def __init__(self, config: Config) -> None:
        self._parts = parts_folder(config)
        self._path = late_path(config)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n")  # the file exists even if nothing is late, and a torn line costs only itself

    def take(self) -> None:
        for part in sorted(self._parts.rglob(CLOSED)):
            places = part.read_text(encoding="utf-8").split()
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(f"[{place}]\n" for place in places))
            part.unlink()
