"""The workers of a load, in words."""

from __future__ import annotations

from harness.model import Certificate
from harness.util.texts import many


def by_workers(certificate: Certificate) -> str:
    """Say who sent a load, and how well their clocks are known; "" for one process beside the harness."""
    if not certificate.workers:
        return ""
    hosts = sorted({worker.host for worker in certificate.workers})
    where = hosts[0] if len(hosts) == 1 else many(len(hosts), "host")
    return (
        f"by {many(len(certificate.workers), 'worker')} on {where}, whose clocks are known to "
        f"{certificate.clock_error_ms:.1f} ms"
    )
