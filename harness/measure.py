"""What a stored run measured. Pure: from the files, never from a live system.

No speed is given for wrong answers, and none when the generator did not keep its schedule: then there is no
measurement at all, and `withheld` says why.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from harness.model import Certificate, Outcome, Verdict
from harness.store import Store


@dataclass(frozen=True)
class Measurement:
    """The figures of one run, each with its unit in the name."""

    events: int
    offered_per_s: float
    load_s: float
    ready_s: float
    drain_s: float


def withheld(verdict: Verdict, certificate: Certificate | None) -> str:
    """Why no speed may be given; empty when it may."""
    if verdict.outcome is not Outcome.PASS:
        return f"no speed for a run that is {verdict.outcome.value}"
    if certificate is None or not certificate.valid:
        return "the load certificate is void"
    return ""


def measure(store: Store, verdict: Verdict) -> Measurement | None:
    """The measurement of a run, or None where it has to be withheld."""
    certificate = certificate_of(store)
    if withheld(verdict, certificate) or certificate is None:
        return None
    ready, loaded, drained = (next(store.history(kind), None) for kind in ("ready", "loaded", "engine"))
    if not (ready and loaded and drained):
        return None
    load_s = max(store.read_table("sends.parquet").column("finished_us").to_pylist()) / 1e6
    return Measurement(
        events=certificate.sent,
        offered_per_s=certificate.sent / load_s if load_s > 0 else 0.0,
        load_s=load_s,
        ready_s=ready["after_ms"] / 1000,
        drain_s=(drained["at_ms"] - loaded["at_ms"]) / 1000,
    )


def certificate_of(store: Store) -> Certificate | None:
    entries = list(store.history("certificate"))
    return msgspec.convert(entries[-1]["certificate"], Certificate) if entries else None
