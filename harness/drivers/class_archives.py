"""A short run without measurement, whose JVMs write class archives that make later starts faster.

It runs after a verdict or with `engines add`, at low priority, or before an experiment of many starts, and never beside
a run that measures. It is skipped if no archive is missing. If it fails, the next start is no faster; nothing else is
affected.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.config import plan
from harness.drivers import one_run
from harness.engines import manifest as manifests
from harness.engines import removal, warm
from harness.engines.job import Surroundings
from harness.install import archives
from harness.install.archives import Archive
from harness.judging.stored_run import StoredRun
from harness.model import (
    AD_IMPRESSIONS,
    EngineManifest,
    HarnessError,
    Outcome,
    RunSpec,
    Stopped,
    UsageError,
    is_remote_master,
)
from harness.rundir.store import Store
from harness.runner.run import run as run_nine_steps
from harness.services import children
from harness.terminal import console
from harness.terminal.command_end import summary
from harness.util import wait

SCENARIO = "calm"
SHORT: Mapping[str, object] = {"rate": "2000", "duration": "3s", "probes": 0}
PATIENCE = "10"  # at low priority, on a busy machine
USUAL_PRIORITY, LOW_PRIORITY = 0, 10  # steps of `nice`


def after(spec: RunSpec, engine_manifest: EngineManifest) -> None:
    """Make the archives that a run lacked for the next one."""
    with _skipped_by_ctrl_c():
        _like(spec, engine_manifest, LOW_PRIORITY)


def before(spec: RunSpec, engine_manifest: EngineManifest) -> None:
    """Make the archives that the starts of an experiment lack. Ctrl-C ends the experiment."""
    _like(spec, engine_manifest, USUAL_PRIORITY)


def _like(spec: RunSpec, engine_manifest: EngineManifest, priority: int) -> None:
    """Train with the engine's settings in this run, but never on a cluster of the user."""
    if spec.archive and engine_manifest.archive and not is_remote_master(spec.master):
        conf = [f"{key}={value}" for key, value in spec.conf.items()]
        # A shipped engine is trained with the default workload; a user's own job may support only its own.
        asked = {} if engine_manifest.shipped else {"workload": spec.declared_in or spec.workload}
        sink = {"sink": spec.sink} if asked or spec.workload == AD_IMPRESSIONS else {}
        _train({"engine": engine_manifest.named, "conf": conf, **asked, **sink}, priority)


def of_engine(engine_manifest: EngineManifest) -> None:
    """Make the archives that the engine's first run would lack."""
    with _skipped_by_ctrl_c():
        _train({"engine": engine_manifest.id}, LOW_PRIORITY)


@contextmanager
def _skipped_by_ctrl_c() -> Iterator[None]:
    try:
        yield
    except Stopped as by:
        console.note(f"Skipped by {by.name}: the next run writes the archives.")


def _train(flags: Mapping[str, object], priority: int) -> None:
    """Make missing archives. No error escapes: it must not affect the verdict or the installation before it. Ctrl-C
    does, and the caller decides what it ends.
    """
    try:
        _, keys = plan.read_scenario(SCENARIO)
        asked = {"patience": PATIENCE, **flags}
        spec, engine_manifest = plan.resolve(SCENARIO, {**keys, **SHORT}, asked, manifests.load)
        surroundings = one_run.prepare(spec, engine_manifest)
        if _lacking(spec, engine_manifest, surroundings):
            skips = " Ctrl-C skips this." if priority else ""
            console.note(f"Writing archives of Java classes, so that the next start is faster.{skips}")
            for sentence in _make(spec, engine_manifest, surroundings, priority):
                console.note(f"The next start is no faster: {sentence}.")
    except (HarnessError, UsageError) as error:
        console.note(f"The next start is no faster. {error}")
    except Exception as error:  # noqa: BLE001 - see the docstring
        console.note(f"The next start is no faster: {summary(error)}.")


def _lacking(spec: RunSpec, engine_manifest: EngineManifest, surroundings: Surroundings) -> Sequence[Archive]:
    return list(filter(archives.lacks, warm.archives_of(spec, engine_manifest, surroundings).all))


def _make(spec: RunSpec, engine_manifest: EngineManifest, surroundings: Surroundings, priority: int) -> list[str]:
    """Make the missing archives and return the errors."""
    os.nice(priority)
    with (
        archives.alone(console.note),
        removal.in_use(engine_manifest),
        tempfile.TemporaryDirectory(prefix="streamgauge-training-") as place,
        children.guard(),
        wait.patience(spec.patience),
        console.progress() as screen,
    ):
        lacking = _lacking(spec, engine_manifest, surroundings)  # another process may have made them meanwhile
        if not lacking:
            return []
        store = Store.create(Path(place), SCENARIO)
        starts = warm.makings(warm.archives_of(spec, engine_manifest, surroundings))
        from harness.runner.world.real import RealWorld

        world = RealWorld(spec, engine_manifest, surroundings, store, starts)
        verdict = run_nine_steps(
            spec, engine_manifest, environment={}, world=world, stored=StoredRun(store), screen=screen
        )
        if verdict.outcome is not Outcome.PASS:
            return [f"the short run for the archives ended {verdict.outcome.value}"]
        return [wrong for each in lacking if (wrong := archives.seal(each))]
