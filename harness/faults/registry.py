"""The catalogue of faults; parses plans and creates their faults.

To add a fault: a class in its family's file, and its Kind in that file's KINDS.
"""

from __future__ import annotations

import random
from dataclasses import replace

from harness.faults import (
    change,
    checkpoint,
    cluster,
    grammar,
    input,
    job,
    kafka,
    kafka_replicas,
    kill,
    network,
    postgresql,
    postgresql_disk,
    postgresql_replica,
    process,
    reader,
    redis,
    scale,
    table,
    table_kill,
)
from harness.faults.base import Context, Fault, Kind, option
from harness.faults.combine import First, Sequenced
from harness.faults.strike import Idle
from harness.model import EngineManifest, FaultSpec, RunSpec, SinkClaim, TapeSpec, UsageError, workers_of_master
from harness.services.kafka_cluster import BROKERS
from harness.util.durations import NotUnderstoodError, seconds

# The families in the order of the catalogue, each with the kinds of its files.
FAMILIES = {
    "kill": kill.KINDS,
    "input": input.KINDS,
    "kafka": (*kafka.KINDS, *kafka_replicas.KINDS),
    "process": process.KINDS,
    "cluster": cluster.KINDS,
    "scale": scale.KINDS,
    "redis": redis.KINDS,
    "postgresql": (*postgresql.KINDS, *postgresql_replica.KINDS, *postgresql_disk.KINDS),
    "table": (*table_kill.KINDS, *table.KINDS),
    "reader": reader.KINDS,
    "network": network.KINDS,
    "checkpoint": checkpoint.KINDS,
    "change": change.KINDS,
    "job": job.KINDS,
}
FAULTS: dict[str, Kind] = {
    kind.name: replace(kind, family=family) for family, kinds in FAMILIES.items() for kind in kinds
}
TWICE = ("repeat", "flip-flop", "any", "stagger")


def parse(text: str) -> FaultSpec:
    return grammar.parse(text, FAULTS)


def default_fault(manifest: EngineManifest, claim: SinkClaim, duration_ms: int) -> FaultSpec:
    """Return the most informative kill for a sink: between its last write and the commit, if the sink has that crash
    point; else in the middle of the load. An engine that can't resume gets none."""
    if not manifest.resumes:
        return parse("none")
    if "c3" in claim.crash_points:
        return parse("kill@c3:batch=3")
    return parse(f"kill@{middle(manifest, duration_ms)}")


def middle(manifest: EngineManifest, duration_ms: int) -> str:
    """Return the moment at which half of the load is processed, or due if progress is unknown."""
    finely = manifest.progress and not manifest.progress_group  # commits may be half a minute apart
    return "offset=50%" if finely else f"t>={duration_ms // 2}ms"


def links(fault: FaultSpec) -> set[str]:
    """Return the services, such as "kafka", that the engine must reach through a proxy for this plan."""
    return {link for leaf in fault.leaves if leaf.action in FAULTS for link in _links(leaf, FAULTS[leaf.action])}


def brokers(spec: RunSpec) -> int:
    """Return the number of brokers of an embedded Kafka: as many as the plan needs. Beside a cluster these are three,
    unless the plan strikes the only broker or puts a proxy before it."""
    kinds = [FAULTS[leaf.action] for leaf in spec.fault.leaves if leaf.action in FAULTS]
    needed = max((kind.brokers for kind in kinds), default=1)
    wants_one = "kafka" in links(spec.fault) or any(kind.family == "kafka" for kind in kinds)
    return max(needed, len(BROKERS)) if workers_of_master(spec.master) and not wants_one else needed


def own_disks(fault: FaultSpec) -> set[str]:
    """Return what this plan needs on separate disks, "checkpoint" or "postgresql"."""
    disks = {FAULTS[leaf.action].own_disk for leaf in fault.leaves if leaf.action in FAULTS}
    return disks - {""}


def _links(leaf: FaultSpec, kind: Kind) -> tuple[str, ...]:
    return (option(leaf, kind, "link"),) if "link" in kind.options else kind.links


def reshaped(tape: TapeSpec, fault: FaultSpec) -> TapeSpec:
    """Apply a plan's input faults to the tape."""
    for leaf in fault.leaves:
        kind = FAULTS.get(leaf.action)
        if kind is None or kind.reshape is None:
            continue
        if leaf.when.relative or fault.action in TWICE:
            raise UsageError(
                f"{leaf.text} changes the tape before the run, so it needs one explicit time, such as @t>=10s."
            )
        try:
            tape = kind.reshape(tape, leaf, kind)
        except NotUnderstoodError as why:
            raise UsageError(f"The fault {leaf.text!r} can't be parsed: {why}.") from None
    return tape


def create(spec: RunSpec, manifest: EngineManifest) -> Fault:
    return _create(spec.fault, Context(spec, manifest, manifest.sink(spec.sink)))


def _create(fault: FaultSpec, context: Context) -> Fault:
    if not fault.planned:
        return Idle(fault)
    if not fault.steps:
        kind = FAULTS[fault.action]
        # A stored plan may be older than some of the options.
        return kind.make(replace(fault, options={**kind.options, **fault.options}), context)
    times = int(fault.options.get("times", 1))
    steps = [_create(step, context) for _ in range(times) for step in fault.steps]
    if fault.action == "any":
        return First(steps)
    if fault.action == "stagger":
        longest_ms = seconds(fault.options["pause"], "stagger") * 1000
        dice = random.Random(f"stagger {context.spec.tape.seed} {fault.text}")
        return Sequenced(steps, [dice.uniform(0, longest_ms) for _ in steps])
    return Sequenced(steps)
