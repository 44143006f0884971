"""The list of files beside a page, and the removal of links to files that are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote, unquote

from reports.page import Link, Section, Table

# Files of a run or an experiment, in reading order.
KNOWN = {
    "summary.md": "the answer in Markdown, for the summary of a CI job",
    "junit.xml": "the answer as JUnit XML, for a CI job",
    "annotations.txt": "the answer as an annotation of a GitHub workflow",
    "benchmark.json": "the head's figures for github-action-benchmark",
    "badge.json": "the answer as a badge, for the endpoint of shields.io",
    "metrics.prom": "answer and figures as OpenMetrics text, for Prometheus",
    "card.md": "the guarantee card in Markdown",
    "card.json": "the guarantee card as JSON",
    "table.md": "the table in Markdown",
    "audit.json": "each set of an audit, and what was found",
    "trend.json": "each gate of a history, series by series",
    "otava.yaml": "what Apache Otava needs to read figures/*.csv",
    "live.html": "the run as it went, which replays in a browser",
    "experiment.json": "settings, and the result of each run",
    "rounds.jsonl": "each measured round of a gate",
    "verdict.json": "the verdict, its checks and their witnesses",
    "measurement.json": "latency, rates, cost",
    "recovery.json": "how the engine came back from each fault",
    "spec.json": "settings of the run, with all defaults resolved",
    "plan.json": "the tape, the fault plan, the engine's manifest",
    "environment.json": "machine and versions",
    "history.jsonl": "the event log of the run",
    "progress.jsonl": "progress that the engine reported",
    "late.jsonl": "events that the engine reported as dropped late",
    "checkpoints.jsonl": "duration and size of each checkpoint, as the engine reports them",
    "batches.json": "the batches of the engine's checkpoint",
    "digests.json": "SHA-256 of each file as the run left it",
    "timeline.parquet": "one row for each second",
    "latency.parquet": "each latency",
    "samples.parquet": "each poll of the results",
    "glitches.parquet": "values that were seen for a while and are not counts",
    "versions.parquet": "each version of a table that keeps them, with its writer",
    "sends.parquet": "each slice of the load, when it was due and when it was sent",
    "resources.parquet": "CPU and memory of each process and second",
    "expected.parquet": "the expected count of each cell",
    "observed.parquet": "the actual count of each cell",
    "observed-after-stop.parquet": "the same, read again after the engine was stopped",
    "table-files.parquet": "each file of the table with the results",
    "log.parquet": "each record of the topic",
}
DEAD = re.compile(r'<a href="([^"#:]+)">(.*?)</a>', re.DOTALL)


def section(folder: Path) -> Section:
    """List the files of a folder with a link to each."""
    rows = tuple((Link(name, quote(name)), what) for name, what in _files(folder))
    return Section("files", "Files", tables=(Table(("file", "holds"), rows),))


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    yield from ((name, what) for name, what in KNOWN.items() if (folder / name).is_file())
    for path in sorted((folder / "figures").glob("*.csv")):
        yield f"figures/{path.name}", "the numbers of a drawing"
    for path in sorted((folder / "figures").glob("*.[ps][nv]g")):
        yield f"figures/{path.name}", "a drawing"
    for path in sorted(path for path in (folder / "logs").rglob("*") if path.is_file()):
        yield str(path.relative_to(folder)), "a log" if path.stat().st_size else "a log, empty"


def without_dead_links(html: str, folder: Path) -> str:
    """Replace links to missing files by their text: a page may have been copied without the files beside it."""

    def alive(link: re.Match[str]) -> str:
        return link[0] if (folder / unquote(unescape(link[1]))).exists() else link[2]

    return DEAD.sub(alive, html)
