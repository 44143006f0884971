"""The end of a run: the engine is stopped, its results are read again, and only then what is expected is written."""

from __future__ import annotations

import pytest

from harness.config import plan
from harness.engines import fake
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import CheckResult, Outcome, Verdict
from harness.results.redis_scan import Row
from harness.results.sampler import Sampled
from harness.rundir.store import Store
from harness.runner.run import run
from harness.runner.screen import NullScreen
from harness.runner.world.fake import FakeWorld
from harness.selftest import stored as selftest
from harness.selftest.runs import SMALL, fake_run


def stopped(verdict: Verdict) -> CheckResult:
    return next(result for result in verdict.checks if result.name == "stopped")


def in_world(folder, kind: type[FakeWorld]) -> tuple[Verdict, Store]:
    spec, manifest = plan.resolve("any", SMALL, {}, lambda *_: fake.MANIFEST)
    store = Store.create(folder, "fake")
    world = kind(spec, store)
    return run(spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=NullScreen()), store


def test_counts_that_are_doubled_at_the_stop_are_named_with_what_they_were(tmp_path):
    verdict, store = fake_run(tmp_path, conf={"misbehave": "double-at-stop"})

    result = stopped(verdict)
    assert (verdict.outcome, result.word, result.blame) == (Outcome.FAIL, "changed when stopped", "engine")
    assert int(result.witnesses[0].seen) == 2 * int(result.witnesses[0].expected)
    assert result.witnesses[0].detail == f"{result.witnesses[0].expected} before the stop"
    assert store.read_table("observed-after-stop.parquet").num_rows == store.read_table("observed.parquet").num_rows


def test_an_engine_that_had_ended_is_not_asked(tmp_path):
    verdict, store = fake_run(tmp_path, conf={"misbehave": "die"})

    assert stopped(verdict).outcome is Outcome.PASS
    assert "not judged" in stopped(verdict).sentence
    assert not store.has("observed-after-stop.parquet")


class EndsByItself(FakeWorld):
    """Its engine counts all once more and ends, as soon as its results were read."""

    last_look = False

    def stop_observing(self) -> Sampled | None:
        self.last_look = True
        return super().stop_observing()

    def rows(self) -> list[Row]:
        rows = super().rows()
        if self.last_look and self.engine.alive():
            for key in self._keys:
                for name, count in self._redis.hashes.get(key, {}).items():
                    self._redis.set(key, name, str(2 * int(count)))
            self.engine.stop()
        return rows


def test_an_engine_that_ends_by_itself_behind_its_last_reading_is_read_again(tmp_path):
    verdict, _ = in_world(tmp_path, EndsByItself)

    assert verdict.outcome is Outcome.FAIL
    assert verdict.words == ("changed when stopped",)


class ShutsDown(FakeWorld):
    """Its engine takes the results with it."""

    def rows(self) -> list[Row]:
        if not self.engine.alive():
            raise ConnectionError("refused")
        return super().rows()


def test_results_that_went_with_the_engine_leave_the_first_reading_to_be_judged(tmp_path):
    verdict, _ = in_world(tmp_path, ShutsDown)

    assert verdict.outcome is Outcome.UNKNOWN
    assert [result.name for result in verdict.checks if result.outcome is not Outcome.PASS] == ["stopped"]
    assert "ConnectionError: refused" in stopped(verdict).sentence


def test_what_is_expected_is_nowhere_in_the_run_while_the_engine_lives(tmp_path):
    seen: set[bool] = set()

    class Looked(FakeWorld):
        def rows(self) -> list[Row]:
            if self.engine.alive():
                seen.add(any(tmp_path.glob("*/expected.parquet")))
            return super().rows()

    _, store = in_world(tmp_path, Looked)

    assert seen == {False}
    assert store.has("expected.parquet")
    plan_text = (store.path / "plan.json").read_text()
    assert store.read_json("plan.json")["expected"]["digest"] in plan_text
    assert "views" not in plan_text


class Interrupted(FakeWorld):
    def go(self, epoch_ms: int) -> None:
        raise KeyboardInterrupt


def test_a_run_that_is_interrupted_has_what_was_expected_all_the_same(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        in_world(tmp_path, Interrupted)

    (run_folder,) = tmp_path.iterdir()
    assert (run_folder / "expected.parquet").exists()


def test_a_run_of_an_older_version_was_read_once_and_that_is_said(tmp_path):
    _, store = fake_run(tmp_path)
    sealed = store.read_json("plan.json")
    del sealed["expected"]
    store.write_json("plan.json", sealed)
    selftest.of_schema_2(store)
    (store.path / "observed-after-stop.parquet").unlink()

    verdict = judge(StoredRun.open(store.path))

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("no digests",))
    assert "read only once" in stopped(verdict).sentence
