"""A start in which an engine ends before its load is made once more in a gate: libraries have races when they start."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from harness.drivers import gate as drive_gate
from harness.drivers.gate import GateRequest
from harness.drivers.gate_side import NotStartedError
from harness.experiments.folder import Folder
from harness.experiments.gating import conditions
from harness.experiments.gating.gate import HEAD, SIDES, Gated, Judged
from harness.experiments.gating.rounds import Settings
from harness.model import Outcome
from tests.quick.experiments.test_gate import measured

RIGHT = Judged(Outcome.PASS, "counted right", "runs/a")
CRASHED = Judged(Outcome.FAIL, "crashed: the engine ended by itself", "runs/head", crashed="TopicNotFoundError")
SAID = "The head ended before the load started: crashed"
NOTHING: Any = None


class MadeUp:
    """Stands for the real sides. Those with these numbers, of all that were made, do not start."""

    broken: tuple[int, ...] = ()
    made = 0

    def __init__(self, *_, start):
        MadeUp.made += 1
        self.number, self.start = MadeUp.made, start
        self.oddities, self.round_stretches = set(), 4

    def add(self, *_):
        pass

    @contextmanager
    def up(self, _settings):
        if self.number in self.broken:
            raise NotStartedError(SAID)
        yield

    def rounds(self, _most):
        yield [each for each in measured(starts=12) if each.start == self.start]

    def judged(self):
        return dict.fromkeys(SIDES, RIGHT) | ({HEAD: CRASHED} if self.number in self.broken else {})

    def with_evidence(self, own):
        return own


def gated(tmp_path, monkeypatch, *broken: int) -> Gated:
    monkeypatch.setattr(conditions, "_cores_of_others", lambda: 0.0)
    monkeypatch.setattr(drive_gate, "Sides", MadeUp)
    monkeypatch.setattr(MadeUp, "made", 0)
    monkeypatch.setattr(MadeUp, "broken", broken)
    asked = GateRequest("a", "b", threshold=0.05, budget_s=600, flags={}, engine="", burst_events=0)
    going = drive_gate._Gate(Folder.create(tmp_path, "gate"), asked, Settings(), None)
    return going.drive(dict.fromkeys(SIDES, ("quix", "")), NOTHING)


def test_a_side_that_does_not_start_once_changes_no_answer_and_is_told(tmp_path, monkeypatch):
    undisturbed = gated(tmp_path / "a", monkeypatch)
    found = gated(tmp_path / "b", monkeypatch, 2)

    assert found.effects[0] == undisturbed.effects[0]
    assert found.sides[HEAD] == RIGHT
    assert found.conditions
    assert found.conditions.oddities == (f"start 2 was made twice: {SAID}",)


@pytest.mark.parametrize("broken", [(1, 2), (2, 3), (1, 3)])
def test_one_that_does_not_start_twice_in_a_gate_is_regressed(tmp_path, monkeypatch, broken):
    found = gated(tmp_path, monkeypatch, *broken)

    assert found.sides == {**dict.fromkeys(SIDES, RIGHT), HEAD: CRASHED}
    assert found.outcome is Outcome.FAIL
    assert "the head counts wrong: crashed" in found.sentence
