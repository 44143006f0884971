"""What a run may have measured, by hand, so that pages can be tried without an engine."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.config import plan
from harness.engines import fake
from harness.experiments.chaos import ChaosCase, Ran, Seen, Wrong
from harness.experiments.compare import Row
from harness.experiments.compare import Settings as CompareSettings
from harness.experiments.compare import Table as CompareTable
from harness.experiments.curve import kept, steer
from harness.experiments.curve.plateau import Latencies, Measured, Plateau, Why
from harness.experiments.folder import Folder
from harness.experiments.gating import gate as gates
from harness.experiments.gating.gate import Judged
from harness.experiments.gating.rounds import ROUNDS, Round
from harness.experiments.gating.rounds import Settings as GateSettings
from harness.experiments.searching import search as searches
from harness.measuring import recovery
from harness.measuring.measurement import (
    TIMELINE,
    Cost,
    Latency,
    Measurement,
    Observer,
    Quantiles,
    Quantity,
    Recovery,
    Steady,
)
from harness.measuring.stats import Interval
from harness.model import Outcome, RunSpec
from harness.rundir.store import Store
from reports.compared import FIGURES, Compared
from tests.quick.cases import SPEC

SECONDS = 45
PROBES = np.sort(np.random.default_rng(1).lognormal(6.0, 0.7, 2000))

MEASURED = Measurement(
    events=300_000,
    offered_per_s=9_998.6,
    processed_per_s=9_412.3,
    catch_up_per_s=41_234.5,
    load_s=30.0,
    ready_s=12.5,
    drain_s=6.2,
    latency=(
        Latency(
            "probes",
            Quantiles(2000, 3, 512.0, 403.0, 990.0, 2_081.0, 3_800.0, 4_123.0),
            Quantiles(2000, 3, 500.0, 401.0, 970.0, 1_911.0, 3_700.0, 4_001.0),
            "exact to one sampling period of 50 ms",
        ),
        Latency(
            "rank-matched",
            Quantiles(99_000, 0, 530.0, 410.0, 1_000.0, 2_313.0, 4_000.0, 4_500.0),
            None,
            "the mean is exact to 50 ms, the tail is a lower bound",
            tail_is_lower_bound=True,
        ),
    ),
    never_final_share=0.0,
    dipped_share=0.02,
    cost=(
        Cost("generator", 2.9, 0.4, 95.0, 11.0),
        Cost("engine", 24.0, 3.1, 1412.0, 90.3),
        Cost("python workers", 3.0, 0.3, 210.0, 11.0),
        Cost("kafka", 2.2, 0.6, 331.0, 9.3),
        Cost("redis", 0.3, 0.4, 12.0, 2.3),
        Cost("harness", 0.8, 0.2, 130.0, 3.3),
    ),
    checkpoint_bytes=3_456_789,
    gc_s=0.42,
    steady=Steady(False, None, None, "It never got steady: 30 s of load are too short to tell", {}, {}),
    observer=Observer(50.0, 53.0, 900, 1.0, 0.031),
)


def timeline(seconds: int = SECONDS) -> dict[str, list[float | None]]:
    """A run that falls behind and catches up; of `state_bytes` nothing is known."""
    second = np.arange(seconds)
    load = second < 30
    columns = {name: (500.0 + 40.0 * second).tolist() for name in TIMELINE}
    columns |= {
        "second": second.tolist(),
        "offered_per_s": (10_000.0 * load).tolist(),
        "sent_per_s": (9_990.0 * load).tolist(),
        "latency_p99_ms": np.where((second > 6) & (second < 16), 9_000.0, 900.0).tolist(),
    }
    columns |= {name: (0.1 + 0.02 * (second % 5)).tolist() for name in TIMELINE if name.startswith("cpu_")}
    return {**columns, "state_bytes": [None] * seconds}


def latency() -> dict[str, list[object]]:
    """The raw latencies of one way; three events were never seen."""
    censored = [None] * 3
    return {
        "way": ["probes"] * (len(PROBES) + 3),
        "corrected_ms": [*PROBES.tolist(), *censored],
        "uncorrected_ms": [*(PROBES * 0.9).tolist(), *censored],
    }


# A search in little, of an engine that works on 2,000 events a second: see SLOW_FAKE.
FEW_RATES = searches.Settings(
    lives=1,
    life=replace(
        steer.QUICK,
        start_per_s=200.0,
        warm_up_least=1,
        warm_up_most=2,
        look_factor=3.0,
        look_most=4,
        long=3,
        short=1,
        rest_most=2,
        most=24,
    ),
)
SLOW_FAKE = ("--conf", "misbehave=slow:2000", "--objective-p99-ms", "4000")


def search_spec(**flags: str) -> RunSpec:
    """What a search of the fake engine starts from."""
    name, keys = plan.read_scenario("calm")
    spec, _ = plan.resolve(name, keys, {"engine": "fake", **flags}, lambda *_: fake.MANIFEST)
    return spec


def plateau(rate_per_s: float, why: Why, number: int, capacity_per_s: float, seconds: int = 20) -> Measured:
    """One of an engine that gets the slower the nearer it is to its capacity."""
    dice, at_ms = np.random.default_rng(number), number * 100_000
    offered = Plateau(number, rate_per_s, why, at_ms, at_ms + seconds * 1000)
    due_ms = np.linspace(at_ms, offered.until_ms - 1, 20_000)
    took_ms = 300 / (1 - rate_per_s / capacity_per_s) * dice.lognormal(0.0, 0.6, len(due_ms))
    latencies = Latencies.of(due_ms, took_ms, offered)
    return Measured(
        offered,
        probes=latencies,
        events=latencies,
        backlog=np.full(seconds, rate_per_s * float(np.median(took_ms)) / 1000),
        processed_per_s=rate_per_s,
        engine_cpu_s=seconds * (0.2 + rate_per_s / capacity_per_s),
        load_cpu_s=seconds * rate_per_s * 3e-6,
    )


def curve(capacity_per_s: float = 100_000.0) -> list[Measured]:
    """What a life leaves behind."""
    low = [(share, Why.LEVEL, 20) for share in (0.1, 0.3, 0.6, 0.7)]
    both = [(share, why, 60) for why in (Why.LEVEL, Why.AGAIN) for share in (0.5, 0.9)]
    course = [*low, *both, (0.95, Why.LEVEL, 20)]
    return [plateau(share * capacity_per_s, why, n, capacity_per_s, s) for n, (share, why, s) in enumerate(course)]


def a_search(folder: Path, measured: Sequence[Measured], **spec: str) -> Folder:
    """As the command leaves it, with one life."""
    place, run = Folder(folder), Store(folder / "runs" / "20261121-120000-calm-fake")
    run.path.mkdir(parents=True)
    kept.save(run, measured)
    life = searches.Lived(f"runs/{run.path.name}", Outcome.PASS, "right to the single event", 512.0, whole=True)
    settings = searches.of(search_spec(**spec), searches.QUICK, None)
    machine = {"python": "3.11", "packages": {"numpy": "2.4"}}
    units = [searches.Unit(400_000.0, 1.9, 100_000.0)]
    place.save("search", spec=search_spec(**spec), settings=settings, environment=machine, units=units, lives=[life])
    return place


LONG = "any(redis-pause(for=3s)@t>=10s; flip-flop(2; pause(for=1s)@now; kill@offset>=+10%)@t>=12s)"
SINKS = ("absolute", "fenced", "increment", "marker-first", "marker-last")
CHAOS = [
    Ran(
        ChaosCase("fake", sink, fault, 1),
        seen,
        "22,929 events too many in 435 cells: exactly batch 3 once more, which was replayed",
        wrong=Wrong(duplicated=22_929) if seen is Seen.AT_LEAST_ONCE else Wrong(),
        recovery=(Recovery(fault, 1.0, 1.0, 9.0, {name: Quantity(12_345.6, "", 123.4) for name in recovery.WORDS}),),
    )
    for sink, seen in zip(SINKS, [Seen.AT_LEAST_ONCE, *[Seen.EXACTLY_ONCE] * 2, Seen.STUCK, Seen.UNKNOWN], strict=True)
    for fault in ("kill@c3:batch=3", "checkpoint-delete-offsets@t>=12s", LONG)
]


def chaos(place: Folder) -> Folder:
    """One whose runs are all known."""
    settings = {"scenario": "calm", "keys": {"rate": 2000}, "flags": {}, "asked": {"tier": "smoke"}}
    environment = {"machine": "Linux x86_64, 2 cores, 25 GB", "packages": {"numpy": "2.4"}}
    wanted = [each.case for each in CHAOS]
    place.save("chaos", settings=settings, environment=environment, wanted=wanted, done=CHAOS)
    return place


def comparison(folder: Path) -> Compared:
    """Every engine with every figure, and an interval of each."""
    engines = ("spark", "spark-rtm", "spark-tws", "flink-standalone", "kafka-streams", "reference")
    figures = {name: Interval(123_456.7, 98_765.4, 234_567.8, 5) for name in FIGURES}
    sentence = "kill, seed 3: lost: 2,497 events too few in 435 cells"
    rows = tuple(Row(each, Outcome.PASS, sentence, True, figures, 4.5) for each in engines)
    asked = {"engines": engines, "named": engines, "seed": 1, "flags": {}, "search": False, "keys": {}}
    asked |= {"settings": msgspec.to_builtins(CompareSettings())}
    return Compared(Folder(folder), asked, {"machine": "a" * 100}, (), CompareTable(rows), (), {})


_effects = functools.cache(lambda made, threshold: gates.effects(made, threshold, len(gates.LEVELS) - 1))


def gate(
    place: Path, made: Sequence[Round], *, broken: str = "", asked: Mapping[str, Any] | None = None, **sides: Judged
):
    """The folder of one with these rounds, and these sides that are not right."""
    folder = Folder(place)
    judged = {
        name: sides.get(name.replace(" ", "_"), Judged(Outcome.PASS, "all counted", f"runs/{name}"))
        for name in gates.SIDES
    }
    right = all(each.outcome is Outcome.PASS for each in judged.values())
    typed = {"base": "main", "head": "c0ffee", "engine": "jobs/count", "threshold": 0.05, "budget_s": 600.0}
    whole = {**typed, "flags": {}, "burst_events": 0, **(asked or {})}
    effects = _effects(tuple(made), whole["threshold"]) if right else ()
    found = gates.Gated(judged, effects, len({each.start for each in made}), broken)
    machine = {"streamgauge": "0.1.0", "machine": "Linux x86_64, 2 cores, 25 GB", "packages": {"numpy": "2.4"}}
    folder.save("gate", asked=whole, settings=GateSettings(), environment=machine, found=found)
    (place / ROUNDS).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in made))
    for side in judged.values():
        (place / side.run).mkdir(parents=True, exist_ok=True)
        Store(place / side.run).write_json("spec.json", replace(SPEC, engine="count@1.2").public())
    return folder
