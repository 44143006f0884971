"""The shortest command or scenario file that resolves to the same spec as a given run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from harness.config import plan
from harness.config.scenario_keys import KEYS
from harness.engines import manifest as manifests
from harness.experiments.searching.search import OF_ONE_LOAD
from harness.install.origin import COMMAND
from harness.model import HIDDEN, EngineManifest, RunSpec, Segment, TapeSpec, UsageError, redacted
from harness.util.texts import many
from reports.command_flags import flag, number
from reports.evidence import Evidence
from reports.page import Section
from workloads.registry import workload_of

# Keys that are no flags of `run` and can only stand in a scenario file.
IN_FILES = ("profile", "servers", "probes", "late_dropped_max", "requires", "lag_budget_ms", "trigger")
ALWAYS = ("engine", "seed")  # written even with their default, so that readers need not know it


@dataclass(frozen=True)
class Recipe:
    """The input for a run: flags beside a shipped scenario, or a scenario file."""

    scenario: str
    keys: Mapping[str, Any]
    in_file: bool

    def resolve(self, manifest: EngineManifest) -> RunSpec | None:
        """Return the spec that the recipe resolves to; None if it is not valid."""
        try:
            scenario = self.keys if self.in_file else plan.read_scenario(self.scenario)[1]
            flags = {} if self.in_file else self.keys
            return plan.resolve(self.scenario, scenario, flags, beside(manifest))[0]
        except UsageError:
            return None

    def without(self, key: str) -> Recipe:
        return replace(self, keys={name: value for name, value in self.keys.items() if name != key})

    def varied(self, **changes: Any) -> str:
        """Return the command of the same run with some flags changed."""
        if not self.in_file:
            return replace(self, keys={**self.keys, **changes}).texts()[0]
        words = [word for key, value in changes.items() for word in flag(key, value)]
        return f"{self.texts()[-1]} {shlex.join(words)}"

    def texts(self) -> tuple[str, ...]:
        """Return the scenario file, if one is needed, and the command."""
        if not self.in_file:
            flags = [word for key, value in self.keys.items() for word in flag(key, value)]
            return (shlex.join([COMMAND, "run", self.scenario, *flags]),)
        lines = [f"{key} = {_toml(value)}" for key, value in self.keys.items()]
        return "\n".join([f"# {self.scenario}.toml", *lines]), f"{COMMAND} run {shlex.quote(self.scenario)}.toml"


def beside(manifest: EngineManifest) -> Callable[[str, str], EngineManifest]:
    """Return a loader of manifests that gives the run's own manifest for its engine. The engine of its batch has a name
    of its own.
    """
    return lambda name, workload: manifest if name == manifest.named else manifests.load(name, workload)


def section(evidence: Evidence) -> Section:
    spec, tape = evidence.spec, evidence.plan.tape
    recipe = recipe_of(spec, evidence.manifest)
    text = [f"{many(tape.total, 'record')} from seed {spec.tape.seed}; the digest of the tape is {tape.digest}."]
    if early := evidence.plan.warm_up:
        kind = kind_of(spec.tape)
        text.append(f"Before them come {early.total:,} of {kind}, from a tape with the digest {early.digest}.")
    text += hidden(spec.public())
    if unlike := differences(recipe.resolve(evidence.manifest), spec):
        text.append(f"This command differs from the original in {', '.join(unlike)}; spec.json has all settings.")
    return Section("reproduce", "Do it again", text=tuple(text), code=recipe.texts())


def kind_of(tape: TapeSpec) -> str:
    """Name the part of the tape that comes before the load."""
    if tape.history_ms:
        return "history and backlog" if tape.backlog_ms else "history"
    return "backlog" if tape.waits else "warm-up"


def hidden(keys: Mapping[str, Any]) -> list[str]:
    """Return a remark for each address of a server that is not complete."""
    servers = {"redis": "Redis", "sql": "PostgreSQL"}
    return [
        f"The address of {name} contained a password or options, which are not stored."
        for key, name in servers.items()
        if HIDDEN in keys.get(key, "")
    ]


def of_a_search(
    spec: RunSpec, named: str, objective_p99_ms: float, remarks: Sequence[str], *, quick: bool = False
) -> Section:
    """Return the section of a search whose runs had this spec. `named` is its engine, `remarks` are further texts."""
    name, title = "reproduce", "Do it again"
    try:
        engine = manifests.load(named, spec.workload)
    except UsageError as error:
        return Section(name, title, missing=(f"the command that made this, because its engine is not here: {error}",))
    spec = replace(spec, objective_p99_ms=objective_p99_ms)
    recipe = recipe_of(spec, engine)
    text = hidden(spec.public())
    if unlike := differences(recipe.resolve(engine), spec):
        told = f"This command differs from the original in {', '.join(unlike)}; experiment.json has all settings."
        text = [told, *text]
    *files, command = _without_a_load(recipe).texts()
    command = command.replace(f"{COMMAND} run", f"{COMMAND} search", 1) + (" --quick" if quick else "")
    return Section(name, title, text=(*text, *remarks), code=(*files, command))


def _without_a_load(recipe: Recipe) -> Recipe:
    """Drop the flags that `search` does not accept. A scenario file may have them."""
    own = {key: value for key, value in recipe.keys.items() if recipe.in_file or key not in OF_ONE_LOAD}
    return replace(recipe, keys=own)


def recipe_of(spec: RunSpec, manifest: EngineManifest) -> Recipe:
    """Return a command if flags are enough, else a file."""
    command = _shortest(Recipe(spec.scenario, keys_of(spec, manifest), in_file=False), spec, manifest)
    if not set(command.keys) & set(IN_FILES) and not differences(command.resolve(manifest), spec):
        return command
    return _shortest(Recipe(spec.scenario, keys_of(spec, manifest), in_file=True), spec, manifest)


def _shortest(recipe: Recipe, spec: RunSpec, manifest: EngineManifest) -> Recipe:
    """Drop each key that changes nothing, beginning with keys that would need a file."""
    unlike = differences(recipe.resolve(manifest), spec)
    for key in sorted(recipe.keys, key=lambda key: key not in IN_FILES):
        shorter = recipe.without(key)
        if key not in ALWAYS and differences(shorter.resolve(manifest), spec) == unlike:
            recipe = shorter
    return recipe


def differences(one: RunSpec | None, other: RunSpec) -> list[str]:
    """List the fields in which two runs differ. Passwords are not stored, and compare as equal. `requires` is left out:
    it changes no run, and older runs do not have it.
    """
    if one is None:
        return ["everything"]
    here, there = (
        {**_fields(spec), "redis": redacted(spec.redis), "tape": None, "requires": None, **_fields(spec.tape)}
        for spec in (one, other)
    )
    return [name for name in here if here[name] != there[name]]


def _fields(value: RunSpec | TapeSpec) -> dict[str, Any]:
    """getattr finds the class's default for a field that an older file lacks."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def keys_of(spec: RunSpec, manifest: EngineManifest) -> dict[str, Any]:
    """Return all keys of a scenario with the values of this run, as a person would write them."""
    special: dict[str, Any] = {
        "engine": manifest.named,
        "disorder": disorder(spec),
        "late_dropped_max": "any" if spec.late_dropped_max is None else spec.late_dropped_max,
        "fault": spec.fault.text,
        "redis": spec.public()["redis"],
        "warm_up": _milliseconds(spec.tape.warmed_ms),
        "backlog": _milliseconds(spec.tape.backlog_ms),
        "history": _milliseconds(spec.tape.history_ms),
        "workload": spec.declared_in or spec.workload,
        "workers": spec.workers or None,
        **_profile(spec, manifest),
    }
    found = {}
    unknown = set(plan.OWN_KEYS) - workload_of(spec.tape).keys
    for key in (key for key in KEYS if key not in unknown):
        value = special[key] if key in special else _plain(spec, key)
        if value not in (None, "", {}, ()):
            found[key] = value
    return found


def disorder(spec: RunSpec) -> str:
    """Return the preset and the dials that differ from it."""
    preset = spec.disorder_name.rstrip("+")
    base = asdict(plan.disorder_of(preset)[1])
    turned = {dial: value for dial, value in asdict(spec.tape.disorder).items() if value != base[dial]}
    return ",".join([preset, *(f"{dial}={value}" for dial, value in turned.items())])


def _profile(spec: RunSpec, manifest: EngineManifest) -> dict[str, Any]:
    """A constant rate is `steady`. Another shape can only come from a shipped scenario, scaled to this run's peak."""
    segments = spec.tape.profile
    duration = _milliseconds(sum(segment.duration_ms for segment in segments))
    if len(segments) == 1 and segments[0].start_per_s == segments[0].end_per_s:
        return {"profile": "steady", "rate": segments[0].start_per_s, "duration": duration}
    try:
        scenario = plan.read_scenario(spec.scenario)[1]
    except UsageError:
        return {"profile": None, "rate": None, "duration": None}
    rate = float(scenario.get("rate", KEYS["rate"].default))
    shape = {"profile": scenario.get("profile"), "duration": scenario.get("duration", KEYS["duration"].default)}
    usual, _ = plan.resolve(spec.scenario, {**shape, "rate": rate, "fault": "none"}, {}, lambda *_: manifest)
    return {**shape, "rate": rate * _peak(segments) / _peak(usual.tape.profile), "duration": duration}


def _peak(segments: tuple[Segment, ...]) -> float:
    return max(max(segment.start_per_s, segment.end_per_s) for segment in segments)


def _plain(spec: RunSpec, key: str) -> Any:
    """For keys with the name of a field of the spec, or with that name and "_ms"."""
    for holder in (spec, spec.tape):
        if hasattr(holder, key):
            return getattr(holder, key)
        if hasattr(holder, f"{key}_ms"):
            return _milliseconds(getattr(holder, f"{key}_ms"))
    return None


def _milliseconds(ms: int) -> str:
    return f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    return number(value) if isinstance(value, float) else json.dumps(value)
