"""The catch-up figures of a run whose engine was frozen during the load and then thawed."""

from __future__ import annotations

from harness.drivers.chaos import ended
from harness.experiments import compare, repeat
from harness.measuring.timeline import FILE as TIMELINE
from harness.rundir.store import Store
from reports.result import Result


def figures_of(result: Result) -> dict[str, float]:
    store = Store(result.path)
    faults, _ = ended(store)
    epoch_ms = next(int(entry["epoch_ms"]) for entry in store.history("epoch"))
    thawed_s = (max(fault.healed_ms for fault in faults) - epoch_ms) / 1000
    return compare.of_catch_up(repeat.figures(result.measurement), store.read_table(TIMELINE), thawed_s)
