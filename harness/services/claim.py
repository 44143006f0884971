"""Services that a run was given by address: are they ours to use? Asked before anything is started or written."""

from __future__ import annotations

from pathlib import Path

from harness.model import RunSpec
from harness.services import security
from harness.services.redis import claim, connect, external


def claim_external(spec: RunSpec) -> None:
    """An existing database must be empty, or ours and to be emptied."""
    if spec.redis:
        with connect(external(spec.redis)) as client:
            claim(client, spec.reset)
    if spec.kafka:
        security.external(spec.kafka, Path(spec.kafka_config) if spec.kafka_config else None)
