"""Conflicts of values that are each allowed alone: a run of them would be impossible, or could not be judged.

Each function below refuses one kind of conflict, with a message that names the value to change.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields

from harness.config import load_workers, masters
from harness.config.preconditions import impossible
from harness.engines import own_options, template
from harness.evidence.changed_query import asked_of
from harness.model import (
    EVENT_TIME,
    HALF_WRITTEN,
    MAX_SERVERS,
    EngineManifest,
    RunSpec,
    SinkClaim,
    UsageError,
    is_remote_master,
    workers_of_master,
)
from harness.results import registry
from harness.util.suggest import wrong
from workloads.base import NEVER, Kind
from workloads.registry import codec_of, length_ms_of, oracle_of, results_of
from workloads.sentinels import closes_ms_of, group_of

# Events within the watermark need this much time from the generator to the engine.
ROAD_MS = 2000
# One process should not hold a ledger of more cells.
MAX_CELLS = 20_000_000
# More probes would be a load of their own.
MAX_PROBES_PER_S = 10_000
# None of these characters has a meaning in a pattern of keys.
KEY_PREFIX, KEY_PREFIX_LETTERS = re.compile(r"[A-Za-z0-9:._/-]+"), "letters, digits and any of : . _ / -"


def refuse_clashes(
    spec: RunSpec,
    manifest: EngineManifest,
    claim: SinkClaim,
    batch: EngineManifest | None,
    *,
    explicit_limit: bool,
    of_scenario: Collection[str] = (),
) -> None:
    """Refuse values that conflict. `batch` is the engine of a backfill. `explicit_limit`: the user gave a limit of
    events dropped as late. `of_scenario`: keys of `conf` that the scenario sets.
    """
    registry.refuse_unknown(manifest)
    if not explicit_limit:
        _of_watermark(spec, claim)
    _of_sizes(spec)
    _of_requirements(spec)
    _of_services(spec)
    _of_prefix(spec, manifest)
    _of_sql(spec, manifest)
    masters.refuse(spec, manifest)
    load_workers.refuse(spec, manifest)
    _of_recount(spec, manifest)
    _of_cores(spec, manifest)
    _of_options(spec, manifest, of_scenario)
    _of_bounds(spec, manifest, claim)
    _of_time(spec, manifest, claim)
    _of_states(spec, manifest, claim)
    _of_history(spec, manifest)
    if batch:
        _of_backfill(spec, manifest, batch)
    elif spec.backfill_kill:
        raise UsageError("backfill_kill kills the batch job of backfill, but backfill is empty. Also give --backfill.")
    _of_checksum(spec, manifest)
    _of_ends(spec, manifest)
    _of_final(spec, claim)
    _of_template(spec, manifest)


def _of_ends(spec: RunSpec, manifest: EngineManifest) -> None:
    if manifest.window_key == "end" and length_ms_of(spec) is None:
        raise UsageError(
            f'{manifest.id} names windows by their ends (window_key = "end" in its manifest), and the windows of '
            f"{spec.tape.workload} do not all have the same length. Name each result by the start of its window, "
            f"`opens`, and remove that line."
        )


def _of_final(spec: RunSpec, claim: SinkClaim) -> None:
    oracle, codec = oracle_of(spec), codec_of(spec.tape)
    if claim.final and spec.time == EVENT_TIME and closes_ms_of(oracle, codec, group_of(oracle, codec)) == NEVER:
        raise UsageError(
            f"The sink {claim.name} has final = true, so it writes a result when its window closes. But the cells of "
            f"{spec.tape.workload} never close (`closes` is NULL). Remove that line from the manifest, or let the "
            f"cells close."
        )


def _of_template(spec: RunSpec, manifest: EngineManifest) -> None:
    """The question decides the names that a pattern may have."""
    if manifest.source != "redis:template":
        return
    asked = results_of(spec.tape)
    if misfit := template.misfit(manifest.key, manifest.field, asked.keys, asked.parts, asked.number):
        raise UsageError(
            f"The manifest of {manifest.id}: key = {manifest.key!r} and field = {manifest.field!r} do not fit the "
            f"question of {spec.tape.workload}: {misfit}."
        )


def _of_watermark(spec: RunSpec, claim: SinkClaim) -> None:
    """Events may be too late although none may be dropped.

    Any watermark is allowed for events in order: then all late events were made late by the engine's own order of
    reading.
    """
    reach, room = spec.tape.reach_ms, max(0, spec.watermark_ms - ROAD_MS)
    if claim.late == "drop" and spec.late_dropped_max == 0 and reach > room:
        raise UsageError(
            f"disorder = {spec.disorder_name!r} reaches {reach} ms back. The watermark of {spec.watermark_ms} ms "
            f"leaves {room} ms (2 s are reserved for transport), and no event may be dropped as late. "
            f"Raise --watermark to {reach + ROAD_MS}ms, choose less disorder, or set late_dropped_max in a scenario."
        )


def _of_sizes(spec: RunSpec) -> None:
    """More events or cells than can be sent or judged."""
    length_ms = spec.tape.warm_up_ms + spec.tape.load_ms
    cells = len(results_of(spec.tape).keys) * (length_ms + spec.tape.reach_ms) // spec.window_ms
    if cells > MAX_CELLS:
        raise UsageError(
            f"campaigns = {spec.tape.campaigns:,} and probes = {spec.tape.probes:,} over windows of "
            f"{spec.window_ms} ms make about {cells:,} cells; up to {MAX_CELLS:,} can be judged. "
            "Lower campaigns or duration, or lengthen the window."
        )
    if (probes_per_s := spec.tape.probes * 1000 / spec.window_ms) > MAX_PROBES_PER_S:
        raise UsageError(
            f"probes = {spec.tape.probes:,} in each window of {spec.window_ms} ms are {probes_per_s:,.0f} records a "
            f"second; up to {MAX_PROBES_PER_S:,} are allowed. Lower probes or lengthen the window."
        )
    most_warmed_up = MAX_SERVERS // 2 - 1  # a warm-up has numbers of its own for them and for the server of the probes
    if spec.tape.warm_up and spec.tape.servers > most_warmed_up:
        raise UsageError(wrong("servers", spec.tape.servers, f"at most {most_warmed_up:,} with a warm-up"))


def _of_requirements(spec: RunSpec) -> None:
    """The input of the scenario can't have what it requires."""
    for why in impossible(spec):
        raise UsageError(why)


def _of_services(spec: RunSpec) -> None:
    """Options of Kafka and Redis need an address."""
    if spec.kafka_config and not spec.kafka:
        raise UsageError(
            wrong("kafka_config", spec.kafka_config, "the address of that Kafka as well, as --kafka HOST:PORT,")
        )
    if spec.reset and not spec.redis:
        raise UsageError(
            "reset empties an existing Redis database that streamgauge used before: name it with --redis. The "
            "embedded one is always empty."
        )
    if spec.redis and not spec.redis.startswith(("redis://", "rediss://")):
        raise UsageError(
            wrong("redis", spec.redis.rpartition("@")[2], "an address that begins with redis:// or rediss://")
        )


def _of_sql(spec: RunSpec, manifest: EngineManifest) -> None:
    """An address of PostgreSQL is for engines that write to it."""
    if not spec.sql:
        return
    if not spec.sql.startswith(("postgresql://", "postgres://")):
        raise UsageError(wrong("sql", spec.sql.rpartition("@")[2], "an address that begins with postgresql://"))
    if manifest.source != "sql":
        raise UsageError(
            f"sql is the address of PostgreSQL, and {manifest.id} writes its results elsewhere "
            f"(results = {manifest.results!r}): leave --sql out."
        )


def _of_prefix(spec: RunSpec, manifest: EngineManifest) -> None:
    """A prefix of keys is for a shared Redis only."""
    if not spec.redis_prefix:
        return
    if not spec.redis:
        raise UsageError(
            "redis_prefix is for an existing Redis that others use too: name it with --redis. The embedded one "
            "serves only this run."
        )
    if not KEY_PREFIX.fullmatch(spec.redis_prefix):
        raise UsageError(wrong("redis_prefix", spec.redis_prefix, KEY_PREFIX_LETTERS))
    if manifest.orders == "yahoo":
        raise UsageError(
            f"redis_prefix = {spec.redis_prefix!r} can't be given to {manifest.id}: the configuration of the original "
            'benchmark (orders = "yahoo") has no key for it. Leave --redis-prefix out, and name an empty database.'
        )


def _of_recount(spec: RunSpec, manifest: EngineManifest) -> None:
    if spec.recount == "spark" and manifest.simulated:
        raise UsageError(
            f'recount = "spark" reads a topic of Kafka, and {manifest.id} has none: it runs in memory. Leave it out.'
        )


def _of_cores(spec: RunSpec, manifest: EngineManifest) -> None:
    """Only a process of this machine can be pinned."""
    if not spec.cores:
        return
    if manifest.simulated:
        raise UsageError(
            f"cores = {spec.cores}: {manifest.id} is simulated and has no process to pin. Choose another engine."
        )
    if workers_of_master(spec.master):
        raise UsageError(
            f"cores = {spec.cores}: a cluster of the run is as large as its number of workers, each with one core. "
            f"Leave one of the two out."
        )
    if not spec.master.startswith("local"):
        raise UsageError(
            f"cores = {spec.cores}: with master = {spec.master!r} the engine's processes are not children of this "
            f"program, which can't pin them. Leave one of the two out."
        )


def _of_options(spec: RunSpec, manifest: EngineManifest, of_scenario: Collection[str]) -> None:
    """Options that the engine does not read, or with impossible values."""
    usual = {each.name: each.default for each in fields(spec) if each.name in own_options.CONFIG_KEYS}
    changed = {name: getattr(spec, name) for name, default in usual.items() if getattr(spec, name) != default}
    if mistake := own_options.mistake_of_config(manifest, changed):
        raise UsageError(f"{mistake}. Leave it out.")
    options = {**manifest.options, **spec.conf}
    if mistake := own_options.mistake(manifest, {key: options[key] for key in options if key not in of_scenario}):
        raise UsageError(f"conf: {mistake}. Correct it, or leave it out.")
    if mistake := own_options.mistake(manifest, {key: options[key] for key in of_scenario}):
        raise UsageError(
            f"The scenario {spec.scenario} is made for another engine: {mistake}. Choose an engine that has it, or "
            f"copy the scenario without it."
        )


def _of_bounds(spec: RunSpec, manifest: EngineManifest, claim: SinkClaim) -> None:
    """Without evidence of dropped events, the counts with and without late events are bounds, but only for values that
    never fall.
    """
    oracle = oracle_of(spec)
    falling = [value.name for value in oracle.values if value.kind is Kind.SUM]
    if claim.late != "drop" or manifest.evidence != "none" or not (falling or oracle.merges):
        return
    why = f"{', '.join(falling)} may fall" if falling else "its cells merge"
    raise UsageError(
        f"The workload {spec.workload} can't be judged with sink {claim.name!r} of engine {manifest.id}: {why}, and "
        f"the engine drops late events without a record of which ones. Choose a sink with late = 'keep', or an "
        f"engine that records them."
    )


def _of_time(spec: RunSpec, manifest: EngineManifest, claim: SinkClaim) -> None:
    """The job can't count by this time, or its results could not be judged."""
    if spec.time not in claim.times:
        whose = f"those of sink {claim.name!r} of {manifest.id} in {spec.workload}"
        raise UsageError(wrong("time", spec.time, f"one of {', '.join(claim.times)} ({whose})"))
    if spec.time == EVENT_TIME:
        return
    if oracle_of(spec).values[0].kind is not Kind.COUNT or not manifest.progress:
        raise UsageError(
            f"time = {spec.time!r} needs a workload whose first value counts events, and an engine that reports its "
            f"progress. Without progress it is unknown when the engine is done."
        )
    if claim.final:
        raise UsageError(
            f"time = {spec.time!r} can't be judged with sink {claim.name!r}. It writes a result when a window "
            f"closes, and the closing events close windows only in event time."
        )


def _of_states(spec: RunSpec, manifest: EngineManifest, claim: SinkClaim) -> None:
    """A state is read as cells with a count, and compared with the checkpoint's record of each batch."""
    if not spec.states:
        return
    oracle, whys = oracle_of(spec), []
    if manifest.evidence != "spark-checkpoint" and not manifest.states:
        whys.append(
            f"{manifest.id} leaves no Spark checkpoint (evidence = 'spark-checkpoint'), and its manifest has no "
            f"reader for its own checkpoint ('states')"
        )
    if claim.late != "drop":
        whys.append(f"the sink {claim.name!r} adds each batch to the results and keeps no state")
    if [value.kind for value in oracle.values] != [Kind.COUNT] or oracle.merges or spec.time != EVENT_TIME:
        whys.append("a state can only be judged if it holds one count per window of event time")
    if asked_of(spec.fault):
        whys.append("the expected state is unknown if the query changes during the run")
    if whys:
        raise UsageError(f"states = {spec.states} is not possible: {'; '.join(whys)}. Leave it out.")


def _of_history(spec: RunSpec, manifest: EngineManifest) -> None:
    """The job reads no files, or the side of an event at the seam would be unknown."""
    history_ms = spec.tape.history_ms
    if spec.seam != "offset" and not history_ms:
        raise UsageError(
            f"seam = {spec.seam!r} selects where files end and Kafka begins, but the run has no files. Also give "
            f"--history, or leave it out."
        )
    if not history_ms:
        return
    if not manifest.history:
        raise UsageError(
            f"history is set, but the manifest of engine {manifest.id} does not have history = true: its job for "
            f"this workload reads no files. Use --backlog, whose events are all in Kafka."
        )
    if is_remote_master(spec.master):
        raise UsageError(
            f"master = {spec.master!r} may run on other machines, but the files of history are in a folder of this "
            f"one. Leave one of them out."
        )
    if spec.time != EVENT_TIME:
        raise UsageError(
            wrong("time", spec.time, f"{EVENT_TIME!r}, because files do not record when Kafka received a record,")
        )
    both_ms = spec.tape.history_kept_ms
    if spec.seam == "time" and spec.tape.reach_ms >= both_ms:
        raise UsageError(
            f"disorder = {spec.disorder_name!r} reaches {spec.tape.reach_ms} ms back, but files and Kafka overlap "
            f"only in the last {both_ms} ms of a history of {history_ms} ms: a seam by time would lose events that "
            f"arrive later. Lengthen --history to more than four times the reach, or use --seam offset."
        )


def _of_backfill(spec: RunSpec, stream: EngineManifest, batch: EngineManifest) -> None:
    """The batch's results could not be found, or not be compared with those of the stream."""
    missing = []
    if batch.batch_sink is None:
        missing.append("drops late events, which a batch job has to count")
    elif spec.backfill_kill and HALF_WRITTEN not in batch.batch_sink.crash_points:
        missing.append(f"has no crash point {HALF_WRITTEN}, at which it has written half and can be killed")
    if not batch.progress or batch.progress_group:
        missing.append("does not report when it is done")
    if (batch.source, batch.simulated) != (stream.source, stream.simulated) or stream.source != "redis:compact":
        missing.append(f"must write its results where {stream.id} does, to Redis hashes in streamgauge's own schema")
    if spec.tape.history_ms and not batch.history:
        missing.append("reads no files")
    if missing:
        raise UsageError(
            f"backfill = {spec.backfill!r}: {batch.id} {'; it '.join(missing)}. Choose spark-batch or flink-batch."
        )
    if asked_of(spec.fault) or spec.time != EVENT_TIME or {v.kind for v in oracle_of(spec).values} != {Kind.COUNT}:
        raise UsageError("backfill needs one query that counts events in event time. Leave it out.")


def _of_checksum(spec: RunSpec, manifest: EngineManifest) -> None:
    """The job has to sum the ids, and its speed is not that of counting."""
    if spec.tape.checksum and spec.objective_p99_ms is not None:
        raise UsageError(
            "objective_p99_ms needs a measured speed, and with checksum no speed is measured. Leave one of them out."
        )
    if spec.tape.checksum and not manifest.checksum:
        raise UsageError(
            f"checksum is set, but the manifest of engine {manifest.id} does not have checksum = true: its job does "
            f"not sum event ids. Leave it out. A loss and a duplicate still can't cancel in a probe campaign, which "
            f"has one event per window."
        )
