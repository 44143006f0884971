"""These tests make many runs and look at the drawings of few: nothing is drawn unless a test asks for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.config.scenario_keys import KEYS

FEW_PROBES = 20


@pytest.fixture
def few_probes(monkeypatch):
    """Hundreds of campaigns that measure latency are most of what there is to be judged in a small run."""
    monkeypatch.setitem(KEYS, "probes", replace(KEYS["probes"], default=FEW_PROBES))


@pytest.fixture(autouse=True)
def _no_drawings(monkeypatch):
    from matplotlib.figure import Figure

    from reports.figures import style

    monkeypatch.setattr(style, "_sheet", lambda draw, width_px: style.Sheet(Figure(), width_px))
    monkeypatch.setattr(style, "_svg", lambda sheet, prefix: f'<svg id="{prefix}"></svg>')
    monkeypatch.setattr(style, "_png", lambda sheet: b"")
