"""All by which others know this program, and by which it knows its own old runs, as a listing of lines.

Tapes, labels that seed draws, names in files, words, flags. A change of a line breaks old runs, or somebody's script:
it is a decision. `python -m tests.quick.frozen` writes the listing anew.
"""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args, get_origin, get_type_hints

import msgspec
import pyarrow.parquet as pq
import typer.main

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.profiles import PROFILES, steady
from generators.schedule import Schedule
from harness.cli import app
from harness.config import plan
from harness.config.scenario_keys import KEYS
from harness.drivers import chaos as drive_chaos
from harness.drivers import gate as drive_gate
from harness.drivers import gate_calibration
from harness.engines import fake, progress
from harness.engines.manifest import load
from harness.evidence.ledger import seal_of
from harness.experiments import chaos, compare, pairing, repeat, scale
from harness.experiments.curve import kept as kept_plateaus
from harness.experiments.gating import gate, history, rounds
from harness.experiments.searching import search
from harness.faults.registry import FAULTS, create, parse, reshaped
from harness.judging import checks
from harness.judging.digests import Digests
from harness.judging.stored_run import Plan, StoredRun
from harness.measuring import measure
from harness.measuring.measurement import TIMELINE, Measurement, Recovery
from harness.model import (
    DEFAULT_SCENARIO,
    BatchLog,
    Certificate,
    EngineManifest,
    EngineReport,
    Exit,
    FaultReport,
    Outcome,
    RunSpec,
    Sentinel,
    TapeSpec,
    Verdict,
)
from harness.results.sampler import sampled_keys
from harness.rundir.store import Owner
from harness.rundir.tables import TABLES
from harness.runner import state_snapshots
from harness.selftest import clean, drive, payments, rides
from harness.selftest.by_hand import SPEC
from harness.selftest.runs import fake_run
from tests.quick.declared import TOML as ORDERS
from workloads.registry import codec_of, oracle_of
from workloads.sentinels import mark
from workloads.shipped import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
LISTING = Path(__file__).with_suffix(".txt")
EPOCH_MS = 1_750_000_000_000
PROGRAM = ("harness", "generators", "workloads", "reports", "tools")

Lines = Iterator[str]


# ---------------------------------------------------------------- Tapes

SMALL = TapeSpec(42, steady(200, 6_000), 3, 20, 4, 12, 5, PRESETS["none"], probes=7, probe_every_ms=1_000)
SPELLS = [name for name, kind in FAULTS.items() if kind.reshape is not None]
OTHERS: Mapping[str, TapeSpec] = {
    **{f"disorder {name}": replace(SMALL, disorder=preset) for name, preset in PRESETS.items()},
    **{f"profile {name}": replace(SMALL, profile=make(200.0, 6_000)) for name, make in PROFILES.items()},
    "warm-up": replace(SMALL, warm_up=steady(100, 3_000), disorder=PRESETS["mobile"]),
    "backlog": replace(SMALL, warm_up=steady(100, 3_000), waits=True, disorder=PRESETS["mobile"]),
    "history in files": replace(SMALL, warm_up=steady(100, 3_000), waits=True, history_ms=2_000),
    "checksums": replace(SMALL, checksum=True),
    "a long seed": replace(SMALL, seed=2**70 - 1),
    "a seed below 0": replace(SMALL, seed=-5),
}
DECLARED = {"orders": ORDERS, "rides": rides.DECLARED, "payments": payments.DECLARED}
FORMS = {"JSON": "", "Avro": '[event]\nformat = "avro"\n'}


def tapes() -> Lines:
    """Events by the tape, records as they are sent, counts that are expected: digests of each."""
    for name, tape in OTHERS.items():
        yield of_tape(name, replace(SPEC, tape=tape))
    for name in SPELLS:
        yield of_tape(name, replace(SPEC, tape=reshaped(SMALL, parse(f"{name}@t>=2s"))))
    for name, text in DECLARED.items():
        for form, head in FORMS.items():
            declared = json.dumps({"text": text.replace("[event.fields]", f"{head}[event.fields]"), "schema": None})
            tape = replace(SMALL, workload=name, declaration=declared, campaigns=0, probes=0, disorder=PRESETS["storm"])
            yield of_tape(f"declared {name} in {form}", replace(SPEC, tape=tape))
    for name, spec in asked().items():
        yield of_tape(f"scenario {name}", spec)
    usual, _ = plan.resolve(DEFAULT_SCENARIO, plan.read_scenario(DEFAULT_SCENARIO)[1], {}, load)
    yield f"the run of no flags: {Schedule(usual.tape).load.digest()}"


# Files, states, a second batch, readers, much state, bursts that last longer, a long window.
ASK_FOR_MORE = (
    *("backfill", "big-state", "bootstrap", "bursts", "history", "readers", "readers-week", "square-wave", "state"),
)


@cache
def asked() -> Mapping[str, RunSpec]:
    """Of each workload its scenarios, as far as the reference engine can be asked them in ten seconds."""
    found: dict[str, RunSpec] = {}
    for path in sorted(ROOT.glob("workloads/*/scenarios/*.toml")):
        name, keys = plan.read_scenario(path.stem)
        if name not in ASK_FOR_MORE:
            flags = {"engine": "reference", "fault": "none", "rate": "200", "duration": "10s"}
            flags |= {key: "4s" for key in ("warm_up", "backlog") if key in keys}
            found[name], _ = plan.resolve(name, keys, flags, load)
    assert {spec.workload for spec in found.values()} == set(WORKLOADS)
    return found


def of_tape(name: str, spec: RunSpec) -> str:
    schedule = Schedule(spec.tape)
    expected = seal_of(oracle_of(spec).plan(schedule.sealed_blocks()))
    digests = [each.digest() for each in (schedule.load, schedule.warm_up) if each]
    return f"{name}: {schedule.total} {' '.join(digests)} {of_records(spec.tape)} {expected[:32]}"


def of_records(tape: TapeSpec) -> str:
    """As they come to lie in Kafka, the harness' own too."""
    encoder, seal = Encoder(codec_of(tape), EPOCH_MS), hashlib.blake2b(digest_size=16)
    for block in Schedule(tape).blocks():
        for partition, sent in zip(block.partition, encoder.batch(block), strict=True):
            seal.update(b"%d %s %s\n" % (partition, sent["key"] or b"", sent["value"] or b""))
    for number in range(3):
        sent = encoder.mark(mark(number, 0, number, EPOCH_MS + 90_000, "closing"))
        seal.update(b"%s %s\n" % (sent["key"] or b"", sent["value"] or b""))
    return seal.hexdigest()


# ---------------------------------------------------------------- What is drawn


def labels() -> Lines:
    """Of each draw: prose that seeds it, and must never be improved."""
    found = set()
    for call, _ in calls("of"):
        if (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "Lane"
        ):
            found.add("lane " + "/".join(each for argument in call.args[1:] for each in _texts(argument)))
    for call, _ in calls("Random"):
        found |= {"dice " + "".join(_texts(argument, "*")) for argument in call.args}
    yield from sorted(each for each in found if not each.endswith(" "))


def _texts(node: ast.expr, instead: str = "") -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield str(part.value) if isinstance(part, ast.Constant) else instead


def draws() -> Lines:
    """What comes of them."""
    places = [("spark", "absolute"), ("flink", "changelog")]
    cases = [chaos.ChaosCase(engine, sink, "none", 0) for engine, sink in places]
    wide = replace(SMALL, campaigns=300)
    stagger = create(replace(SPEC, fault=parse("stagger(2s; kill@t>=2s; kill@t>=3s)")), fake.MANIFEST)
    yield f"states of a run: {state_snapshots.drawn(7, 5, 10_000)}"
    yield f"keys that are looked at: {sampled_keys(wide)[:6]} {sum(sampled_keys(wide))}"
    yield f"pauses of a stagger: {[round(ms, 6) for ms in vars(stagger)['_pauses_ms']]}"
    kinds = {name: FAULTS[name] for name in ("kill", "pause", "kafka-restart", "redis-kill")}
    yield from (f"pair of faults: {each.engine}/{each.sink} {each.fault}" for each in chaos.drawn(cases, 3, 7, kinds))
    legs = compare.runs_of(["spark", "flink", "reference"], compare.Settings(), 7)
    yield f"order of legs: {' '.join(f'{each.engine}/{each.leg}/{each.seed}' for each in legs[:9])}"
    yield f"a clean run: {json.dumps(clean.drawn(random.Random('selftest 7 3')), sort_keys=True)}"


# ---------------------------------------------------------------- Names in files

FILES: Mapping[str, Any] = {
    "owner.json": Owner,
    "spec.json": RunSpec,
    "plan.json": Plan,
    "batches.json": BatchLog,
    "digests.json": Digests,
    "verdict.json": Verdict,
    "measurement.json": Measurement,
    "recovery.json": list[Recovery],
    "history: fault": FaultReport,
    "history: certificate": Certificate,
    "history: engine": EngineReport,
    "history: mark": Sentinel,
    "experiment.json: search: settings": search.Settings,
    "experiment.json: search: units": list[search.Unit],
    "experiment.json: search: lives": list[search.Lived],
    "experiment.json: chaos: settings": drive_chaos.ChaosSelection,
    "experiment.json: chaos: done": list[chaos.Ran],
    "experiment.json: compare: settings": compare.Settings,
    "experiment.json: compare: done": list[compare.Ran],
    "experiment.json: gate: asked": drive_gate.GateRequest,
    "experiment.json: gate: found": gate.Gated,
    "experiment.json: gate: settings": rounds.Settings,
    "experiment.json: calibration: asked": gate_calibration.CalibrationRequest,
    "experiment.json: calibration: took": list[gate_calibration.Took],
    "rounds.jsonl": rounds.Round,
    "experiment.json: pairs: asked": pairing.PairsRequest,
    "experiment.json: pairs: progress": list[pairing.Progress],
    "experiment.json: scale: asked": scale.ScaleRequest,
    "experiment.json: scale: done": list[scale.ScaleRan],
    "experiment.json: repeat: rounds": list[repeat.Round],
    "plateaus.json": list[kept_plateaus.Kept],
    "gates.jsonl": history.Entry,
}


# What a line of progress.jsonl may hold, as engines write it.
LINE = (
    '{"at": 9, "batch": 1, "rows": 2, "offsets": {"0": 3}, "watermark_ms": 4, "dropped": 5, "took_ms": 6, '
    '"state_bytes": 7, "state_cells": 8, "state_updates": 14, "memory_bytes": 10, "commit_ms": 11, "commit_bytes": 12, '
    '"end_ms": [1, 9], "restored": {"0": 13}}'
)


def json_fields() -> Lines:
    """A line for each record, with its fields and what they hold."""
    read = msgspec.to_builtins(progress.parse(LINE.encode()))
    yield f"progress.jsonl: {LINE} is read as {' '.join(f'{name}={value}' for name, value in read.items())}"
    shapes = _Shapes()
    for name, kind in FILES.items():
        records: dict[str, list[str]] = defaultdict(list)
        for path, held in shapes.of(kind, "", name):
            above, _, leaf = path.rpartition(".")
            records[above].append(f"{leaf} {held}".strip())
        yield from (f"{f'{name} {above}'.strip()}: {' | '.join(leaves)}" for above, leaves in records.items())


class _Shapes:
    """Each record is spelled out once."""

    def __init__(self) -> None:
        self._seen: dict[Any, str] = {}

    def of(self, kind: Any, path: str, file: str) -> Iterator[tuple[str, str]]:
        """Of each leaf its path, and what it holds."""
        inner = get_args(kind)
        if names := _fields_of(kind):
            yield from self._of_record(kind, names, path, file)
        elif _is(kind, Enum):
            yield path, "/".join(str(each.value) for each in kind)
        elif not inner:
            yield path, getattr(kind, "__name__", str(kind))
        elif get_origin(kind) is Literal:
            yield path, "/".join(str(each) or "''" for each in inner)
        else:
            yield from self._of_several(kind, path, file)

    def _of_record(self, kind: Any, names: Sequence[str], path: str, file: str) -> Iterator[tuple[str, str]]:
        if kind in self._seen:
            yield path, f"as {self._seen[kind]}"
            return
        self._seen[kind] = f"{file} {path}".strip()
        for name in names:
            yield from self.of(get_type_hints(kind)[name], f"{path}.{name}" if path else name, file)

    def _of_several(self, kind: Any, path: str, file: str) -> Iterator[tuple[str, str]]:
        origin, inner = get_origin(kind), get_args(kind)
        if _is(origin, Mapping):
            yield from self.of(inner[1], f"{path}{{}}", file)
            return
        mark = "[]" if _is(origin, Collection) else "?" if type(None) in inner else ""
        for each in dict.fromkeys(each for each in inner if each not in (type(None), ...)):
            yield from self.of(each, f"{path}{mark}", file)


def _is(kind: Any, of: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, of)


def _fields_of(kind: Any) -> list[str]:
    if _is(kind, msgspec.Struct):
        return [each.name for each in msgspec.structs.fields(kind)]
    return [each.name for each in fields(kind)] if isinstance(kind, type) and is_dataclass(kind) else []


def parquet_columns() -> Lines:
    """As whole runs write them; a run is written in several files of one name where it asks for more."""
    written = {f"{name}: {columns}" for changes in RUNS for name, columns in _columns(changes)}
    yield from sorted(written)
    yield from (f"read of {name}: {' '.join(columns)}" for name, columns in sorted(TABLES.items()))
    yield f"timeline.parquet: {' '.join(TIMELINE)}"


RUNS: Sequence[Mapping[str, Any]] = (
    {"checksum": True, "disorder": "storm"},
    {"states": 2},
    {"backfill": "same"},
    {"history": "4s", "sink": "absolute"},
)


def _columns(changes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        verdict, store = fake_run(Path(folder), **changes)
        measure.save(StoredRun(store), verdict)
        for path in sorted(store.path.glob("*.parquet")):
            yield path.name, " ".join(f"{each.name}:{each.type}" for each in pq.read_schema(path))


def history_kinds() -> Lines:
    """Each with the facts that are told with it or asked of it, where they stand in the code."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for call, constants in calls(*WRITES, *READS):
        first = call.args[0] if call.args else None
        kind = first.value if isinstance(first, ast.Constant) else constants.get(getattr(first, "id", ""))
        if isinstance(kind, str):
            kinds[kind] |= {each.arg for each in call.keywords if each.arg}
            kinds[kind] |= {str(each.value) for each in call.args[1:2] if isinstance(each, ast.Constant)}
    yield from (f"{kind}: {' '.join(sorted(facts))}".rstrip(": ") for kind, facts in sorted(kinds.items()))


WRITES, READS = ("tell", "_tell"), ("values", "last_value", "history")


# ---------------------------------------------------------------- Words


def words() -> Lines:
    yield f"checks: {' '.join(checks.CHECKS)}"
    yield f"outcomes: {' '.join(Outcome)}"
    yield f"exit codes: {' '.join(f'{name}={code}' for name, code in vars(Exit).items() if name.isupper())}"
    planted = {
        word
        for part in drive.expected().values()
        for told in part.values()
        for words in told.split(" ", 1)[1:]
        for word in words.split(", ")
    }
    yield f"words of planted bugs: {' | '.join(sorted(planted))}"
    yield from (f"{name}s: {' | '.join(sorted({*_said(name)}))}" for name in PLACES)


def _said(name: str) -> Iterator[str]:
    """What may be given under this name, to whatever makes a result of a check."""
    for call, _ in calls():
        given = [each.value for each in call.keywords if each.arg == name]
        if _called(call) == "CheckResult":
            given += call.args[PLACES[name] : PLACES[name] + 1]
        if _called(call) == "failed" and name == "word":
            given += call.args[4:5] or call.args[:1]  # without a word, the name of the check
        for value in given:
            yield from (str(each.value) for each in ast.walk(value) if _is_text(each))


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(node.value)


PLACES = {"word": 3, "blame": 5}  # of the arguments of a CheckResult


# ---------------------------------------------------------------- What people and scripts type and read


def commands() -> Lines:
    """Each with its arguments, and its flags in all spellings."""
    yield from _commands(typer.main.get_command(app.app), "streamgauge")


def _commands(command: Any, name: str) -> Lines:
    said = [" ".join((*each.opts, *each.secondary_opts)) for each in command.params if each.param_type_name == "option"]
    arguments = [each.name.upper() for each in command.params if each.param_type_name != "option"]
    yield f"{name}: {' '.join(arguments)} {' | '.join(said)}".replace(":  ", ": ")
    for own in sorted(getattr(command, "commands", {})):
        yield from _commands(command.commands[own], f"{name} {own}")


def keys() -> Lines:
    yield f"of a scenario: {' | '.join(f'{name}={key.default}' for name, key in sorted(KEYS.items()))}"
    yield f"of a manifest: {' '.join(sorted(each.name for each in fields(EngineManifest)))}"
    yield f"presets of disorder: {' '.join(PRESETS)}"
    yield f"profiles: {' '.join(PROFILES)}"
    yield f"workloads: {' '.join(WORKLOADS)}"
    for path in sorted(ROOT.glob("harness/engines/*/manifest*.toml")):
        yield f"engine: {path.parent.name}/{path.stem}"
    for path in sorted(ROOT.glob("workloads/*/scenarios/*.toml")):
        yield f"scenario: {path.stem} {json.dumps(plan.read_scenario(path.stem)[1], sort_keys=True)}"
    for name, kind in FAULTS.items():
        yield f"fault: {name}({', '.join(f'{key}={value}' for key, value in kind.options.items())})@{kind.usual}"


def json_answers() -> Lines:
    """The keys that stand in the functions which make what `--json` prints."""
    for tree in trees():
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            asks = any(isinstance(node, ast.Name) and node.id == "as_json" for node in ast.walk(function))
            if asks or function.name.lstrip("_") == "as_object":
                named = [key for node in ast.walk(function) if isinstance(node, ast.Dict) for key in node.keys]
                found = [key.value for key in named if isinstance(key, ast.Constant)]
                command = next((v for k, v in _pairs(function) if k == "command"), "")
                if set(found) - {"exit"}:  # which is added to each
                    yield f"{command}: {' '.join(map(str, dict.fromkeys(found)))}".removeprefix(": ")


def _pairs(function: ast.FunctionDef) -> Iterator[tuple[object, object]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    yield key.value, value.value


def environment() -> Lines:
    """Variables of ours that others set or read."""
    yield from sorted(set(re.findall(r"\bSTREAMGAUGE_[A-Z_]+\b", "\n".join(sources()))))


# ---------------------------------------------------------------- The listing


@cache
def sources() -> Sequence[str]:
    found = [path for folder in PROGRAM for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path.read_text(encoding="utf-8") for path in found]


@cache
def trees() -> Sequence[ast.Module]:
    """Of those files that hold anything of what is looked for here."""
    return [ast.parse(source) for source in sources() if OF_USE.search(source)]


OF_USE = re.compile(
    r"\bLane\.of\b|\bRandom\(|tell\(|\b(values|last_value)\(|\bhistory\(|CheckResult|as_json|as_object|blame=|word=|failed\("
)


@cache
def _all_calls() -> Sequence[tuple[ast.Call, Mapping[str, object]]]:
    return [
        (node, names) for tree in trees() for names in [_constants(tree)] for node in ast.walk(tree) if _is_call(node)
    ]


def _is_call(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call)


def calls(*names: str) -> Iterator[tuple[ast.Call, Mapping[str, object]]]:
    """Of these functions or methods, or all; each with the constants of its file."""
    yield from (each for each in _all_calls() if not names or _called(each[0]) in names)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _constants(tree: ast.Module) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, values = ([*getattr(each, "elts", [each])] for each in (node.targets[0], node.value))
            pairs = zip(targets, values, strict=False)
            found |= {target.id: value.value for target, value in pairs if hasattr(target, "id") and _is_text(value)}
    return found


SECTIONS: Mapping[str, Callable[[], Lines]] = {
    "tapes": tapes,
    "labels of draws": labels,
    "draws": draws,
    "fields of JSON": json_fields,
    "columns of Parquet": parquet_columns,
    "kinds of history": history_kinds,
    "words": words,
    "commands": commands,
    "keys": keys,
    "answers in JSON": lambda: iter(sorted(json_answers())),
    "environment": environment,
}


def of(section: str) -> list[str]:
    return [*SECTIONS[section]()]


def kept() -> dict[str, list[str]]:
    """Section by section, as it was written down."""
    parts = re.split(r"^\[(.+)\]\n", LISTING.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: body.strip("\n").split("\n") for name, body in zip(parts[::2], parts[1::2], strict=True)}


if __name__ == "__main__":
    LISTING.write_text("\n".join(f"[{name}]\n" + "".join(f"{line}\n" for line in of(name)) for name in SECTIONS))
