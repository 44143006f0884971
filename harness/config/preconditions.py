"""Refuses a run before it starts if its input can't have what the scenario requires.
harness/judging/scenario_conditions.py judges afterwards whether it had it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from generators.schedule import Schedule
from generators.tape import offered_by
from harness.judging.scenario_conditions import (
    BOUND,
    LONG_MS,
    MIB,
    WHAT,
    bound_of_state,
    full_window_ms,
    in_a_second,
)
from harness.measuring.surges import surges
from harness.model import AD_IMPRESSIONS, Required, RunSpec
from harness.util.texts import many
from workloads.registry import length_ms_of

LARGEST_CELL = 128  # bytes of a cell in RocksDB: 54 to 87 were measured
VIEWS = 3  # about one in so many events of the ads is counted


def impossible(spec: RunSpec) -> Iterator[str]:
    """Yield a sentence for each requirement that the plan rules out."""
    for name in spec.requires:
        if why := POSSIBLE[name](spec):
            yield f"The scenario {spec.scenario} needs {WHAT[name]}, and {why}"


def _late(spec: RunSpec) -> str:
    reach_ms = spec.tape.reach_ms
    if reach_ms <= spec.watermark_ms:
        return (
            f"disorder = {spec.disorder_name!r} reaches {reach_ms} ms back, which the watermark of "
            f"{spec.watermark_ms} ms allows. Choose more disorder, or lower --watermark."
        )
    tape, dials = spec.tape, spec.tape.disorder
    by_share_alone = replace(tape, disorder=replace(dials, late_share=0.0)).reach_ms <= spec.watermark_ms
    if by_share_alone and (late := dials.late_share * Schedule(tape).total) < 1:
        return f"late_share = {dials.late_share:g} makes {late:.2g} events late. Raise --rate, --duration or the share."
    return ""


def _delayed(spec: RunSpec) -> str:
    if spec.tape.reach_ms >= LONG_MS:
        return ""
    return f"disorder = {spec.disorder_name!r} reaches {spec.tape.reach_ms} ms back. Choose more disorder."


def _outgrown(spec: RunSpec) -> str:
    bound = bound_of_state(spec)
    cells = Schedule(spec.tape).total // (VIEWS if spec.workload == AD_IMPRESSIONS else 1)
    if bound is None or cells * LARGEST_CELL > bound:
        return ""
    return (
        f"at most about {many(cells, 'cell')} need less than {cells * LARGEST_CELL / MIB:.1f} MiB, where "
        f"{bound / MIB:g} MiB is the limit ({BOUND}). Raise --rate or --duration, or lower the limit."
    )


def _full_window(spec: RunSpec) -> str:
    length_ms = length_ms_of(spec)
    if length_ms is None:
        return f"the windows of {spec.workload} have no fixed length."
    run_ms, needed_ms = spec.tape.warm_up_ms + spec.tape.load_ms, full_window_ms(length_ms, spec)
    if run_ms > needed_ms:
        return ""
    return (
        f"all events are from {run_ms / 1000:g} s, where a window and its lateness are {needed_ms / 1000:g} s. "
        "Lengthen --backlog or --duration."
    )


def _backlog(spec: RunSpec) -> str:
    waiting = Schedule(spec.tape).warm_up_total if spec.tape.waits else 0
    if waiting > in_a_second(spec):
        return ""
    return f"{many(waiting, 'event')} would wait, which is less than a second of the load. Lengthen --backlog."


def _burst(spec: RunSpec) -> str:
    return "" if surges(offered_by(spec.tape)) else "the profile has none. Keep the profile of the scenario."


def _history(spec: RunSpec) -> str:
    return "" if spec.tape.history_ms else "history is 0. Leave --history out, or give a longer one."


def _backfill(spec: RunSpec) -> str:
    return "" if spec.backfill else "backfill is empty. Name an engine with --backfill, or leave --backfill out."


def _states(spec: RunSpec) -> str:
    return "" if spec.states else "states is 0. Leave --states out, or give a larger number."


def _readers(spec: RunSpec) -> str:
    reads = any(leaf.action == "read-results" for leaf in spec.fault.leaves)
    return "" if reads else f"the fault is {spec.fault.text!r}. Leave --fault out, or give a plan with read-results."


POSSIBLE: Mapping[Required, Callable[[RunSpec], str]] = {
    "late": _late,
    "delayed": _delayed,
    "outgrown-state": _outgrown,
    "full-window": _full_window,
    "backlog": _backlog,
    "burst": _burst,
    "history": _history,
    "backfill": _backfill,
    "states": _states,
    "readers": _readers,
}
