"""Stored runs of this version and of older ones, with the verdict and the figures that `recheck` gives each of them.

Those of schema 2 and 3 were made by the last programs that wrote them. Runs of the fake engine are whole runs; those of
other workloads hold what an engine without a fault would have left, and `wrong-` has one value that is 2 too large.
`python -m tests.quick.rechecked` writes verdicts and figures anew, which is a decision.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harness.judging import verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.measuring import measure, timeline
from harness.rundir.store import Store

KEPT = Path(__file__).with_name("stored")
RUNS = KEPT / "runs.tar.xz"


def unpacked(folder: Path) -> Iterator[Store]:
    with tarfile.open(RUNS) as archive:
        archive.extractall(folder, filter="data")
    yield from (Store.open(path) for path in sorted(folder.iterdir()))


def rechecked(store: Store) -> bytes:
    """verdict.json as the command leaves it, with the figures beside it."""
    run = StoredRun(store)
    verdict = judge(run)
    verdict_file.keep(store, verdict)
    measure.save(run, verdict)
    return (store.path / verdict_file.FILE).read_bytes()


def figures(store: Store) -> dict[str, Any]:
    """Each figure of a run by where it stands. Sentences are left out: their words may change."""
    tables = [name for name in (timeline.FILE, measure.LATENCY) if (store.path / name).exists()]
    return {
        **dict(_leaves("measurement", store.read_json("measurement.json"))),
        **dict(_leaves("recovery", store.read_json(measure.RECOVERY))),
        **{place: value for name in tables for place, value in _sums(name, store.read_table(name))},
    }


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(f"{place}.{name}", part)
    elif not isinstance(value, str) or (value and " " not in value):
        yield place, value


def _sums(name: str, table: pa.Table) -> Iterator[tuple[str, Any]]:
    yield f"{name}.rows", table.num_rows
    for column in table.column_names:
        values = table.column(column)
        yield f"{name}.{column}.unknown", values.null_count
        if not pa.types.is_string(values.type):
            yield f"{name}.{column}.sum", pc.sum(values).as_py()


def verdict_of(name: str) -> Path:
    return KEPT / f"{name}.json"


def figures_of(name: str) -> Path:
    return KEPT / "figures" / f"{name}.json"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for each in unpacked(Path(made)):
            verdict_of(each.path.name).write_bytes(rechecked(each))
            figures_of(each.path.name).write_text(json.dumps(figures(each), indent=1) + "\n")
