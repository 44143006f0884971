"""Exports the metrics of a run by OpenTelemetry, where its packages are installed and its variables name a collector.

`opentelemetry-sdk` and an exporter are no packages of ours. The SDK reads all of its own variables, such as
OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from reports.exports.openmetrics_text import Family, Sample

ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
GRPC = "grpc"
DISABLED = "OTEL_SDK_DISABLED"
END_MS = 5000
LACKING = (
    "OpenTelemetry is not exported: {}. Install opentelemetry-sdk and opentelemetry-exporter-otlp with this Python: {}"
)

Families = Callable[[], Iterable[Family]]


def exporter(env: Mapping[str, str], families: Families) -> Exporter | None:
    """Return an exporter if a collector is named; None if there is none, or its packages are missing."""
    if not any(map(env.get, ENDPOINTS)) or env.get(DISABLED, "").lower() == "true":
        return None
    protocol = next(filter(None, map(env.get, PROTOCOLS)), "http/protobuf")
    kind = "grpc" if protocol == GRPC else "http"
    try:
        sdk, export = import_module("opentelemetry.sdk.metrics"), import_module("opentelemetry.sdk.metrics.export")
        otlp = import_module(f"opentelemetry.exporter.otlp.proto.{kind}.metric_exporter")
    except ImportError as error:
        print(LACKING.format(error, sys.executable), file=sys.stderr, flush=True)
        return None
    reader = export.PeriodicExportingMetricReader(otlp.OTLPMetricExporter())
    return Exporter(sdk.MeterProvider(metric_readers=[reader]), families, import_module("opentelemetry.metrics"))


class Exporter:
    """One instrument for each family and suffix. A family becomes one as soon as it is known."""

    def __init__(self, provider: Any, families: Families, api: Any) -> None:
        self._provider, self._families, self._api = provider, families, api
        self._meter = provider.get_meter("streamgauge")
        self._values: dict[str, list[Sample]] = {}
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Take the newest values. The SDK sends them at its own intervals."""
        values: dict[str, list[Sample]] = {}
        kinds: dict[str, Family] = {}
        for family in self._families():
            for sample in family.samples:
                name = family.name + sample.suffix
                values.setdefault(name, []).append(sample)
                kinds[name] = family
        with self._lock:
            self._values = values
        for name in values.keys() - self._known:
            self._known.add(name)
            self._create(name, kinds[name])

    def end(self) -> None:
        """Send the last values, and stop."""
        self._provider.force_flush(END_MS)
        self._provider.shutdown(END_MS)

    def _create(self, name: str, family: Family) -> None:
        def observed(_: object) -> list[Any]:
            with self._lock:
                return [self._api.Observation(value, dict(labels)) for labels, value, _ in self._values.get(name, ())]

        is_counter = family.kind == "counter" or name.endswith("_count")
        create = self._meter.create_observable_counter if is_counter else self._meter.create_observable_gauge
        create(name, callbacks=[observed], description=family.help)
