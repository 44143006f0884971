"""The sources of results, by their name in a manifest. To add one, write a file and add its line here."""

from __future__ import annotations

from harness.model import EngineManifest, UsageError
from harness.results.base import ResultLocation, ResultStore
from harness.results.command import Command
from harness.results.compact import Compact
from harness.results.delta import Delta
from harness.results.iceberg import Iceberg
from harness.results.parquet import Parquet
from harness.results.sql import Sql
from harness.results.template import Template
from harness.results.topic import KafkaTopic
from harness.results.yahoo import Yahoo
from harness.util.suggest import nearest, wrong

SOURCES: dict[str, type[ResultStore]] = {
    "redis:compact": Compact,
    "redis:yahoo": Yahoo,
    "redis:template": Template,
    "kafka": KafkaTopic,
    "sql": Sql,
    "delta": Delta,
    "iceberg": Iceberg,
    "parquet": Parquet,
    "command": Command,
}


def open_results(location: ResultLocation) -> ResultStore:
    return SOURCES[location.manifest.source](location)


def refuse_unknown(manifest: EngineManifest) -> None:
    if manifest.source not in SOURCES:
        forms = [store.form for store in SOURCES.values()]
        allowed = f"one of {', '.join(forms)}{nearest(manifest.results, forms)}"
        raise UsageError(f"{manifest.named}: {wrong('results', manifest.results, allowed)}")
