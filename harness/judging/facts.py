"""Read the facts of a stored run, from which the checks decide: what the tape planned, what the log holds, which events
count, and what the results were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.changed_query import CutoverRule, asked_of
from harness.evidence.ledger import Expectation, Ledger, seal_of
from harness.evidence.observed import (
    FATE,
    UNREAD,
    AfterStop,
    Doubt,
    Glitch,
    LogAudit,
    LogEvents,
    LogTable,
    Named,
    Observed,
    Watched,
    adds_up,
    folded,
)
from harness.evidence.send_index import column
from harness.judging import changed, contradictions, log_audit, progress_curve, verdict_file
from harness.judging.changed import Changed
from harness.judging.checks.case import RunFacts
from harness.judging.judged import Judged, JudgedLog, all_of
from harness.judging.lateness import Countable, CountedLog, never_closed
from harness.judging.stored_run import LOG, OBSERVED, STATES, StoredRun
from harness.kafka_log import recount
from harness.metering import clock_steps
from harness.model import (
    EVENT_TIME,
    Expiring,
)
from harness.results.glitches import STRANGER, UNREADABLE
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.util.texts import many, quoted
from workloads.base import Kind, Mask, Oracle, Planned, Question
from workloads.sentinels import MarkBlock, totals_of

# Events sent this much after their intended time are late because of the harness: "inside the watermark" leaves two
# seconds.
ROAD_MS = 2000
READ_HERE = "the log was read back here, because Spark did not"
IN_TOTALS = "the processing time of each event is not recorded, so all windows are judged together"


def facts_of(run: StoredRun) -> RunFacts:
    """Read the facts from which the verdict and the page are made."""
    return as_far_as_read(_read(run))


def as_far_as_read(case: RunFacts) -> RunFacts:
    """Adapt the facts to a log that could not be read: all planned records may be in it, and none has to be counted."""
    if not case.log_unread:
        return case
    audit = LogAudit(case.audit.planned, 0, Named(), Named(), Named(), Named())
    expectation = Expectation(Ledger(), case.tape_ledger)
    return replace(case, audit=audit, doubt=Doubt(), log_ledger=case.tape_ledger, expectation=expectation)


@dataclass(frozen=True)
class Compared:
    """The cells by the tape and by the log, and the events that count."""

    oracle: Oracle
    tape: Ledger
    log: Ledger
    judged: JudgedLog
    exact: bool
    expectation: Expectation
    change: Changed | None
    unread: Ledger  # the events that a planned fault removed before the engine had processed them


def _compared(run: StoredRun, log: LogTable, counted: CountedLog) -> Compared:
    oracle, tape = run.oracle, by_the_tape(run, run.oracle, _expected(run))
    judged, exact, change = _judged(run, oracle, counted.parts), counted.exact, None
    in_log = None if run.spec.time == EVENT_TIME or run.in_totals else _by_the_events_own_time(run, log)
    if (asked := run.question) and (anew := run.countable_anew):
        in_log = (in_log or judged.fold(oracle, all_of)[0]) + folded(asked, anew.events)
        oracle, tape = asked, tape + _asked_of_tape(run, asked)
        mixed, change = _changed(run, counted.whole, anew)
        judged, exact = _judged(run, asked, lambda: [mixed]), mixed.exact
    choices = *_must_and_may(exact or run.claim.late == "keep"), _unread(log), all_of
    must, may, unread, whole = judged.fold(oracle, *choices)
    ledger = whole if in_log is None else in_log
    return Compared(oracle, tape, ledger, judged, exact, Expectation(must, may), change, unread)


def _by_the_events_own_time(run: StoredRun, log: LogTable) -> Ledger:
    """Compute the cells to compare with the tape, which predicts the events' own times only."""
    counted = CountedLog(log, None, run.spec, run.oracle, run.codec)
    return _judged(run, run.oracle, counted.parts).fold(run.oracle, all_of)[0]


def _must_and_may(known: bool) -> tuple[Callable[[Judged], Mask], Callable[[Judged], Mask]]:
    """Select the events that make [must, may] of each cell.

    Known: the events that were not dropped must be counted, and those that an earlier run of their batch had counted
    may be. Unknown: every event that may be late may be missing. Cells that are still open need no result.
    """
    if known:
        return lambda part: part.kept & ~part.is_open, lambda part: part.kept | part.counted_before
    return lambda part: ~part.permitted & ~part.is_open, all_of


def _judged(run: StoredRun, oracle: Oracle, parts: Callable[[], Iterable[Countable]]) -> JudgedLog:
    """Add to the events that count what else is known of each."""
    lags, watermark_ms = _Lags(run), run.spec.watermark_ms
    newest_ms = max(int(part.events.time_ms.max(initial=0)) for part in parts()) if run.claim.final else None

    def judged() -> Iterator[Judged]:
        for part in parts():
            events = part.events
            yield Judged(
                events=events,
                batch=part.batch,
                dropped=part.dropped,
                counted_before=part.counted_before,
                permitted=part.permitted,
                sent_late=lags.of_dropped(part),
                is_open=_none_of(events) if newest_ms is None else never_closed(events, newest_ms, watermark_ms),
                sent_us=run.sent_times.of(events.id),
            )

    log = JudgedLog(judged, run.store.path)
    return log if adds_up(oracle) else JudgedLog.of(*log)


class _Lags:
    """How late each slice of the load was sent. A backlog is old by design, and in order."""

    def __init__(self, run: StoredRun) -> None:
        intended_us = column(run.sends, "intended_us")
        is_long = column(run.sends, "sent_us") - intended_us > ROAD_MS * 1000
        if run.spec.tape.waits:
            is_long &= intended_us > 0
        self._is_long = np.append(is_long, False)
        self._rows = run.sent_times.rows

    def of_dropped(self, part: Countable) -> Mask:
        """Select dropped events that are late because the generator sent them late."""
        result = part.dropped.copy()
        if result.any():
            result[result] = self._is_long[self._rows(part.events.id[result])]
        return result


def _none_of(events: LogEvents) -> NDArray[np.bool_]:
    return np.zeros(len(events), dtype=np.bool_)


def _read(run: StoredRun) -> RunFacts:
    """Read all evidence. The first missing file ends it."""
    contradictions.refuse_other_plan(run)
    store, spec, claim, unread = run.store, run.spec, run.claim, run.unread
    log, audit, doubt, countable = _of_log(run)
    compared = _compared(run, log, countable)
    oracle, expectation = compared.oracle, compared.expectation
    return RunFacts(
        spec=spec,
        epoch_ms=run.epoch_ms,
        oracle=oracle,
        sent=run.certificate.sent,
        audit=audit,
        doubt=doubt,
        tape_ledger=compared.tape,
        log_ledger=compared.log,
        judged=compared.judged,
        expectation=expectation,
        observed=Observed(Ledger(), ()) if OBSERVED in unread else run.observed,
        results_unread=unread.get(OBSERVED, ""),
        evicted=_last_of(store, "results"),
        cut=_last_of(store, "log"),
        throttled=_last_of(store, "load"),
        log_unread=unread.get(LOG, ""),
        after_stop=_after_stop(run),
        expiring=_expiring(store),
        retention_ms=round(run.manifest.retention_s * 1000),
        drops_late=claim.late == "drop",
        final=claim.final,
        shows_a_step_later=claim.final or not run.manifest.in_redis,
        in_order=claim.in_order,
        whole_batches=claim.whole_batches,
        batch_log=run.batch_log,
        named=run.named_late,
        exact=compared.exact,
        faults=run.faults,
        engine=run.engine,
        certificate=run.certificate,
        unread=compared.unread,
        unread_at=_places(log),
        aborted=_aborted(store, oracle),
        watched=None if run.in_totals else _watched(run),
        told=progress_curve.read_progress(store),
        span_ms=progress_curve.span_ms(store),
        behind_ms=-clock_steps.ahead_ms(store)[0],
        blind=IN_TOTALS if run.in_totals else run.manifest.blind,
        edits=run.edits,
        contradictions=contradictions.found(run, expectation, compared.log),
        failed_first=verdict_file.failed_first(store),
        waiting=max(store.values("backlog", "waiting", int), default=0),
        change=compared.change,
        states=run.states,
        states_unread=unread.get(STATES, ""),
        seam=run.seam,
        backfill=run.backfill,
        backfilled=run.backfilled if run.backfill and not run.backfill.broke_off else None,
        half_backfilled=run.half_backfilled if run.backfill and run.backfill.killed else None,
        notes=tuple(note for told in store.values("closed", "notes", list[str])[-1:] for note in told)
        + ((IN_TOTALS,) if run.in_totals else ())
        + tuple(f"{READ_HERE}: {line['why']}" for line in store.history("recount") if line.get("why")),
    )


def _last_of(store: Store, what: str) -> str:
    """Return the last observation of an external server. Earlier versions recorded less, or nothing."""
    if not any(what in line for line in store.history("spoiled")):
        return ""
    return store.last_value("spoiled", what, str)


def _expiring(store: Store) -> tuple[Expiring, ...] | None:
    told = store.values("expiring", "found", dict[str, Any])
    return tuple(Expiring(**each) for each in told) if told else None


def _of_log(run: StoredRun) -> tuple[LogTable, LogAudit, Doubt, CountedLog]:
    """Return the log and what is derived from it. An unread log counts as empty."""
    if LOG not in run.unread:
        return run.log, run.audit, run.doubt, run.counted
    log = pa.table(recount.no_records(run.codec))
    audit = log_audit.compare(run.schedule, run.epoch_ms, log, run.marks)
    return log, audit, Doubt(), CountedLog(log, run.batch_log, run.spec, run.oracle, run.codec)


def _asked_of_tape(run: StoredRun, question: Question) -> Ledger:
    """Compute the expected values for the other question from the plan and the sentinels alone."""
    return by_the_tape(run, question, Ledger.of(question.settle(question.plan(run.schedule.blocks()), run.epoch_ms)))


def by_the_tape(run: StoredRun, oracle: Oracle, planned: Ledger) -> Ledger:
    """Compute the expected values of cells from the tape and the sentinels.

    If one event makes a cell, a count is the sum of both. Any other value may depend on several events, so the oracle
    plans all events again, together with the sentinels.
    """
    counts = all(value.kind is Kind.COUNT for value in oracle.values)
    if counts and not oracle.merges and run.codec.mark_size == 1:
        return planned + Ledger.of(totals_of(oracle, run.codec, run.marks))
    blocks: Iterable[Planned] = chain(run.schedule.blocks(), [MarkBlock.of(run.codec, run.marks, run.epoch_ms)])
    return Ledger.of(oracle.settle(oracle.plan(blocks), run.epoch_ms))


def _changed(run: StoredRun, old: Countable, new: Countable) -> tuple[Countable, Changed]:
    """Return the events that count by the declared rule, and the values that other rules would give."""
    report = run.change
    assert report
    asked, restored = asked_of(report.spec), report.restored
    assert asked
    by = {
        means: changed.by_rule(means, old, new, restored)
        for means in (CutoverRule.CARRY, CutoverRule.FRESH, CutoverRule.ANEW)
    }
    ledgers = {means: folded(run.oracle, each.events, ~each.dropped) for means, each in by.items()}
    others = {"ignored": folded(run.oracle, old.events, ~old.dropped), "partial": ledgers[CutoverRule.ANEW]}
    return by[asked.means], Changed(
        means=asked.means,
        restored=restored,
        both_sides=changed.on_both_sides(old, restored),
        collisions=changed.collisions(old, new, restored),
        others=others,
        left=changed.left_by(asked.means, old, restored, report.written),
    )


def _unread(log: LogTable) -> Callable[[Judged], Mask]:
    """Select kept events that a planned fault removed before the engine had processed them."""
    removed = _removed_unread(log)

    def choose(part: Judged) -> Mask:
        result = _none_of(part.events)
        for partition, offsets in removed:
            result |= (part.events.partition == partition) & np.isin(part.events.offset, offsets)
        return result & part.kept

    return choose


def _places(log: LogTable) -> str:
    return "; ".join(f"partition {p} offsets {at[0]:,} to {at[-1]:,}" for p, at in _removed_unread(log))


def _removed_unread(log: LogTable) -> list[tuple[int, NDArray[np.int64]]]:
    """Group by partition; the log is ordered."""
    if FATE not in log.schema.names:
        return []
    fate, partition, offset = (np.asarray(log.column(name).to_numpy()) for name in (FATE, "partition", "offset"))
    unread = fate == UNREAD
    return [(int(p), offset[unread & (partition == p)]) for p in np.unique(partition[unread])]


def _aborted(store: Store, oracle: Oracle) -> Ledger:
    """Events sent in our own aborted transactions, which must not be counted."""
    told = store.values("aborted", "cells", list[tuple[int, int, int]])
    cells = (cell for cells in told for cell in cells)
    return sum((Ledger({oracle.codes.one(key, field): count}) for key, field, count in cells), Ledger())


def _expected(run: StoredRun) -> Ledger:
    sealed = run.plan.expected
    if sealed and seal_of(run.planned) != sealed.digest:
        path = run.store.path / "expected.parquet"
        raise MissingEvidence(f"{path} is not what was sealed in plan.json before the run")
    return Ledger.of(run.oracle.settle(run.planned, run.epoch_ms))


def _after_stop(run: StoredRun) -> AfterStop | None:
    """Return None for older versions, which sealed no expectation and read the results once."""
    if run.plan.expected is None:
        return None
    error = run.store.last_value("stopped", "error", str)
    if error or not run.store.last_value("stopped", "asked", bool):
        return AfterStop(error=error)
    return AfterStop(run.observed_after_stop)


def _watched(run: StoredRun) -> Watched | None:
    """Return the results as polled during the run; None if it ended before the first poll."""
    store = run.store
    gaps_ms = store.values("observer", "period_max_ms", float)
    if not gaps_ms or not store.has("samples.parquet"):
        return None
    at_us, key, field, count = (
        np.asarray(run.samples.column(name).to_numpy(), dtype=np.int64)
        for name in ("at_us", "campaign", "window_ms", "count")
    )
    told = next(store.history("observer"))
    found = _glitches(store, told, run.keys)
    return Watched(
        at_us,
        run.oracle.codes.of(key, field),
        count,
        longest_gap_ms=gaps_ms[0],
        begun_ms=told.get("begun_ms", 0),
        period_ms=told.get("period_ms", 0.0),
        closed_ms=told.get("closed_period_ms", 0.0),
        unreadable=tuple(found[UNREADABLE]),
        strangers=tuple(found[STRANGER]),
        versions=_versions(store, told),
    )


def _versions(store: Store, told: Mapping[str, Any]) -> Mapping[int, str]:
    """Read the versions of a table that keeps them; empty for other stores."""
    rows = store.read_table("versions.parquet").to_pylist() if told.get("versions") else []
    if len(rows) != told.get("versions", 0):
        raise MissingEvidence(
            f"{store.path / 'versions.parquet'} holds {many(len(rows), 'row')}, and the observer "
            f"wrote {told['versions']:,}"
        )
    return {row["at_us"]: ": ".join(word for word in (row["version"], row["writer"]) if word) for row in rows}


def _glitches(store: Store, told: Mapping[str, Any], keys: Sequence[str]) -> Mapping[str, list[Glitch]]:
    """Read the glitches by kind; empty for runs of older versions."""
    found: dict[str, list[Glitch]] = {UNREADABLE: [], STRANGER: []}
    rows = store.read_table("glitches.parquet").to_pylist() if "glitches" in told else []
    if len(rows) != told.get("glitches", 0):
        raise MissingEvidence(
            f"{store.path / 'glitches.parquet'} holds {many(len(rows), 'row')}, and the observer "
            f"wrote {told['glitches']:,}"
        )
    for row in rows:
        name = quoted(row["name"]) if row["kind"] == STRANGER else _name(keys[row["campaign"]], row["name"])
        found[row["kind"]].append(Glitch(name, row["text"], row["from_us"], row["until_us"] or None))
    return found


def _name(key: str, window: str) -> str:
    return f"{key}[{quoted(window)}]" if window else key
