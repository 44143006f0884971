"""Files of a run that do not go together cost its PASS."""

from __future__ import annotations

import pytest

from harness.engines import fake
from harness.experiments.selftest.runs import fake_run
from harness.model import Outcome
from harness.worlds.fake import FakeWorld


def shut_eyes(monkeypatch, after_looks: int) -> None:
    """The observer sees so many looks, and nothing behind them."""
    look, looks = FakeWorld._look, []

    def seen(world: FakeWorld) -> None:
        if world._recorder is not None:
            looks.append(world)
        if len(looks) <= after_looks:
            look(world)

    monkeypatch.setattr(FakeWorld, "_look", seen)


@pytest.mark.parametrize("manifest", [fake.MANIFEST, fake.SILENT], ids=["progress", "silent"])
@pytest.mark.parametrize("looks", [0, 1, 100])
def test_an_observer_that_went_blind_lets_no_run_pass(tmp_path, monkeypatch, manifest, looks):
    shut_eyes(monkeypatch, looks)
    verdict, _ = fake_run(tmp_path, manifest)

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.words == ("contradicted",)
    assert "looked at the results" in verdict.sentence


def test_an_observer_that_looked_to_the_end_lets_a_run_pass(tmp_path, monkeypatch):
    shut_eyes(monkeypatch, 10**6)

    assert fake_run(tmp_path)[0].outcome is Outcome.PASS
