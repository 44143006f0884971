"""These tests make many runs and look at the drawings of few: nothing is drawn unless a test asks for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.config.scenario_keys import KEYS
from harness.drivers import one_run
from harness.model import RunSpec
from harness.services import owners
from tests.program import calls

FEW_PROBES = 20


@pytest.fixture
def few_probes(monkeypatch):
    """Hundreds of campaigns that measure latency are most of what there is to be judged in a small run."""
    monkeypatch.setitem(KEYS, "probes", replace(KEYS["probes"], default=FEW_PROBES))


@pytest.fixture
def redis_claims(monkeypatch) -> list[str]:
    """The addresses of the existing Redis that runs claim; there is none."""
    addresses: list[str] = []

    def claimed(spec: RunSpec, _: object) -> list[str]:
        addresses.append(spec.redis)
        return []

    monkeypatch.setattr(one_run, "check_external", lambda _: None)
    monkeypatch.setattr(one_run, "claim_external", claimed)
    return addresses


@pytest.fixture
def call_here(monkeypatch, tmp_path, capsys):
    """Call a command in an empty folder: its exit code, and what it says on both streams."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)
    return lambda *arguments: (calls.exit_code(*arguments), *capsys.readouterr())


@pytest.fixture(autouse=True)
def _no_drawings(monkeypatch):
    from matplotlib.figure import Figure

    from reports.figures import style

    monkeypatch.setattr(style, "_sheet", lambda draw, width_px: style.Sheet(Figure(), width_px))
    monkeypatch.setattr(style, "_svg", lambda sheet, prefix: f'<svg id="{prefix}"></svg>')
    monkeypatch.setattr(style, "_png", lambda sheet: b"")
