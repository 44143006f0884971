"""Files of a run that do not go together cost its PASS."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import app
from harness.drivers import one_run
from harness.engines import fake
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import SCHEMA_VERSION, Exit, Outcome
from harness.rundir.store import Store
from harness.runner import run
from harness.runner.world.fake import FakeWorld
from harness.selftest.runs import fake_run


def shut_eyes(monkeypatch, after_looks: int) -> None:
    """The observer sees so many looks, and nothing behind them."""
    look, looks = FakeWorld._poll, []

    def seen(world: FakeWorld) -> None:
        if world._recorder is not None:
            looks.append(world)
        if len(looks) <= after_looks:
            look(world)

    monkeypatch.setattr(FakeWorld, "_poll", seen)


@pytest.mark.parametrize("manifest", [fake.MANIFEST, fake.SILENT], ids=["progress", "silent"])
@pytest.mark.parametrize("looks", [0, 1, 100])
def test_an_observer_that_went_blind_lets_no_run_pass(tmp_path, monkeypatch, manifest, looks):
    shut_eyes(monkeypatch, looks)
    verdict, _ = fake_run(tmp_path, manifest)

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.words == ("contradicted",)
    assert "polled the results" in verdict.sentence


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


def test_a_run_that_was_broken_off_before_it_had_digests_never_passes(tmp_path, monkeypatch):
    """Whoever removes the digests of a run and its verdicts makes it look like that."""
    store = broken_off(tmp_path, monkeypatch, "conclude")
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)

    for _ in range(2):
        assert app.called(["recheck", str(store.path)]) == Exit.UNKNOWN
        verdict = StoredRun(store).verdict
        assert verdict.words == ("no digests",)
        assert "was aborted before it wrote digests" in verdict.sentence


def test_a_run_that_was_broken_off_while_it_was_judged_is_judged_again(tmp_path, monkeypatch):
    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(run, "judge", killed)
        with pytest.raises(KeyboardInterrupt):
            fake_run(tmp_path)
    store = Store.open(next(tmp_path.iterdir()))
    monkeypatch.setattr(Store, "alive", lambda _: False)
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)

    assert [app.called(["recheck", str(store.path)]) for _ in range(2)] == [Exit.PASS, Exit.PASS]


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
