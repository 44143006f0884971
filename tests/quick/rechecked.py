"""Stored runs of this version and of older ones, and the verdict that `recheck` comes to on each.

Those of schema 2 and 3 were made by the last programs that wrote them. Runs of the fake engine are whole runs; those of
other workloads hold what an engine without a fault would have left, and `wrong-` has one value that is 2 too large.
`python -m tests.quick.rechecked` writes the verdicts anew, which is a decision.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.judging import verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.rundir.store import Store

KEPT = Path(__file__).with_name("stored")
RUNS = KEPT / "runs.tar.xz"


def unpacked(folder: Path) -> Iterator[Store]:
    with tarfile.open(RUNS) as archive:
        archive.extractall(folder, filter="data")
    yield from (Store.open(path) for path in sorted(folder.iterdir()))


def rechecked(store: Store) -> bytes:
    """verdict.json as the command leaves it."""
    verdict_file.keep(store, judge(StoredRun(store)))
    return (store.path / verdict_file.FILE).read_bytes()


def verdict_of(name: str) -> Path:
    return KEPT / f"{name}.json"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for each in unpacked(Path(made)):
            verdict_of(each.path.name).write_bytes(rechecked(each))
