"""The shipped workloads by their ids. To add one: its folder, and a line here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from harness.model import AD_IMPRESSIONS, UsageError
from harness.util.suggest import nearest
from workloads.base import Workload

ROOT = Path(__file__).resolve().parent.parent

# From an id to the module with its WORKLOAD.
WORKLOADS = {
    AD_IMPRESSIONS: "workloads.ad_impressions.workload",
    "capping": "workloads.capping.workload",
    "enrichment": "workloads.enrichment.workload",
    "etl": "workloads.etl.workload",
    "page_visits": "workloads.page_visits.workload",
    "page_visits_sliding": "workloads.page_visits_sliding.workload",
    "page_visits_sessions": "workloads.page_visits_sessions.workload",
    "pattern": "workloads.pattern.workload",
    "readers_distinct": "workloads.readers_distinct.workload",
    "readers_join": "workloads.readers_join.workload",
    "readers_late": "workloads.readers_late.workload",
    "readers_week": "workloads.readers_week.workload",
    "top_pages": "workloads.top_pages.workload",
}


def shipped(name: str) -> Workload:
    if name not in WORKLOADS:
        raise UsageError(
            f"There is no workload {name!r}{nearest(name, WORKLOADS)}. Shipped: {', '.join(WORKLOADS)}; one of your "
            "own is the folder of its workload.toml."
        )
    workload: Workload = import_module(WORKLOADS[name]).WORKLOAD
    return workload


def folder_of(name: str) -> Path:
    """Return the folder of a shipped workload without importing it. It holds `scenarios/`, `chaos/` and `jobs/`."""
    return ROOT.joinpath(*WORKLOADS[name].split(".")[:-1])
