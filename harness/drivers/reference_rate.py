"""The speed of the reference engine on this machine, now. A rate means little on other machines; as a share of the
reference's it means more.

The reference is frozen during the load, then thawed; its catch-up rate and its CPU time per event are measured. This is
done once per boot and number of cores, and beside each whole search.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil

from harness import __version__
from harness.config import plan
from harness.drivers import one_run
from harness.drivers.chaos import ended
from harness.engines import manifest as manifests
from harness.experiments import compare, repeat
from harness.experiments.compare import BUSY_CPU, Leg, LegRun
from harness.experiments.searching.search import Unit
from harness.host import cgroup, disk_space
from harness.measuring.timeline import FILE as TIMELINE
from harness.model import HarnessError, Outcome
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.terminal import console
from harness.terminal.command_end import cache_folder
from harness.util.texts import three_digits
from reports.result import Result

FILE = "unit.json"
SEED = 1
SETTINGS = replace(compare.Settings(), catch_up_per_s=100_000.0, warm_s=10, frozen_s=15)
SAME_START_S = 60.0  # two readings of the same boot time differ by less


class Kept(msgspec.Struct, frozen=True):
    """The measurement in the cache."""

    unit: Unit
    version: str
    booted_s: float
    cores: float


def of_this_start(out: Path) -> Unit:
    """Return the measurement made on these cores since the last boot, or measure now."""
    kept, cores = _kept(), min(cgroup.allowed_cores(), cgroup.quota_cores() or math.inf)
    if kept and _is_of(kept, cores):
        return kept.unit
    unit = measured(out)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.encode(Kept(unit, __version__, psutil.boot_time(), cores))
    with disk_space.writing(folder / FILE, len(encoded)):
        (folder / FILE).write_bytes(encoded)
    return unit


def _is_of(kept: Kept, cores: float) -> bool:
    same_start = abs(kept.booted_s - psutil.boot_time()) < SAME_START_S
    return same_start and kept.version == __version__ and kept.cores == cores


def _kept() -> Kept | None:
    try:
        kept: Kept = Store(cache_folder()).read_as(FILE, Kept)
    except MissingEvidence:
        return None
    return kept


def caught_up(result: Result) -> dict[str, float]:
    """Return the catch-up figures of a run whose engine was frozen during the load and then thawed."""
    store = Store(result.path)
    return compare.of_catch_up(repeat.figures(result.measurement), store.read_table(TIMELINE), thawed_s(store))


def thawed_s(store: Store) -> float:
    """Return when the engine was thawed, in seconds since the load start."""
    faults, _ = ended(store)
    epoch_ms = next(int(entry["epoch_ms"]) for entry in store.history("epoch"))
    return (max(fault.healed_ms for fault in faults) - epoch_ms) / 1000


def measured(out: Path) -> Unit:
    """Measure by a run below `out`. If it has no figures, the error gives the reason."""
    console.note(
        f"measuring the reference engine on this machine: frozen for {SETTINGS.frozen_s} s at "
        f"{SETTINGS.catch_up_per_s:,.0f}/s"
    )
    case = LegRun(compare.REFERENCE, Leg.CATCH_UP, SEED)
    own = compare.keys_of(case, SETTINGS)
    keys = {**plan.read_scenario(compare.SCENARIO)[1], **own}
    spec, manifest = plan.resolve(compare.SCENARIO, keys, {}, manifests.load)
    result = one_run.answer(spec, manifest, out)
    figures = caught_up(result) if result.verdict.outcome is Outcome.PASS and result.measurement else {}
    if not figures.keys() >= {"catch_up_per_s", BUSY_CPU}:
        why = result.withheld or result.verdict.sentence
        raise HarnessError(f"The reference engine could not be measured: {why.rstrip('.')}. See {result.path}.")
    console.note(f"  {figures['catch_up_per_s']:,.0f} events/s, {three_digits(figures[BUSY_CPU])} CPU-s per million")
    return Unit(figures["catch_up_per_s"], figures[BUSY_CPU], SETTINGS.catch_up_per_s)
