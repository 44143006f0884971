"""How many events an engine left out, counted by hand from the files of a run: nothing of the judge's is used."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.engines.trial import WINDOW_MS
from workloads.ad_impressions.records import VIEW_EVENT

# How far apart partitions are read after a fault, and whether that makes more of them late, is luck.
NO_GRACE = Path(__file__).with_name("no_grace.toml")


def left_out(run: str) -> int:
    """Views in the Kafka log, less all that the results hold."""
    log = pq.read_table(Path(run) / "log.parquet", columns=["kind"])
    views = pc.sum(pc.equal(log.column("kind"), VIEW_EVENT)).as_py()
    rows = pq.read_table(Path(run) / "observed.parquet").to_pylist()
    counts = (row["value"] for row in rows if row["kind"] == "hash" and not row["key"].startswith("updated:"))
    return int(views) - sum(map(int, counts))


def late_in_any_order(run: str) -> int:
    """Views behind a view of their campaign and partition that is newer than their window.

    Views go by campaign into the topic between two halves, and each partition in its order. So without grace these are
    late, however the partitions are read.
    """
    newest_ms: dict[tuple[int, int], int] = {}
    late = 0
    log = pq.read_table(Path(run) / "log.parquet", columns=["partition", "campaign", "event_time_ms", "kind"])
    for view in log.filter(pc.equal(log.column("kind"), VIEW_EVENT)).to_pylist():
        place, time_ms = (view["partition"], view["campaign"]), view["event_time_ms"]
        before_ms = newest_ms.get(place, time_ms)
        late += before_ms >= (time_ms // WINDOW_MS + 1) * WINDOW_MS
        newest_ms[place] = max(before_ms, time_ms)
    return late


def told_by_the_engine(run: str) -> int:
    """The last line of its progress; of an engine that was started once."""
    return int(json.loads((Path(run) / "progress.jsonl").read_text().splitlines()[-1])["dropped"])
