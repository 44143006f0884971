"""Conditions without which a run can't show what its scenario was made for.

A scenario lists them under `requires`. harness/config/preconditions.py refuses a run whose plan rules a condition out.
This module finds conditions that were not met during the run, which make it UNKNOWN `vacuous`. Some conditions have
checks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from harness.model import Required, RunSpec
from harness.util.texts import many

if TYPE_CHECKING:
    from harness.judging.checks.case import RunFacts
    from harness.judging.judged import Judged

MIB = 1 << 20
LONG_MS = 10_000  # an event with this lateness was delayed for long
STORE = "spark.sql.streaming.stateStore."
PROVIDER, BOUND = f"{STORE}providerClass", f"{STORE}rocksdb.maxMemoryUsageMB"

WHAT: Mapping[Required, str] = {
    "late": "an event after the watermark",
    "delayed": f"an event that comes {LONG_MS // 1000} s late",
    "outgrown-state": "a state that exceeds its limit",
    "full-window": "a full window in the state when the engine is killed",
    "backlog": "a backlog larger than a usual batch",
    "burst": "a burst in the load",
    "history": "older events in files",
    "backfill": "a batch job that counts all events again",
    "states": "a state that is read and judged",
    "readers": "another reader of the results",
}


def unmet(case: RunFacts) -> Iterator[str]:
    """Yield the conditions that were not met."""
    for name in case.spec.requires:
        if name in MET and (why := MET[name](case)):
            yield f"the scenario needs {WHAT[name]}, and {why}"


def bound_of_state(spec: RunSpec) -> int | None:
    """Return the configured bound of the state.

    None: only RocksDB has one; any other store fills the heap, which ends the engine.
    """
    bound, provider = spec.conf.get(BOUND, ""), spec.conf.get(PROVIDER, "RocksDB")
    return int(bound) * MIB if bound and "RocksDB" in provider else None


def full_window_ms(length_ms: int, spec: RunSpec) -> int:
    """Return the event time after which the state holds a full window, and older events may leave it."""
    return length_ms + spec.watermark_ms


def in_a_second(spec: RunSpec) -> float:
    """Return how many events are due per second of the load, on average."""
    events = sum(each.duration_ms * (each.start_per_s + each.end_per_s) / 2000 for each in spec.tape.profile)
    return events * 1000 / max(1, spec.tape.load_ms)


def _late(case: RunFacts) -> str:
    return "" if case.census.permitted else "no event came after the watermark"


def _delayed(case: RunFacts) -> str:
    longest_ms = max(map(_longest_ms, case.judged), default=0)
    return "" if longest_ms >= LONG_MS else f"the latest event was {longest_ms / 1000:.1f} s late"


def _longest_ms(part: Judged) -> int:
    """Return the longest time from an event's own time until it was sent."""
    sent_ms = part.sent_us // 1000
    return int((sent_ms - part.events.time_ms).max(initial=0, where=sent_ms > 0))


def _outgrown(case: RunFacts) -> str:
    bound = bound_of_state(case.spec)
    if bound is None:
        return ""
    most = max((line.state_bytes for line in case.told), default=0)
    if not most:
        return "the engine does not report the size of its state"
    return "" if most > bound else f"its state grew to {most / MIB:.1f} MiB, and {bound / MIB:g} MiB is the limit"


def _full_window(case: RunFacts) -> str:
    needed_ms = full_window_ms(case.length_ms, case.spec)
    for fault in case.faults:
        seen_ms = _processed_ms(case, fault.at_ms) if fault.landed else needed_ms
        if seen_ms < needed_ms:
            return (
                f"at {fault.spec.text} the engine had processed {seen_ms / 1000:.1f} s of event time, where a window "
                f"and its lateness are {needed_ms / 1000:g} s"
            )
    return ""


def _processed_ms(case: RunFacts, at_ms: int) -> int:
    """Return the span of event time that the engine had reported as processed by then."""
    told = max((line for line in case.told if line.at_ms <= at_ms), key=lambda line: line.at_ms, default=None)
    if told is None:
        return 0
    ends = np.array([told.offsets.get(partition, 0) for partition in range(case.spec.tape.partitions)])
    events = (part.events for part in case.judged)
    done = [times_ms for each in events if len(times_ms := each.time_ms[each.offset < ends[each.partition]])]
    return max(int(each.max()) for each in done) - min(int(each.min()) for each in done) if done else 0


def _backlog(case: RunFacts) -> str:
    usual = max(in_a_second(case.spec), _usual_batch(case))
    if case.waiting > usual:
        return ""
    return f"{many(case.waiting, 'event')} waited, where {usual:,.0f} are a usual batch or a second of the load"


def _usual_batch(case: RunFacts) -> float:
    """Take the last third of the load, when the backlog has been processed."""
    from_ms = case.epoch_ms + case.spec.tape.load_ms * 2 // 3
    return float(median([line.rows for line in case.told if line.at_ms >= from_ms and line.rows] or [0]))


MET: Mapping[Required, Callable[[RunFacts], str]] = {
    "late": _late,
    "delayed": _delayed,
    "outgrown-state": _outgrown,
    "full-window": _full_window,
    "backlog": _backlog,
}
