"""Resolves a scenario file and the flags to one RunSpec with all defaults, and explains every mistake.

A key means the same in a scenario file and as a flag; flags take precedence. Nothing is started or written here.
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
from harness.config.conflicts import refuse_clashes
from harness.config.scenario_keys import KEYS, MOST_SEED, REMOVED, as_number, as_whole
from harness.engines.manifest import in_any_folder
from harness.faults import registry as faults
from harness.faults.reach import refuse_beyond
from harness.model import (
    AD_IMPRESSIONS,
    WITH_SECRETS,
    Disorder,
    EngineManifest,
    FaultSpec,
    RunSpec,
    Segment,
    SinkClaim,
    TapeSpec,
    UsageError,
    redacted,
)
from harness.util.suggest import home, is_file, nearest, short, wrong
from harness.util.toml_reader import MistakeError, WholeNumber
from workloads.base import Workload
from workloads.registry import chosen
from workloads.shipped import WORKLOADS, folder_of

ADS_PER_CAMPAIGN = 10
SLICE_MS = 20
DAY_MS = 86_400_000
WHOLE_PROFILE_NUMBERS = {
    "count": (1, 1000),
    "half_period_ms": (100, DAY_MS),
    "burst_ms": (0, DAY_MS),
    "pause_ms": (0, DAY_MS),
}
PROFILE_NUMBERS = WHOLE_PROFILE_NUMBERS | {
    "factor": (0, 1000),
    "start_per_s": (0, 10_000_000),
    "low_per_s": (0, 10_000_000),
}
OWN_KEYS = ("campaigns", "probes", "checksum", "window")  # keys that only some workloads support
SAME_NAME = (  # keys that are copied to fields of a run
    *("client", "lag_budget_ms", "trigger", "master", "checkpoint", "cores", "conf"),
    *("requires", "time", "states", "seam", "backfill_kill"),
    *("kafka", "kafka_config", "redis", "redis_prefix", "sql", "reset", "archive", "bind", "recount", "patience"),
)


# Each shipped scenario begins with a comment: its group, a colon, and what it is.
SCENARIO_GROUPS = ("correctness", "faults", "speed", "life of a job", "questions")


def scenarios() -> dict[str, str]:
    """Return what each shipped scenario is by its name."""
    return {name: what for name, (_, what) in _described().items()}


def scenario_groups() -> dict[str, dict[str, str]]:
    """Return the shipped scenarios by group."""
    found = _described().items()
    return {group: {name: what for name, (own, what) in found if own == group} for group in SCENARIO_GROUPS}


def _described() -> dict[str, tuple[str, str]]:
    """Read the group and the description of each shipped scenario."""
    firsts = {name: path.read_text(encoding="utf-8").partition("\n")[0] for name, (path, _) in _shipped().items()}
    parts = {name: firsts[name].lstrip("# ").partition(": ") for name in sorted(firsts)}
    return {name: (group, what) for name, (group, _, what) in parts.items()}


def _shipped() -> dict[str, tuple[Path, str]]:
    """The path and the workload of each scenario."""
    return {path.stem: (path, name) for name in WORKLOADS for path in folder_of(name).glob("scenarios/*.toml")}


def read_scenario(name: str) -> tuple[str, dict[str, Any]]:
    """Read a shipped scenario by name or any other by path. Return its short name and its keys."""
    shipped = _shipped()
    path, workload = (Path(name), AD_IMPRESSIONS) if name.endswith(".toml") else shipped.get(name, (Path(name), ""))
    if not workload or not is_file(path):
        names = list(scenarios())
        near = nearest(name, names)
        raise UsageError(
            f"There is no scenario {short(name)}{near}. Shipped are {', '.join(names)}; "
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
    """Resolve a run. `manifest_of` finds an engine by its id or path, with its job for a workload."""
    given = _together(_checked(scenario, f"scenario {name}"), _checked(flags, "flag"))
    values = {key: each.read(each.default) for key, each in KEYS.items() if each.default is not None} | given
    _refuse_seeds_beyond(values["seed"], values["repeat"])
    workload = chosen(values["workload"])
    _refuse_keys_of_another(workload, given)
    manifest = replace(manifest_of(values["engine"], workload.id), workload=workload.id)
    claim = _claim(manifest, values["sink"])
    preset, dials = disorder_of(values["disorder"])
    tape = _tape(values, workload, dials)
    fault = _fault(values, manifest, claim)
    refuse_beyond(fault, tape.load_ms)
    spec = RunSpec(
        scenario=name,
        engine=manifest.id,
        sink=claim.name,
        tape=faults.reshaped(tape, fault),
        disorder_name=preset,
        late_dropped_max=given.get("late_dropped_max", None if preset in LATE_PRESETS else 0),
        fault=fault,
        **_as_given(values),
    )
    batch = manifest_of(spec.backfill, workload.id) if spec.backfill else None
    of_scenario = scenario.get("conf", {})
    refuse_clashes(spec, manifest, claim, batch, explicit_limit="late_dropped_max" in given, of_scenario=of_scenario)
    return spec, manifest


def _together(scenario: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags take precedence. A flag for one setting of an engine keeps the scenario's other settings."""
    conf = {**scenario.get("conf", {}), **flags.get("conf", {})}
    return {**scenario, **flags, **({"conf": conf} if conf else {})}


def _tape(values: Mapping[str, Any], workload: Workload, dials: Disorder) -> TapeSpec:
    """The tape before a fault of the input changes it."""
    sizes = {key: values[key] if key in workload.keys else 0 for key in ("campaigns", "probes")}
    before_ms = _before_the_epoch_ms(values["warm_up"], values["history"] + values["backlog"])
    return TapeSpec(
        seed=values["seed"],
        profile=_segments(values["profile"], values["rate"], values["duration"]),
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
    )


def _fault(values: Mapping[str, Any], manifest: EngineManifest, claim: SinkClaim) -> FaultSpec:
    if values["fault"]:
        return faults.parse(values["fault"])
    return faults.default_fault(manifest, claim, values["duration"])


def _as_given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a run that depend on its keys only, not on engine and tape."""
    return {
        "window_ms": values["window"],
        "watermark_ms": values["watermark"],
        "objective_p99_ms": values.get("objective_p99_ms"),
        "declared_in": str(home(Path(values["workload"])).resolve()) if values["workload"] not in WORKLOADS else "",
        "backfill": in_any_folder(values["backfill"]),
        **{key: values[key] for key in SAME_NAME},
        "master": _master(values),
        "workers": values.get("workers", 0),
    }


def _master(values: Mapping[str, Any]) -> str:
    """A cluster of the run is a master of its own kind."""
    master, workers = values["master"], values.get("cluster")
    if not workers:
        return str(master)
    if master != KEYS["master"].default:
        raise UsageError(
            f"cluster = {workers} starts a master for this run, and master = {short(master)} names another one. Leave "
            f"one of them out."
        )
    return f"cluster[{workers}]"


def _before_the_epoch_ms(warm_up_ms: int, backlog_ms: int) -> int:
    if warm_up_ms and backlog_ms:
        raise UsageError(
            "warm_up is sent to a running engine, and backlog and history before the engine starts. Leave one of "
            "them out."
        )
    return warm_up_ms or backlog_ms


def _refuse_keys_of_another(workload: Workload, given: Mapping[str, Any]) -> None:
    for key in OWN_KEYS:
        if given.get(key) and key not in workload.keys:
            raise UsageError(
                f"{key} = {short(given[key])} has no meaning for the workload {workload.id}. Leave it out."
            )


def workload_of(keys: Mapping[str, Any]) -> str:
    """Return the id of the workload in these keys, which decides an engine's sinks."""
    return chosen(keys.get("workload", KEYS["workload"].default)).id


def rounds_of(name: str, scenario: Mapping[str, Any], flags: Mapping[str, Any]) -> int:
    """Return the number of rounds."""
    given = _together(_checked(scenario, f"scenario {name}"), _checked(flags, "flag"))
    rounds = int(given.get("repeat", KEYS["repeat"].default))
    refuse_one_database_for(rounds, given.get("redis", ""), reset=given.get("reset", False))
    return rounds


def _refuse_seeds_beyond(first: int, rounds: int) -> None:
    """Each round has the next seed."""
    if first + rounds - 1 > MOST_SEED:
        raise UsageError(wrong("seed", first, f"at most {MOST_SEED - rounds + 1:,} with {rounds} rounds"))


def refuse_one_database_for(runs: int, redis: str, *, reset: bool) -> None:
    """Refuse several runs on one existing database, unless it may be emptied before each."""
    if runs > 1 and redis and not reset:
        raise UsageError(
            f"{runs} runs share one existing Redis database, which must be empty for each: add --reset, or leave "
            f"--redis out."
        )


def public(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys or flags without secrets, as they may be saved."""
    return {key: redacted(value) if key in WITH_SECRETS else value for key, value in keys.items()}


def _checked(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Reads each value. Errors name the source of an unknown key or wrong value."""
    result = {}
    for key, value in table.items():
        if key in REMOVED:
            raise UsageError(f"{where}: {key} is no key any more. {REMOVED[key]}")
        if key not in KEYS:
            raise UsageError(
                f"{where}: unknown key {short(key)} (= {short(value)}); "
                f"the keys are {', '.join(KEYS)}{nearest(key, KEYS)}."
            )
        try:
            result[key] = KEYS[key].read(value, key)
        except MistakeError as mistake:
            raise UsageError(f"{where}: {mistake}") from None
    return result


def _claim(manifest: EngineManifest, sink: str) -> SinkClaim:
    names = [claim.name for claim in manifest.sinks]
    if sink and sink not in names:
        raise UsageError(
            wrong("sink", sink, f"one of {', '.join(names)} (those of engine {manifest.id})", nearest(sink, names))
        )
    return manifest.sink(sink or names[0])


def disorder_of(value: str | Mapping[str, Any]) -> tuple[str, Disorder]:
    """Parse `mobile`, `mobile,late_share=0.01`, `skew_max_ms=50`, or a table of dials with an optional `preset`."""
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
        preset = "none" if "=" in words[0] else words.pop(0)
        dials: Mapping[str, Any] = dict(word.partition("=")[::2] for word in words)
        if len(dials) < len(words):
            raise UsageError(wrong("disorder", value, "each dial once"))
    else:
        preset, dials = value.get("preset", "none"), {k: v for k, v in value.items() if k != "preset"}
    if not isinstance(preset, str) or preset not in PRESETS:
        raise UsageError(
            wrong("disorder", preset, f"one of {', '.join(PRESETS)}, or dial=value,", nearest(str(preset), PRESETS))
        )
    settings: dict[str, Any] = {dial: _dial(dial, given) for dial, given in dials.items()}
    changed = replace(PRESETS[preset], **settings)
    _refuse_clashing_dials(changed)
    return preset if not dials else f"{preset}+", changed


def _dial(dial: str, value: Any) -> int | float:
    kinds = {each.name: each.type for each in fields(Disorder)}
    if dial not in kinds:
        raise UsageError(
            f"disorder: unknown dial {short(dial)}; the dials are {', '.join(kinds)}{nearest(dial, kinds)}."
        )
    if dial.endswith("_share"):
        share = as_number(value)
        if share is None or not 0 <= share <= 1:
            raise UsageError(wrong(f"disorder.{dial}", value, "a share from 0 to 1"))
        return share
    low = -3_600_000 if dial.startswith("skew") else 0
    number: int = WholeNumber(low, 3_600_000, as_whole)(f"disorder.{dial}", value)
    return number


def _refuse_clashing_dials(dials: Disorder) -> None:
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
            known = f"{', '.join(allowed) or 'none'}{nearest(key, allowed)}"
            raise UsageError(f"profile: unknown key {short(key)}; the keys of {kind} are {known}.")
        options[key] = _profile_number(key, value)
    _refuse_longer_than_the_load(kind, options, duration_ms)
    return build(rate, duration_ms, **options)


def _profile_number(key: str, value: Any) -> int | float:
    is_whole = key in WHOLE_PROFILE_NUMBERS
    number = as_whole(value) if is_whole else as_number(value)
    low, high = PROFILE_NUMBERS[key]
    if number is None or not low <= number <= high:
        raise UsageError(
            wrong(f"profile.{key}", value, f"a {'whole ' if is_whole else ''}number from {low:,} to {high:,}")
        )
    return number


def _refuse_longer_than_the_load(kind: str, options: Mapping[str, Any], duration_ms: int) -> None:
    often = options.get("count", 1) if kind == "burst" else 1
    lengths_ms = {"burst_ms": options.get("burst_ms") or 1, "pause_ms": options.get("pause_ms", 0)}
    for key, length_ms in lengths_ms.items():
        if often * length_ms >= duration_ms > 1:
            limit = f"less than the duration ({duration_ms} ms)" + (f", {often} times" if often > 1 else "")
            raise UsageError(wrong(f"profile.{key}", length_ms, limit))
