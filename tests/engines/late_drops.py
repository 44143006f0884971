"""How many events an engine left out, counted by hand from the files of a run: nothing of the judge's is used."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from workloads.ad_impressions.records import VIEW_EVENT


def left_out(run: str) -> int:
    """Views in the Kafka log, less all that the results hold."""
    log = pq.read_table(Path(run) / "log.parquet", columns=["kind"])
    views = pc.sum(pc.equal(log.column("kind"), VIEW_EVENT)).as_py()
    rows = pq.read_table(Path(run) / "observed.parquet").to_pylist()
    counts = (row["value"] for row in rows if row["kind"] == "hash" and not row["key"].startswith("updated:"))
    return int(views) - sum(map(int, counts))


def told_by_the_engine(run: str) -> int:
    """The last line of its progress; of an engine that was started once."""
    return int(json.loads((Path(run) / "progress.jsonl").read_text().splitlines()[-1])["dropped"])
