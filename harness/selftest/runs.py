"""Small whole runs of the fake engine, without any output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.config import plan
from harness.engines import fake
from harness.engines.fake_memory import FakeClock
from harness.judging.stored_run import StoredRun
from harness.model import EngineManifest, Verdict
from harness.rundir.store import Store
from harness.runner.run import run
from harness.runner.run_kinds import stages
from harness.runner.screen import NullScreen
from harness.runner.world.fake import FakeWorld

SMALL: Mapping[str, Any] = {
    "engine": "fake",
    "rate": 250,
    "duration": "12s",
    "window": "4s",
    "campaigns": 5,
    "probes": 5,
    "servers": 2,
    "disorder": "none",
    "fault": "none",
}
# The seam must be in enough cells for a proof, and records on either side of it must count.
WITH_A_SEAM: Mapping[str, Any] = {**SMALL, "campaigns": 60, "rate": 1000, "seed": 2}


def fake_run(
    folder: Path, manifest: EngineManifest = fake.MANIFEST, clock: FakeClock | None = None, **changes: Any
) -> tuple[Verdict, Store]:
    """Make one run of the fake engine: a small one with some keys of a scenario changed."""
    small = WITH_A_SEAM if "history" in changes else SMALL
    spec, manifest = plan.resolve("selftest", {**small, **changes}, {}, lambda *_: manifest)
    store = Store.create(folder, "fake")
    world = FakeWorld(spec, store, manifest, clock)
    return run(
        spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=NullScreen(), made_by=stages(spec)
    ), store
