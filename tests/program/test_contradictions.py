"""Files of a run that do not go together cost its PASS."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import cli, run
from harness.engines import fake
from harness.experiments import one_run
from harness.experiments.selftest.runs import fake_run
from harness.judging.judge import judge
from harness.model import SCHEMA_VERSION, Exit, Outcome
from harness.store import Store
from harness.stored import StoredRun
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


def broken_off(folder: Path, monkeypatch, step: str) -> Store:
    """The harness was killed before this step."""

    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(run.Run, step, killed)
        with pytest.raises(KeyboardInterrupt):
            fake_run(folder)
    store = Store.open(next(folder.iterdir()))
    store.write_json("owner.json", {"schema": SCHEMA_VERSION})  # of no process that lives
    return store


def test_a_run_that_was_broken_off_before_its_verdict_was_not_edited(tmp_path, monkeypatch):
    store = broken_off(tmp_path, monkeypatch, "conclude")

    verdict = judge(StoredRun(store))

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert "broken off before its verdict" in next(each for each in verdict.checks if each.name == "edited").sentence


def test_a_run_that_was_broken_off_is_judged_twice_alike(tmp_path, monkeypatch):
    store = broken_off(tmp_path, monkeypatch, "conclude")
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)

    assert [cli.called(["recheck", str(store.path)]) for _ in range(2)] == [Exit.PASS, Exit.PASS]
    store.write_json("batches.json", {})
    assert cli.called(["recheck", str(store.path)]) == Exit.UNKNOWN


def test_one_that_was_broken_off_sooner_says_what_is_missing(tmp_path, monkeypatch):
    verdict = judge(StoredRun(broken_off(tmp_path, monkeypatch, "drain")))

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("no evidence",))


def test_digests_that_are_gone_are_an_edit_where_there_was_a_verdict(tmp_path):
    _, store = fake_run(tmp_path)
    for name in ("digests.json", "verdict.json"):
        (store.path / name).unlink()

    verdict = judge(StoredRun.open(store.path))

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("edited",))


def test_an_observer_that_looked_to_the_end_lets_a_run_pass(tmp_path, monkeypatch):
    shut_eyes(monkeypatch, 10**6)

    assert fake_run(tmp_path)[0].outcome is Outcome.PASS
