"""Files of a run that contradict each other, whatever became of their digests: a run whose
evidence is gone is never a PASS.

`refuse_other_plan` is about files without which nothing can be judged. What `found` names costs a PASS and nothing
else: a wrong count stays wrong when the looks at it are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from generators.reel import Reel
from generators.tape import Tape
from harness.judging.readings import LogTable, parts_of
from harness.measuring import processed
from harness.model import MAX_SERVERS, RunSpec, UsageError
from harness.store import MissingEvidence, Store, unless_missing
from harness.stored import LOG, OBSERVED, Plan, Sealed, StoredRun
from harness.watching.sampler import sampled_keys

# Looks go on all the time: those of real runs on a crowded machine covered 99 % of it.
LOOKED_SHARE = 0.8
REACHED = ("drained", "unsettled")  # how an engine reaches the end of the log


def refuse_other_plan(run: StoredRun) -> None:
    """Before anything is made from a spec that is not the run's."""
    for what in _other_plan(run.spec, run.plan):
        raise MissingEvidence(f"{run.store.path / 'spec.json'} and plan.json contradict each other: {what}")


def _other_plan(spec: RunSpec, plan: Plan) -> Iterator[str]:
    if spec.engine != plan.manifest.id:
        yield f"the spec names the engine {spec.engine!r}, the plan holds the manifest of {plan.manifest.id!r}"
    if spec.window_ms <= 0:
        yield f"a window of {spec.window_ms} ms holds nothing"
    # Only a tape that can be one, and is as large as the sealed one, is worth to be drawn.
    if not 0 < spec.tape.servers <= MAX_SERVERS:
        yield f"{spec.tape.servers:,} servers are none that a tape can have"
        return
    try:
        reel = Reel(spec.tape)
    except UsageError as error:  # of a workload that there is not
        yield f"the tape of the spec is none that was sealed: {error}"
        return
    if not _is_sealed(reel.load, plan.tape):
        yield f"the tape of the spec is not the one that was sealed as {plan.tape.digest}"
    if not _is_sealed(reel.warm_up, plan.warm_up):
        yield "the warm-up of the spec is not the one that was sealed"


def _is_sealed(tape: Tape | None, sealed: Sealed | None) -> bool:
    if tape is None or sealed is None:
        return tape is None and sealed is None
    return tape.total == sealed.total and tape.digest() == sealed.digest


def found(run: StoredRun) -> tuple[str, ...]:
    """In words."""
    reasons = [*_of_sends(run), *_of_looks(run), *_of_verdict(run)]
    if run.engine.state in REACHED:
        reasons += [*_of_progress(run), *_of_batches(run), *_of_samples(run)]
    return (*reasons, *_of_unread(run))


def _of_unread(run: StoredRun) -> Iterator[str]:
    for name in run.unread:
        if run.store.has(name):
            yield f"the history says that {name} could not be written, and it is there"


def _of_sends(run: StoredRun) -> Iterator[str]:
    certificate, sends = run.certificate, run.sends
    booked = {"slices": sends.num_rows, **{name: _sum(sends, name) for name in ("sent", "acked")}}
    told = {"slices": certificate.slices, "sent": certificate.sent, "acked": certificate.acknowledged}
    if wrong := [name for name in told if told[name] != booked[name]]:
        name = wrong[0]
        yield f"sends.parquet books {booked[name]:,} {name} where the load certificate says {told[name]:,}"


def _of_progress(run: StoredRun) -> Iterator[str]:
    """What drained by its own offsets has told of all of the log. A checkpoint of Spark's may say it instead, unless
    the job is one of ours, which all write lines too."""
    manifest, lines = run.manifest, processed.told(run.store)
    if not manifest.progress:
        if lines:
            yield "progress.jsonl holds lines of an engine that reports no progress by its manifest"
        return
    if manifest.evidence != "none":
        if manifest.shipped and not lines:
            yield "progress.jsonl holds no line, and the engine writes one for each batch"
        return
    if any(run.store.history("anew")) or LOG in run.unread:  # offsets began from 0 again; nobody knows them
        return
    reached = {p: max(line.offsets.get(p, 0) for line in lines) for p in {p for line in lines for p in line.offsets}}
    for partition, end in _ends(run.log).items():
        if reached.get(partition, 0) < end:
            yield (
                f"progress.jsonl says that {reached.get(partition, 0):,} records of partition {partition} were done, "
                f"and the engine had drained {end:,} by its own offsets"
            )
            return


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
        yield "somebody looked at the results, which nobody can by the manifest in plan.json"
    if observed != run.store.has("samples.parquet"):
        there, gone = ("the history", "samples.parquet") if observed else ("samples.parquet", "the history")
        yield f"{there} says that somebody looked at the results, and {gone} does not"
    if run.engine.state not in ("unserved", "no-memory", "no-room"):  # else nobody could look
        yield from _of_closed_eyes(run.store)


def _of_closed_eyes(store: Store) -> Iterator[str]:
    """Looks from the beginning of the load to its end: what nobody looked at can't have been seen to be right. A pause
    between two looks is another thing: a fault may have kept the results from every reader."""
    looked_s = store.told("observer", "wall_s", float)
    begun_ms, ended_ms = (store.told(kind, "at_ms", int) for kind in ("epoch", "engine"))
    if not (looked_s and begun_ms and ended_ms):
        return
    whole_s = (ended_ms[-1] - begun_ms[-1]) / 1000
    if looked_s[0] < LOOKED_SHARE * whole_s:
        yield (
            f"the observer looked at the results for {looked_s[0]:.1f} s of the {whole_s:.1f} s from the beginning of "
            "the load to the end: what it would have seen in the rest is unknown"
        )


def _of_samples(run: StoredRun) -> Iterator[str]:
    """The load came out as counts, and the looks at them show none of it."""
    samples = unless_missing(lambda: run.samples)
    if samples is None or samples.num_rows or OBSERVED in run.unread:
        return
    looked = sampled_keys(run.spec.tape)
    expected = run.oracle.settle(run.planned, run.epoch_ms).cell
    if np.isin(run.oracle.codes.keys(expected), looked).any() and run.rows:
        yield "samples.parquet holds no change of a count, although observed.parquet holds counts of the load"


def _of_verdict(run: StoredRun) -> Iterator[str]:
    """An earlier verdict had seen counts. Its exact number may be read otherwise by a newer version."""
    if not run.store.has("verdict.json"):
        return
    verdict = unless_missing(lambda: run.verdict)
    if OBSERVED in run.unread:
        return
    if verdict and verdict.totals.get("counted", 0) and not run.rows:
        yield f"observed.parquet holds nothing, and an earlier verdict had counted {verdict.totals['counted']:,} events"


def _sum(table: pa.Table, name: str) -> int:
    return int(np.sum(np.asarray(table.column(name).to_numpy(), dtype=np.int64)))
