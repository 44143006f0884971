"""What the clocks of several workers do to the load check."""

from __future__ import annotations

import pyarrow as pa
import pytest

from generators.sends import SENDS
from harness.load.certificate import certify
from harness.model import LoadWorker
from reports.load_workers import by_workers

BUDGET_MS = 100.0
ROW = dict.fromkeys(SENDS, 1000)
SENT = pa.table({name: pa.array([value]).cast(SENDS[name]) for name, value in ROW.items()})


def worker(error_ms: float | None, host: str = "host-1") -> LoadWorker:
    return LoadWorker(host, (0, 1), 1000, error_ms)


@pytest.mark.parametrize(
    ("error_ms", "valid"), [(0.2, True), (BUDGET_MS, True), (BUDGET_MS + 0.1, False), (None, False)]
)
def test_a_clock_that_is_not_known_well_enough_withholds_speed(error_ms, valid):
    certificate = certify(SENT, 1000, BUDGET_MS, (worker(0.1), worker(error_ms, "host-2")))

    assert certificate.valid == valid
    assert all("host-2" in reason for reason in certificate.reasons)
    assert len(certificate.reasons) == (not valid)


def test_the_largest_error_is_told():
    certificate = certify(SENT, 1000, BUDGET_MS, (worker(0.14), worker(2.51)))
    assert by_workers(certificate) == "by 2 workers on host-1, whose clocks are known to 2.5 ms"
    assert "on 2 hosts" in by_workers(certify(SENT, 1000, BUDGET_MS, (worker(0.1), worker(0.1, "host-2"))))


def test_one_process_has_the_clock_of_the_run():
    certificate = certify(SENT, 1000, BUDGET_MS)
    assert (certificate.valid, certificate.clock_error_ms, by_workers(certificate)) == (True, 0.0, "")
