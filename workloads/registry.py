"""Every shipped workload by its id. Add one: its folder, and its line here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from harness.explain import nearest
from harness.model import AD_IMPRESSIONS, RunSpec, TapeSpec, UsageError
from workloads.base import Changeable, Codec, Oracle, Question, Results, Workload
from workloads.cells import Codes

ROOT = Path(__file__).resolve().parent.parent

# The module that holds it, as WORKLOAD.
WORKLOADS = {
    AD_IMPRESSIONS: "workloads.ad_impressions.workload",
    "enrichment": "workloads.enrichment.workload",
    "page_visits": "workloads.page_visits.workload",
    "page_visits_sliding": "workloads.page_visits_sliding.workload",
    "page_visits_sessions": "workloads.page_visits_sessions.workload",
}


def shipped(name: str) -> Workload:
    if name not in WORKLOADS:
        raise UsageError(
            f"There is no workload {name!r}{nearest(name, WORKLOADS)}. Shipped: {', '.join(WORKLOADS)}; one of your "
            "own is the folder of its workload.toml."
        )
    workload: Workload = import_module(WORKLOADS[name]).WORKLOAD
    return workload


def chosen(name: str) -> Workload:
    """A shipped workload by its id, or anybody's by the folder that declares it."""
    if name in WORKLOADS or not declared_at(name):
        return shipped(name)
    from workloads.declared import checked, workload

    declaration, _ = checked.load(Path(name))
    return workload.Declared(declaration)


def declared_at(name: str) -> bool:
    """What is no id can only be a path; a word alone is one if there is such a folder or file."""
    return "/" in name or name.endswith(".toml") or Path(name).exists()


def folder_of(name: str) -> Path:
    """Of a shipped workload: it holds `scenarios/`, `chaos/` and `jobs/`. Nothing is imported for it."""
    return ROOT.joinpath(*WORKLOADS[name].split(".")[:-1])


def workload_of(tape: TapeSpec) -> Workload:
    if tape.declaration:
        from workloads.declared import workload

        return workload.workload_of(tape.declaration)
    return shipped(tape.workload)


# Of one tape they are asked for at many places, and their tables are large.
@lru_cache(maxsize=4)
def codec_of(tape: TapeSpec) -> Codec:
    return workload_of(tape).codec(tape)


@lru_cache(maxsize=4)
def results_of(tape: TapeSpec) -> Results:
    return workload_of(tape).results(tape)


def oracle_of(spec: RunSpec) -> Oracle:
    """A new one: the codes of two oracles may differ."""
    return workload_of(spec.tape).oracle(spec)


def question_of(spec: RunSpec, asked: Mapping[str, str], codes: Codes) -> Question:
    """Another one of the same events; UsageError where there is none."""
    workload = workload_of(spec.tape)
    if not isinstance(workload, Changeable):
        raise UsageError(
            f"Nobody knows another question of the workload {workload.id}: only a job may be changed there."
        )
    return workload.question(spec, asked, codes)
