"""What a collector gets of a run by OpenTelemetry: a real SDK sends it, and the variables of OpenTelemetry decide."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from reports.live import metrics, otel
from tests.quick.reports.test_live_metrics import RUNNING, VERDICT
from tests.quick.reports.test_live_state import second, stored

Told = dict[tuple[str, ...], float]


class Collector:
    """Takes what is posted to it, as an OpenTelemetry collector does."""

    def __init__(self) -> None:
        self.told: Told = {}
        self.headers: dict[str, str] = {}
        self.resource: dict[str, str] = {}
        collector = self

        class Posted(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(ExportMetricsServiceRequest.FromString(body), dict(self.headers))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Posted)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def take(self, request: Any, headers: dict[str, str]) -> None:
        self.headers = headers
        for resource in request.resource_metrics:
            self.resource = {each.key: each.value.string_value for each in resource.resource.attributes}
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in (metric.sum if metric.HasField("sum") else metric.gauge).data_points:
                    labels = {each.key: each.value.string_value for each in point.attributes}
                    own = [text for key, text in labels.items() if key not in (*metrics.COMMON, "run")]
                    value = point.as_double if point.HasField("as_double") else point.as_int
                    self.told[metric.name.removeprefix("streamgauge_"), *own] = value


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    taking = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", taking.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=streams")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=ad-counts")
    yield taking
    taking.http.shutdown()
    taking.http.server_close()


def env(collector: Collector, **more: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **more}


def test_a_collector_gets_the_numbers_and_at_last_the_verdict(collector):
    state = stored(*RUNNING)
    exporter = otel.exporter(env(collector), lambda: metrics.families(state))
    assert exporter
    exporter.refresh()
    for entry in (second(2, 200, 150, 120, 35.0), VERDICT):
        state.take(entry)
    exporter.refresh()
    exporter.end()

    assert (
        collector.told.items()
        >= {
            ("offered_events_total",): 200,
            ("backlog_events",): 50,
            ("probe_latency_seconds", "0.5"): 0.035,
            ("probe_latency_seconds_count",): 3,
            ("verdict", "FAIL"): 1,
            ("verdict", "PASS"): 0,
            ("check", "lost", "FAIL"): 1,
        }.items()
    )
    assert collector.headers["x-team"] == "streams"
    assert collector.resource["service.name"] == "ad-counts"


@pytest.mark.parametrize(
    "variables",
    [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}],
    ids=["none", "empty", "disabled"],
)
def test_nothing_is_exported_unless_a_collector_is_named(variables):
    assert otel.exporter(variables, list) is None


def test_without_its_packages_a_run_goes_on_and_its_log_says_what_is_missing(collector, capsys):
    assert otel.exporter(env(collector, OTEL_EXPORTER_OTLP_PROTOCOL="grpc"), list) is None  # not among the tests' own

    assert "Install opentelemetry-sdk and opentelemetry-exporter-otlp with this Python: /" in capsys.readouterr().err
