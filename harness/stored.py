"""What a stored run was: its spec, the engine's manifest as it was then, and its verdict."""

from __future__ import annotations

import msgspec

from harness.model import EngineManifest, RunSpec, SinkClaim, Verdict
from harness.observe import Row
from harness.store import MissingEvidence, Store
from workloads.base import Columns, Oracle
from workloads.registry import oracle_of

OBSERVED, AFTER_STOP, LOG = "observed.parquet", "observed-after-stop.parquet", "log.parquet"


class Sealed(msgspec.Struct, frozen=True):
    """A tape as plan.json names it."""

    digest: str
    total: int
    duration_ms: int


class Expected(msgspec.Struct, frozen=True):
    """What every cell has to hold, as plan.json names it."""

    digest: str


class Plan(msgspec.Struct, frozen=True):
    """What plan.json holds."""

    tape: Sealed
    manifest: EngineManifest
    expected: Expected | None = None  # older versions sealed none
    warm_up: Sealed | None = None  # there was none, mostly


def spec_of(store: Store) -> RunSpec:
    spec: RunSpec = store.read_as("spec.json", RunSpec)
    return spec


def stored_oracle(store: Store) -> Oracle:
    """One for all that is said of a run, so that equal codes are equal cells."""
    return store.once("oracle", lambda: oracle_of(spec_of(store)))


def plan_of(store: Store) -> Plan:
    plan: Plan = store.read_as("plan.json", Plan)
    return plan


def verdict_of(store: Store) -> Verdict:
    verdict: Verdict = store.read_as("verdict.json", Verdict)
    return verdict


def planned_of(store: Store) -> Columns:
    """What every cell has to hold by the plan, as it was sealed."""
    table = store.read_table("expected.parquet")
    return {name: table.column(name).to_numpy() for name in table.column_names}


def manifest_of(store: Store) -> EngineManifest:
    return plan_of(store).manifest


def claim_of(store: Store) -> SinkClaim:
    """Of the sink that the run used."""
    spec, manifest = spec_of(store), manifest_of(store)
    for claim in manifest.sinks:
        if claim.name == spec.sink:
            return claim
    known = ", ".join(claim.name for claim in manifest.sinks) or "none"
    raise MissingEvidence(
        f"{store.path / 'spec.json'} names the sink {spec.sink!r}, which the manifest in plan.json does not have "
        f"(it has: {known})"
    )


def unread_files(store: Store) -> dict[str, str]:
    """What a run could not read in its end, and so did not write, each with the reason."""
    return dict(zip(store.told("unread", "file", str), store.told("unread", "why", str), strict=True))


def stored_rows(store: Store, name: str = OBSERVED) -> list[Row]:
    """The results as they were read, while the engine lived or after."""
    table = store.read_table(name)
    columns = (table.column(name).to_pylist() for name in Row._fields)
    return [Row(*values) for values in zip(*columns, strict=True)]


def epoch_ms_of(store: Store) -> int:
    """When the load began."""
    return int(store.told_last("epoch", "epoch_ms", int))
