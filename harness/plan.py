"""From a scenario file and the flags to one RunSpec with every default resolved and every mistake explained.

A key means the same in a scenario file and as a flag; flags win. Nothing is started or written here.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from generators.disorder import LATE_PRESETS, PRESETS
from generators.profiles import PROFILES
from harness.explain import home, is_file, nearest, wrong
from harness.faults import registry as faults
from harness.faults.reach import refuse_beyond
from harness.judging.asked import asked_of
from harness.model import (
    AD_IMPRESSIONS,
    EVENT_TIME,
    MAX_SERVERS,
    Disorder,
    EngineManifest,
    RunSpec,
    Segment,
    SinkClaim,
    TapeSpec,
    UsageError,
    redacted,
)
from harness.settings import KEYS, Wrong, as_number
from workloads.base import Kind, Workload
from workloads.registry import WORKLOADS, chosen, folder_of, oracle_of, results_of

ADS_PER_CAMPAIGN = 10
SLICE_MS = 20
# "Inside the watermark" leaves this much for the road from the generator to the engine.
ROAD_MS = 2000
OWN_KEYS = ("campaigns", "probes", "checksum", "window")  # which not every workload understands
# More cells than this, and the ledger is no longer something one process should hold.
MAX_CELLS = 20_000_000
# More probes than this, and they are no probes but a load.
MAX_PROBES_PER_S = 10_000
REMOTE_MASTERS = ("spark://", "yarn", "k8s://")


def scenarios() -> dict[str, str]:
    """The shipped scenarios of all workloads, each with its first comment line."""
    found = {name: path.read_text(encoding="utf-8").splitlines() for name, (path, _) in sorted(_shipped().items())}
    return {name: lines[0].lstrip("# ") for name, lines in found.items()}


def _shipped() -> dict[str, tuple[Path, str]]:
    """Where each scenario lies, and of which workload it is."""
    return {path.stem: (path, name) for name in WORKLOADS for path in folder_of(name).glob("scenarios/*.toml")}


def read_scenario(name: str) -> tuple[str, dict[str, Any]]:
    """A shipped scenario by name or anybody's by path; its short name and its keys."""
    shipped = _shipped()
    path, workload = (Path(name), AD_IMPRESSIONS) if name.endswith(".toml") else shipped.get(name, (Path(name), ""))
    if not workload or not is_file(path):
        names = list(scenarios())
        near = nearest(name, names)
        raise UsageError(
            f"There is no scenario {name!r}{near}. Shipped are {', '.join(names)}; "
            "any other is the path of a .toml file."
        )
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
        return path.stem, keys if workload == AD_IMPRESSIONS else {"workload": workload, **keys}
    except OSError as error:
        raise UsageError(f"The scenario {path} can't be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The scenario {path} is not TOML: {error}.") from None


def resolve(
    name: str, scenario: Mapping[str, Any], flags: Mapping[str, Any], manifest_of: Callable[[str, str], EngineManifest]
) -> tuple[RunSpec, EngineManifest]:
    """Everything decided. `manifest_of` finds an engine by its id or path, with its job of a workload."""
    given = _checked(scenario, f"scenario {name}") | _checked(flags, "flag")
    values = {key: each.read(each.default) for key, each in KEYS.items() if each.default is not None} | given
    workload = chosen(values["workload"])
    _refuse_keys_of_another(workload, given)
    sizes = {key: values[key] if key in workload.keys else 0 for key in ("campaigns", "probes")}
    manifest = replace(manifest_of(values["engine"], workload.id), workload=workload.id)
    claim = _claim(manifest, values["sink"])
    preset, dials = disorder_of(values["disorder"])
    segments = _segments(values["profile"], values["rate"], values["duration"])
    usual = faults.default_fault(manifest, claim, values["duration"])
    fault = faults.parse(values["fault"]) if values["fault"] else usual
    refuse_beyond(fault, sum(segment.duration_ms for segment in segments))
    before_ms = _before_the_epoch_ms(values["warm_up"], values["history"] + values["backlog"])
    tape = faults.reshaped(
        TapeSpec(
            seed=values["seed"],
            profile=segments,
            servers=values["servers"],
            slice_ms=SLICE_MS,
            partitions=values["partitions"],
            campaigns=sizes["campaigns"],
            ads_per_campaign=ADS_PER_CAMPAIGN,
            disorder=dials,
            probes=sizes["probes"],
            probe_every_ms=values["window"],
            checksum=values["checksum"],
            warm_up=PROFILES["steady"](values["rate"], before_ms) if before_ms else (),
            waits=not values["warm_up"] and bool(before_ms),
            history_ms=values["history"],
            workload=workload.id,
            declaration=workload.declaration,
        ),
        fault,
    )
    spec = RunSpec(
        scenario=name,
        engine=manifest.id,
        sink=claim.name,
        tape=tape,
        window_ms=values["window"],
        watermark_ms=values["watermark"],
        disorder_name=preset,
        late_dropped_max=given.get("late_dropped_max", None if preset in LATE_PRESETS else 0),
        fault=fault,
        objective_p99_ms=values.get("objective_p99_ms"),
        declared_in=str(home(Path(values["workload"])).resolve()) if values["workload"] not in WORKLOADS else "",
        **{key: values[key] for key in ("client", "lag_budget_ms", "trigger", "master", "checkpoint", "conf")},
        **{key: values[key] for key in ("time", "states", "seam", "backfill")},
        **{key: values[key] for key in ("kafka", "kafka_config", "redis", "reset", "archive", "web", "patience")},
    )
    _sound(spec, claim, explicit_limit="late_dropped_max" in given)
    _sound_bounds(spec, manifest, claim)
    _sound_time(spec, manifest, claim)
    _sound_states(spec, manifest, claim)
    _sound_history(spec, manifest)
    if spec.backfill:
        _sound_backfill(spec, manifest, manifest_of(spec.backfill, workload.id))
    if spec.tape.checksum and not manifest.checksum:
        raise UsageError(
            f"checksum was asked for, but the manifest of engine {manifest.id} does not claim checksum = true: it "
            "counts events and does not sum their ids. Leave it out: even so nothing can cancel in a probe campaign, "
            "which holds one event in a window."
        )
    return spec, manifest


def _before_the_epoch_ms(warm_up_ms: int, backlog_ms: int) -> int:
    if warm_up_ms and backlog_ms:
        raise UsageError(
            "warm_up is sent before the load to an engine that is running, and backlog and history before it starts. "
            "Leave one of them out."
        )
    return warm_up_ms or backlog_ms


def _refuse_keys_of_another(workload: Workload, given: Mapping[str, Any]) -> None:
    for key in OWN_KEYS:
        if given.get(key) and key not in workload.keys:
            raise UsageError(f"{key} = {given[key]!r} says nothing to the workload {workload.id}. Leave it out.")


def rounds_of(name: str, scenario: Mapping[str, Any], flags: Mapping[str, Any]) -> int:
    """How many fresh runs are asked for."""
    given = _checked(scenario, f"scenario {name}") | _checked(flags, "flag")
    rounds = int(given.get("repeat", KEYS["repeat"].default))
    refuse_one_database_for(rounds, given.get("redis", ""), reset=given.get("reset", False))
    return rounds


def refuse_one_database_for(runs: int, redis: str, *, reset: bool) -> None:
    """Several runs need one that may be emptied before each."""
    if runs > 1 and redis and not reset:
        raise UsageError(
            f"{runs} runs share one existing Redis database, and each has to find it empty: add --reset, or leave "
            "--redis out."
        )


def public(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys or flags as they may be saved: nothing secret in them."""
    return {**keys, "redis": redacted(keys["redis"])} if "redis" in keys else dict(keys)


def _checked(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Each given value, read; unknown keys and wrong values are told from whom they come."""
    result = {}
    for key, value in table.items():
        if key not in KEYS:
            raise UsageError(
                f"{where}: unknown key {key!r} (= {value!r}); the keys are {', '.join(KEYS)}{nearest(key, KEYS)}."
            )
        try:
            result[key] = KEYS[key].read(value)
        except Wrong as allowed:
            raise UsageError(f"{where}: {wrong(key, value, str(allowed))}") from None
    return result


def _claim(manifest: EngineManifest, sink: str) -> SinkClaim:
    names = [claim.name for claim in manifest.sinks]
    if sink and sink not in names:
        raise UsageError(
            wrong("sink", sink, f"one of {', '.join(names)} (those of engine {manifest.id})", nearest(sink, names))
        )
    return manifest.sink(sink or names[0])


def disorder_of(value: str | Mapping[str, Any]) -> tuple[str, Disorder]:
    """`mobile`, `mobile,late_share=0.01`, `skew_max_ms=50`, or a table of dials with an optional `preset`."""
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
        preset = "none" if "=" in words[0] else words.pop(0)
        dials: Mapping[str, Any] = dict(word.partition("=")[::2] for word in words)
    else:
        preset, dials = value.get("preset", "none"), {k: v for k, v in value.items() if k != "preset"}
    if not isinstance(preset, str) or preset not in PRESETS:
        raise UsageError(
            wrong("disorder", preset, f"one of {', '.join(PRESETS)}, or dial=value,", nearest(str(preset), PRESETS))
        )
    settings: dict[str, Any] = {dial: _dial(dial, given) for dial, given in dials.items()}
    changed = replace(PRESETS[preset], **settings)
    _sound_disorder(changed)
    return preset if not dials else f"{preset}+", changed


def _dial(dial: str, value: Any) -> int | float:
    kinds = {each.name: each.type for each in fields(Disorder)}
    if dial not in kinds:
        raise UsageError(f"disorder: unknown dial {dial!r}; the dials are {', '.join(kinds)}{nearest(dial, kinds)}.")
    number = as_number(value)
    if dial.endswith("_share"):
        if number is None or not 0 <= number <= 1:
            raise UsageError(wrong(f"disorder.{dial}", value, "a share from 0 to 1"))
        return number
    low = -3_600_000 if dial.startswith("skew") else 0
    if number is None or number != int(number) or not low <= number <= 3_600_000:
        raise UsageError(wrong(f"disorder.{dial}", value, f"a whole number from {low:,} to 3,600,000"))
    return int(number)


def _sound_disorder(dials: Disorder) -> None:
    pairs = (("skew_min_ms", "skew_max_ms"), ("late_min_ms", "late_max_ms"))
    for low, high in pairs:
        if getattr(dials, low) > getattr(dials, high):
            raise UsageError(wrong(f"disorder.{low}", getattr(dials, low), f"at most {high} ({getattr(dials, high)})"))
    needs = (
        ("duplicate_share", "duplicate_gap"),
        ("silent_servers", "silent_ms"),
        ("future_share", "future_ms"),
        ("delay_scale_ms", "delay_max_ms"),
    )
    for dial, other in needs:
        if getattr(dials, dial) and not getattr(dials, other):
            raise UsageError(
                wrong(f"disorder.{other}", 0, f"a number above 0, because {dial} is {getattr(dials, dial)},")
            )


def _segments(profile: Any, rate: float, duration_ms: int) -> tuple[Segment, ...]:
    kind, options = (profile, {}) if isinstance(profile, str) else (profile["kind"], dict(profile))
    options.pop("kind", None)
    build = PROFILES[kind]
    allowed = list(inspect.signature(build).parameters)[2:]
    for key, value in options.items():
        if key not in allowed:
            raise UsageError(
                f"profile: unknown key {key!r}; {kind} knows {', '.join(allowed) or 'none'}{nearest(key, allowed)}."
            )
        number = as_number(value)
        whole = not key.endswith("_per_s") and key != "factor"
        if (
            number is None
            or number < 0
            or (whole and number != int(number))
            or (key in ("count", "half_period_ms") and number < 1)
        ):
            raise UsageError(wrong(f"profile.{key}", value, "a number that is not negative"))
        options[key] = int(number) if whole else number
    often = options.get("count", 1) if kind == "burst" else 1
    longest = [k for k in ("burst_ms", "pause_ms") if often * options.get(k, 0) >= duration_ms]
    if longest:
        limit = f"less than the duration ({duration_ms} ms)" + (f", {often} times" if often > 1 else "")
        raise UsageError(wrong(f"profile.{longest[0]}", options[longest[0]], limit))
    return build(rate, duration_ms, **options)


def _sound(spec: RunSpec, claim: SinkClaim, explicit_limit: bool) -> None:
    """What each value allows alone but they do not allow together."""
    reach, room = spec.tape.reach_ms, max(0, spec.watermark_ms - ROAD_MS)
    # What comes in order may have any watermark: all that is late then was made late by the engine's own reading.
    if claim.late == "drop" and spec.late_dropped_max == 0 and reach > room and not explicit_limit:
        raise UsageError(
            f"disorder = {spec.disorder_name!r} reaches {reach} ms back, but the watermark of {spec.watermark_ms} ms "
            f"leaves {room} ms (2 s are kept for transport) and none may be dropped as late. "
            f"Raise --watermark to {reach + ROAD_MS}ms, turn the disorder down, or set late_dropped_max in a scenario."
        )
    length_ms = spec.tape.warm_up_ms + spec.tape.load_ms
    cells = len(results_of(spec.tape).keys) * (length_ms + reach) // spec.window_ms
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
    most_warmed_up = MAX_SERVERS // 2 - 1  # a warm-up numbers them and that of the probes anew
    if spec.tape.warm_up and spec.tape.servers > most_warmed_up:
        raise UsageError(wrong("servers", spec.tape.servers, f"at most {most_warmed_up:,} with a warm-up"))
    if spec.kafka_config and not spec.kafka:
        raise UsageError(
            wrong("kafka_config", spec.kafka_config, "the address of that Kafka beside it, as --kafka HOST:PORT,")
        )
    if spec.reset and not spec.redis:
        raise UsageError(
            "reset empties an existing Redis database of ours: name it with --redis. The embedded one is always empty."
        )
    if spec.redis and not spec.redis.startswith(("redis://", "rediss://")):
        raise UsageError(
            wrong("redis", spec.redis.rpartition("@")[2], "an address that begins with redis:// or rediss://")
        )
    _sound_master(spec)


def _sound_bounds(spec: RunSpec, manifest: EngineManifest, claim: SinkClaim) -> None:
    """Without evidence of what was dropped as late, folding fewer events and all of them gives bounds: of values that
    only grow."""
    oracle = oracle_of(spec)
    falling = [value.name for value in oracle.values if value.kind is Kind.SUM]
    if claim.late != "drop" or manifest.evidence != "none" or not (falling or oracle.merges):
        return
    why = f"{', '.join(falling)} may fall" if falling else "its cells merge"
    raise UsageError(
        f"The workload {spec.workload} can't be judged with sink {claim.name!r} of engine {manifest.id}: {why}, and it "
        "drops late events without evidence of which. Take a sink with late = 'keep', or an engine that leaves "
        "evidence."
    )


def _sound_time(spec: RunSpec, manifest: EngineManifest, claim: SinkClaim) -> None:
    """Where the job can't count by it, or nobody could tell what it made of it."""
    if spec.time not in claim.times:
        whose = f"those of sink {claim.name!r} of {manifest.id} in {spec.workload}"
        raise UsageError(wrong("time", spec.time, f"one of {', '.join(claim.times)} ({whose})"))
    if spec.time == EVENT_TIME:
        return
    if oracle_of(spec).values[0].kind is not Kind.COUNT or not manifest.progress:
        raise UsageError(
            f"time = {spec.time!r} needs a workload whose first value counts events, and an engine that tells its "
            "progress: else nobody knows when it has answered."
        )
    if claim.final:
        raise UsageError(
            f"time = {spec.time!r} can't be judged of sink {claim.name!r}: its results come when a window is closed, "
            "and the events that close the last ones do so by their own time alone."
        )


def _sound_states(spec: RunSpec, manifest: EngineManifest, claim: SinkClaim) -> None:
    """A state is read as cells with a count, and held against what Spark's checkpoint says of each batch."""
    if not spec.states:
        return
    oracle, whys = oracle_of(spec), []
    if manifest.evidence != "spark-checkpoint":
        whys.append(f"{manifest.id} leaves no checkpoint of Spark's (evidence = 'spark-checkpoint')")
    if claim.late != "drop":
        whys.append(f"the sink {claim.name!r} adds each batch to the results, and keeps no state")
    if [value.kind for value in oracle.values] != [Kind.COUNT] or oracle.merges or spec.time != EVENT_TIME:
        whys.append("a state can be judged of one count in windows of the events' own time")
    if asked_of(spec.fault):
        whys.append("a state that answers two questions is none that is known")
    if whys:
        raise UsageError(f"states = {spec.states} is not possible: {'; '.join(whys)}. Leave it out.")


def _sound_history(spec: RunSpec, manifest: EngineManifest) -> None:
    """Where the job reads no files, or nobody could tell which side of a seam an event belongs to."""
    history_ms = spec.tape.history_ms
    if spec.seam != "offset" and not history_ms:
        raise UsageError(wrong("seam", spec.seam, "history beside it: without files there is no seam"))
    if not history_ms:
        return
    if not manifest.history:
        raise UsageError(
            f"history was asked for, but the manifest of engine {manifest.id} does not claim history = true: its job "
            "of this workload reads no files. Take --backlog, whose events all lie in Kafka."
        )
    if spec.master.startswith(REMOTE_MASTERS):
        raise UsageError(
            f"master = {spec.master!r} may be on other machines, and history lies in a folder of this one."
        )
    if spec.time != EVENT_TIME:
        raise UsageError(wrong("time", spec.time, f"{EVENT_TIME!r}, for files do not say when Kafka had a record,"))
    both_ms = spec.tape.history_kept_ms
    if spec.seam == "time" and spec.tape.reach_ms >= both_ms:
        raise UsageError(
            f"disorder = {spec.disorder_name!r} reaches {spec.tape.reach_ms} ms back, but files and Kafka both have "
            f"only the last {both_ms} ms of a history of {history_ms} ms: a seam by time would lose what comes later. "
            "Lengthen --history to more than four times the reach, or take --seam offset."
        )


def _sound_backfill(spec: RunSpec, stream: EngineManifest, batch: EngineManifest) -> None:
    """Where its answer could not be found, or not be held against that of the stream."""
    missing = []
    if not any(claim.late == "keep" for claim in batch.sinks):
        missing.append("drops late events, which a batch has to count")
    if not batch.progress:
        missing.append("does not tell when it has done all")
    if (batch.source, batch.simulated) != (stream.source, stream.simulated) or stream.source != "redis:compact":
        missing.append(f"has to leave its results where {stream.id} does, in hashes of Redis in our own schema")
    if spec.tape.history_ms and not batch.history:
        missing.append("reads no files")
    if missing:
        raise UsageError(f"backfill = {spec.backfill!r}: {batch.id} {'; it '.join(missing)}. Take spark-batch.")
    if asked_of(spec.fault) or spec.time != EVENT_TIME or {v.kind for v in oracle_of(spec).values} != {Kind.COUNT}:
        raise UsageError(
            "backfill holds a batch against one question that counts events by their own time. Leave it out."
        )


def _sound_master(spec: RunSpec) -> None:
    """A remote master can't reach our loopback services, nor a folder of this machine."""
    if not spec.master.startswith(("local", *REMOTE_MASTERS)):
        raise UsageError(wrong("master", spec.master, "local[*], local-cluster[...], spark://, yarn or k8s://"))
    host = spec.master.removeprefix("spark://").partition(":")[0]
    if spec.master.startswith("local") or host in ("127.0.0.1", "localhost", "[::1]"):
        return
    missing = [
        flag
        for flag, value in (("--kafka", spec.kafka), ("--redis", spec.redis), ("--checkpoint", spec.checkpoint))
        if not value
    ]
    if missing:
        raise UsageError(
            f"master = {spec.master!r} is on other machines, which can't reach services and folders of this one: "
            f"also name {', '.join(missing)} (the checkpoint on storage that the whole cluster sees)."
        )
