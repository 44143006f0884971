"""Find files of a run that contradict each other, independently of their digests.

A run with missing evidence is never a PASS. `refuse_other_plan` checks the files without which nothing can be judged. A
contradiction that `found` returns only prevents a PASS: a wrong count stays wrong when the polls of it are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from generators.schedule import Schedule
from generators.tape import Tape
from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import LogTable, parts_of
from harness.judging import impossible_progress, progress_curve, verdict_file
from harness.judging.recounted import Recounted, digest_of
from harness.judging.stored_run import LOG, OBSERVED, Sealed, StoredRun
from harness.model import EVENT_TIME, MAX_SERVERS, UsageError
from harness.results.sampler import sampled_keys
from harness.rundir.missing_evidence import MissingEvidence, unless_missing
from harness.rundir.store import Store
from harness.util.texts import many

# Polls go on all the time: those of real runs on a crowded machine covered 99 % of it.
LOOKED_SHARE = 0.8
ENDS_OF_TRANSACTIONS = 2  # at most, in each partition, if a fault writes transactions
REACHED = ("drained", "unsettled")  # states of an engine that reached the end of the log
SEALS_SPEC = 4  # from this schema on plan.json holds the spec


def refuse_other_plan(run: StoredRun) -> None:
    """Refuse a spec that is not the sealed one, before anything is derived from it."""
    for what in _other_plan(run):
        raise MissingEvidence(f"{run.store.path / 'spec.json'} and plan.json contradict each other: {what}")


def _other_plan(run: StoredRun) -> Iterator[str]:
    spec, plan = run.spec, run.plan
    if (schema := run.store.schema()) is not None and (plan.spec is None) is not (schema < SEALS_SPEC):
        yield f"the plan has {'no' if plan.spec is None else 'a'} sealed spec, and owner.json names schema {schema}"
    elif keys := [*_unlike(run.store.read_json("spec.json"), plan.spec or run.store.read_json("spec.json"))]:
        yield f"the sealed spec has other values of {', '.join(keys)}"
    if spec.engine != plan.manifest.id:
        yield f"the spec names the engine {spec.engine!r}, the plan holds the manifest of {plan.manifest.id!r}"
    if spec.window_ms <= 0:
        yield f"a window of {spec.window_ms} ms holds nothing"
    # Draw the tape only if it is valid and as large as the sealed one.
    if not 0 < spec.tape.servers <= MAX_SERVERS:
        yield f"{spec.tape.servers:,} servers are impossible in a tape"
        return
    try:
        schedule = Schedule(spec.tape)
    except UsageError as error:  # the workload does not exist
        yield f"the tape of the spec was not sealed: {error}"
        return
    if not _is_sealed(schedule.load, plan.tape):
        yield f"the tape of the spec is not the one that was sealed as {plan.tape.digest}"
    if not _is_sealed(schedule.warm_up, plan.warm_up):
        yield "the warm-up of the spec is not the one that was sealed"


def _unlike(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the keys with different values; nested keys as `tape.seed`."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        if one != other or type(one) is not type(other):
            yield path
        return
    for key in sorted(one.keys() | other.keys()):
        yield from _unlike(one.get(key, ...), other.get(key, ...), f"{path}.{key}" if path else key)


def _is_sealed(tape: Tape | None, sealed: Sealed | None) -> bool:
    if tape is None or sealed is None:
        return tape is None and sealed is None
    return tape.total == sealed.total and tape.digest() == sealed.digest


def found(run: StoredRun, expectation: Expectation, log: Ledger) -> tuple[str, ...]:
    """Return all contradictions, in words. `log` is what the log adds to each cell."""
    reasons = [
        *_of_sends(run),
        *_of_places(run),
        *_of_looks(run),
        *_of_rows(run),
        *_of_stop(run),
        *_of_verdict(run),
        *_beyond_the_log(run),
        *_of_recount(run, log),
    ]
    if run.engine.state in REACHED:
        reasons += [*_of_progress(run), *_of_batches(run), *_of_samples(run), *_of_last_looks(run, expectation)]
    return (*reasons, *_of_unread(run))


def _of_unread(run: StoredRun) -> Iterator[str]:
    for name in run.unread:
        if run.store.has(name):
            yield f"the history records that {name} could not be written, but the file exists"


def _of_sends(run: StoredRun) -> Iterator[str]:
    certificate, sends = run.certificate, run.sends
    booked = {"slices": sends.num_rows, **{name: _sum(sends, name) for name in ("sent", "acked")}}
    told = {"slices": certificate.slices, "sent": certificate.sent, "acked": certificate.acknowledged}
    if wrong := [name for name in told if told[name] != booked[name]]:
        name = wrong[0]
        yield f"sends.parquet records {booked[name]:,} {name}, but the load certificate has {told[name]:,}"


def _of_places(run: StoredRun) -> Iterator[str]:
    """The log was read in order of partition and offset, and no two records share an offset."""
    if LOG in run.unread or any(run.store.history("anew")):  # a topic made anew begins at offset 0 again
        return
    before = (-1, -1)
    for part in parts_of(run.log.select(["partition", "offset"])):
        partition, offset = (
            np.concatenate(([first], part[name])) for first, name in zip(before, ("partition", "offset"), strict=True)
        )
        follows = (np.diff(partition) > 0) | ((np.diff(partition) == 0) & (np.diff(offset) > 0))
        if not follows.all():
            row = int(np.argmin(follows)) + 1
            yield f"log.parquet holds offset {offset[row]:,} of partition {partition[row]} after a later record"
            return
        before = (partition[-1], offset[-1])


def _of_progress(run: StoredRun) -> Iterator[str]:
    """A drained engine must have reported progress to the end of the log.

    A Spark checkpoint may prove it instead, except for our own jobs, which also write progress lines.
    """
    manifest, lines = run.manifest, progress_curve.read_progress(run.store)
    if not manifest.progress:
        if lines:
            yield (
                "progress.jsonl holds lines of an engine that reports no progress by its manifest: if the job "
                "writes them, remove the line progress = false"
            )
        return
    if manifest.evidence != "none":
        if manifest.shipped and not lines:
            yield "progress.jsonl has no line, but the engine writes one for each batch"
        return
    if any(run.store.history("anew")) or LOG in run.unread:  # offsets began from 0 again, or are unknown
        return
    if any(run.store.history("still")):  # it drained by its results, because its offsets stayed behind
        return
    reached = {p: max(line.offsets.get(p, 0) for line in lines) for p in {p for line in lines for p in line.offsets}}
    for partition, end in _ends(run.log).items():
        if reached.get(partition, 0) < end:
            yield (
                f"progress.jsonl says that {reached.get(partition, 0):,} records of partition {partition} were "
                f"done, but by its offsets the engine had drained {end:,}"
            )
            return


def _beyond_the_log(run: StoredRun) -> Iterator[str]:
    """The end of a transaction takes an offset, but is no record."""
    if LOG in run.unread or any(run.store.history("anew")):  # offsets began from 0 again, or are unknown
        return
    ends = _ends(run.log)
    spare = ENDS_OF_TRANSACTIONS if any("transaction" in fault.spec.action for fault in run.faults) else 0
    if why := impossible_progress.beyond_the_log(
        progress_curve.read_progress(run.store), {part: end + spare for part, end in ends.items()}
    ):
        yield why


def _of_recount(run: StoredRun, log: Ledger) -> Iterator[str]:
    """If Spark read the log, its tasks compared what they read, before the records were sent here."""
    if LOG in run.unread:
        return
    for there in _recounts(run.store):
        by_time_of_event = run.spec.time == EVENT_TIME and not run.in_totals and run.question is None
        cells = digest_of(log, run.oracle) if there.cells and by_time_of_event else there.cells
        here = Recounted.of(run.audit, cells)
        if unlike := [field.name for field in fields(there) if getattr(there, field.name) != getattr(here, field.name)]:
            name = unlike[0]
            yield (
                f"log.parquet and what Spark's tasks read of the topic differ in {', '.join(unlike)}: "
                f"{getattr(here, name)} and {getattr(there, name)} ({name})"
            )


def _recounts(store: Store) -> Iterator[Recounted]:
    """Yield what Spark found. There is no answer if Spark failed, or if the topic did not hold the whole log."""
    optional: Any = Recounted | None
    yield from filter(None, store.values("recount", "answer", optional))


def _ends(log: LogTable) -> Mapping[int, int]:
    ends: dict[int, int] = {}
    for part in parts_of(log.select(["partition", "offset"])):
        for p in np.unique(part["partition"]):
            ends[int(p)] = max(ends.get(int(p), 0), int(part["offset"][part["partition"] == p].max()) + 1)
    return ends


def _of_batches(run: StoredRun) -> Iterator[str]:
    if run.manifest.evidence != "none" and not run.store.has("batches.json"):
        yield f"batches.json is missing, which is kept for every engine with evidence = {run.manifest.evidence!r}"


def _of_looks(run: StoredRun) -> Iterator[str]:
    observed = any(run.store.history("observer"))
    if observed and run.manifest.blind:
        yield "the results were polled, which the manifest in plan.json does not allow"
    if observed != run.store.has("samples.parquet"):
        there, gone = ("the history", "samples.parquet") if observed else ("samples.parquet", "the history")
        yield f"{there} records polls of the results, but {gone} does not"
    if run.engine.state not in ("unserved", "no-memory", "no-room"):  # otherwise polling was impossible
        yield from _of_closed_eyes(run.store)


def _of_closed_eyes(store: Store) -> Iterator[str]:
    """Polls must cover the load from start to end: unseen results can't be called right.

    A pause between two polls is no contradiction: a fault may have kept the results from every reader.
    """
    looked_s = store.values("observer", "wall_s", float)
    begun_ms, ended_ms = (store.values(kind, "at_ms", int) for kind in ("epoch", "engine"))
    if not (looked_s and begun_ms and ended_ms):
        return
    whole_s = (ended_ms[-1] - begun_ms[-1]) / 1000
    if looked_s[0] < LOOKED_SHARE * whole_s:
        yield (
            f"the observer polled the results for {looked_s[0]:.1f} s of the {whole_s:.1f} s from the beginning of "
            "the load to the end: the rest is unknown"
        )


def _of_samples(run: StoredRun) -> Iterator[str]:
    """The results hold counts of the load, but the polls show none."""
    samples = unless_missing(lambda: run.samples)
    if samples is None or samples.num_rows or OBSERVED in run.unread:
        return
    looked = sampled_keys(run.spec.tape)
    expected = run.oracle.settle(run.planned, run.epoch_ms).cell
    if np.isin(run.oracle.codes.keys(expected), looked).any() and run.has_rows:
        yield "samples.parquet holds no change of a count, although observed.parquet holds counts of the load"


def _of_rows(run: StoredRun) -> Iterator[str]:
    """Older versions did not record the number of rows."""
    seen = _last_said(run.store, "observer", "rows")
    samples = unless_missing(lambda: run.samples)
    if seen is not None and samples is not None and samples.num_rows != seen:
        yield f"samples.parquet holds {samples.num_rows:,} changes, and the observer saw {seen}"


def _of_last_looks(run: StoredRun, expectation: Expectation) -> Iterator[str]:
    """A right final count must be in the last poll, which came after the last event was processed."""
    samples = unless_missing(lambda: run.samples)
    if samples is None or not samples.num_rows or run.in_totals or OBSERVED in run.unread:
        return
    columns = (samples.column(name).to_numpy() for name in ("campaign", "window_ms", "count"))
    key, field, count = (np.asarray(column, dtype=np.int64) for column in columns)
    last = Ledger(dict(zip(run.oracle.codes.of(key, field).tolist(), count.tolist(), strict=True)))
    held = run.observed.counts
    looked = np.isin(run.oracle.codes.keys(held.cells), sampled_keys(run.spec.tape))
    wrong = {each.cell for each in expectation.differences(held)}
    cells = {*last, *held.cells[looked].tolist()} - wrong
    if unlike := sorted(cell for cell in cells if last.count(cell) != held.count(cell)):
        cell = unlike[0]
        yield (
            f"{many(len(unlike), 'count')} of observed.parquet differ from the last poll in samples.parquet, such as "
            f"{run.oracle.name(cell, run.epoch_ms)}: {held.count(cell):,} instead of {last.count(cell):,}"
        )


def _of_stop(run: StoredRun) -> Iterator[str]:
    """Older versions did not record how many rows changed."""
    counted = _last_said(run.store, "stopped", "changed")
    changed = unless_missing(lambda: run.changed_by_stop)
    if counted is not None and changed not in (None, counted):
        yield (
            f"observed.parquet and observed-after-stop.parquet differ in {many(changed or 0, 'row')}, and the run "
            f"counted {counted}"
        )


def _last_said(store: Store, kind: str, key: str) -> Any:
    return next((line.get(key) for line in reversed([*store.history(kind)])), None)


def _of_verdict(run: StoredRun) -> Iterator[str]:
    """Results are missing that an earlier verdict had counted.

    Only their absence matters: a newer version may count them differently.
    """
    if not run.store.has(verdict_file.FILE):
        return
    if unlike := verdict_file.contradiction(run.store):
        yield unlike
    verdict = unless_missing(lambda: run.verdict)
    if OBSERVED in run.unread:
        return
    if verdict and verdict.totals.get("counted", 0) and not run.has_rows:
        yield f"observed.parquet holds nothing, and an earlier verdict had counted {verdict.totals['counted']:,} events"


def _sum(table: pa.Table, name: str) -> int:
    return int(np.sum(np.asarray(table.column(name).to_numpy(), dtype=np.int64)))
