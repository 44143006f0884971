"""A load that is decided while it goes on, in a world without processes: one verdict over all that was offered."""

from __future__ import annotations

import pytest

from generators.tape import Tape
from harness.config import plan
from harness.engines import fake
from harness.experiments.curve.files import pieces_of
from harness.experiments.curve.plateau import Piece, Why
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import Outcome, RunSpec
from harness.rundir.store import Store
from harness.runner.rate_search_run import HORIZON_MS, RateSearchRun, beginning_with
from harness.runner.screen import NullScreen
from harness.runner.world.fake import FakeWorld

KEYS = {"engine": "fake", "rate": 200, "duration": "4s", "window": "4s", "campaigns": 5, "probes": 5, "fault": "none"}
PIECES = [Piece(rate, Why.LEVEL, number) for number, rate in enumerate((200.0, 500.0, 50.0, 900.0))]


def lived(folder, misbehave=""):
    conf = {"misbehave": misbehave} if misbehave else {}
    spec, manifest = plan.resolve("test", {**KEYS, "disorder": "mobile", "conf": conf}, {}, lambda *_: fake.MANIFEST)
    store = Store.create(folder, "life")

    def decide(pieces, _):
        return PIECES[len(pieces)] if len(pieces) < len(PIECES) else None

    world = FakeWorld(beginning_with(spec, PIECES[0]), store, grows=True)
    life = RateSearchRun(spec, manifest, world, StoredRun(store), NullScreen(), first=PIECES[0], decide=decide)
    return store, life.all({}), life.standings


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("honest"))


def test_all_that_was_decided_is_sent_and_judged(honest):
    store, verdict, standings = honest
    spec = store.read_as("spec.json", RunSpec)

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert [segment.start_per_s for segment in spec.tape.profile] == [200.0, 500.0, 50.0, 900.0]
    assert pieces_of(StoredRun(store)) == PIECES
    assert sum(store.read_table("sends.parquet").column("sent").to_pylist()) == Tape(spec.tape).total
    assert [-(-each.at_ms // 4000) for each in standings] == [1, 2, 3, 4]


def test_a_stretch_is_written_down_before_its_first_event_is_sent(honest):
    store, _, _ = honest
    (epoch_ms,) = (told["epoch_ms"] for told in store.history("epoch"))
    early = [epoch_ms + told["from_ms"] - told["at_ms"] for told in store.history("piece")]

    assert len(early) == len(PIECES)
    assert min(early[1:]) > HORIZON_MS * 2 / 3


def test_it_is_judged_again_from_its_files(honest):
    store, verdict, _ = honest

    assert judge(StoredRun(Store(store.path))).outcome is verdict.outcome


def test_what_is_lost_of_a_later_stretch_is_found(tmp_path):
    _, verdict, _ = lived(tmp_path, "drop:300")

    assert verdict.outcome is Outcome.FAIL
    assert "lost" in verdict.words
