"""The workload of a run: a shipped one by its id, or a user's own by its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from harness.model import RunSpec, TapeSpec, UsageError
from workloads.base import Changeable, Codec, Oracle, Question, Results, Workload
from workloads.cells import Codes
from workloads.shipped import WORKLOADS, shipped


def chosen(name: str) -> Workload:
    """Return a shipped workload by its id, or a declared one by its folder."""
    if name in WORKLOADS or not declared_at(name):
        return shipped(name)
    from workloads.declared import checked, workload

    declaration, _ = checked.load(Path(name))
    return workload.Declared(declaration)


def declared_at(name: str) -> bool:
    """Check if the name is a path. A single word is one only if there is such a folder or file."""
    with suppress(OSError, ValueError):  # invalid as the name of a file
        return "/" in name or name.endswith(".toml") or Path(name).exists()
    return False


def workload_of(tape: TapeSpec) -> Workload:
    if tape.declaration:
        from workloads.declared import workload

        return workload.workload_of(tape.declaration)
    return shipped(tape.workload)


# Cached, because many callers need them for one tape, and their tables are large.
@lru_cache(maxsize=4)
def codec_of(tape: TapeSpec) -> Codec:
    return workload_of(tape).codec(tape)


@lru_cache(maxsize=4)
def results_of(tape: TapeSpec) -> Results:
    return workload_of(tape).results(tape)


def length_ms_of(spec: RunSpec) -> int | None:
    """See `Workload.length_ms`."""
    return workload_of(spec.tape).length_ms(spec)


def oracle_of(spec: RunSpec) -> Oracle:
    """Return a new oracle. The codes of two oracles may differ."""
    return workload_of(spec.tape).oracle(spec)


def question_of(spec: RunSpec, asked: Mapping[str, str], codes: Codes) -> Question:
    """Return another question about the same events. Raises UsageError if the workload has none."""
    workload = workload_of(spec.tape)
    if not isinstance(workload, Changeable):
        raise UsageError(
            f"Nobody knows another question of the workload {workload.id}: only a job may be changed there."
        )
    return workload.question(spec, asked, codes)
