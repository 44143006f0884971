"""A job that waits half a second before it writes: on each kind of table, every change is dated right to one poll."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.judging.stored_run import StoredRun
from harness.rundir.store import Store
from tests.engines.test_runs import CALM, run

JOB = Path(__file__).parent / "delayed" / "job.py"
TABLES = {
    "delta": "delta:counts",
    "iceberg": "iceberg:shop/counts",
    "parquet": "parquet:counts",
    "sql": "sql:counts",
}
KEEP_VERSIONS = ("delta", "iceberg")
DELAY_MS = 500
TICK_US = 10_000  # of the clock of a file system

pytestmark = [pytest.mark.timeout(400), pytest.mark.thorough]


def engine(folder: Path, kind: str, **options: str) -> Path:
    """Write a manifest for the job."""
    told = "\n".join(f'{name} = "{value}"' for name, value in {"kind": kind, **options}.items())
    (folder / "manifest.toml").write_text(
        f'id = "delayed-{kind}"\ncommand = ["{{python}}", "{JOB}", "{{config}}"]\nresults = "{TABLES[kind]}"\n'
        f"sums = true\nprogress = false\nready_s = 60\n[options]\n{told}\n"
        '[[sinks]]\nname = "append"\nlate = "keep"\nguarantee = "none"\n'
    )
    return folder


def commits(folder: Path) -> Iterator[Any]:
    """Yield what the job noted of each of its commits."""
    for line in (folder / "logs" / "engine-1.log").read_text().splitlines():
        if line.startswith('{"began_us"'):
            yield json.loads(line)


@pytest.mark.parametrize("kind", TABLES)
def test_a_change_is_dated_right_to_one_poll(tmp_path, kind):
    answer = run(tmp_path, *CALM, "--engine", engine(tmp_path, kind))
    assert answer["verdict"] == "PASS", answer["sentence"]
    store = Store.open(Path(answer["run"]))
    found = StoredRun(store)
    (looks,) = store.history("observer")
    written = {tuple(cell): told for told in commits(store.path) for cell in told["cells"]}
    rows = found.samples.to_pylist()
    first_us = min(row["at_us"] for row in rows)  # the first poll: what it finds has been there before
    dated = 0
    for row in rows:
        told = written.get((found.keys[row["campaign"]], row["window_ms"], row["count"]))
        if told and row["at_us"] > first_us:  # a poll without a history may have seen two commits at once
            dated += 1
            assert row["since_us"] - TICK_US <= told["ended_us"]
            assert told["began_us"] - TICK_US <= row["at_us"]

    assert bool(looks["versions"]) == (kind in KEEP_VERSIONS)
    assert not looks["versions"] or all(row["since_us"] == row["at_us"] for row in rows if row["at_us"] > first_us)
    assert dated > 100
    for each in store.read_json("measurement.json")["latency"] or ():
        assert each["corrected"]["p50"] >= DELAY_MS, each["way"]
