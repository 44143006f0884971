"""The events of ours lie in the log among those of the load: wherever a run sends them, both routes to the truth see
the same."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.ledger import Ledger
from harness.judging.facts import by_the_tape
from harness.model import FaultSpec, RunSpec, Sentinel, TapeSpec
from harness.runner import sentinels
from harness.runner.result_polling import ResultPoller
from harness.runner.sentinels import Marking
from tests.quick.workloads.test_declared_workload import recounted
from workloads.base import NEVER, Values
from workloads.registry import chosen, codec_of, oracle_of, results_of
from workloads.shipped import WORKLOADS

EXAMPLES = Path(__file__).parents[3] / "examples"
EVERY = [*WORKLOADS, *(str(each.parent) for each in sorted(EXAMPLES.glob("*/workload.toml")))]
WINDOW_MS, LATENESS_MS = 10_000, 10_000
EPOCH_MS = 1_763_700_060_000
STARTED_MS = EPOCH_MS - 5_000
ANSWERED_MS = EPOCH_MS + 60_000  # whoever answers so late shows what the manifest does not say


class World:
    """Its time stands still until somebody sets it."""

    def __init__(self) -> None:
        self.sent: list[Sentinel] = []
        self.at_ms = STARTED_MS
        self.results = self.servers = self.fault = self.log = self.clock = self

    def now_ms(self) -> int:
        return self.at_ms

    def send(self, marks: Any) -> None:
        self.sent += marks


def sent_by_a_run(spec: RunSpec, *, final: bool, behind: bool) -> list[Sentinel]:
    """All that it may send, from the first opening event to the last closing one."""
    world, schedule = cast(Any, World()), Schedule(spec.tape)
    answers = ResultPoller(world, oracle_of(spec), codec_of(spec.tape), results_of(spec.tape).keys)
    tell = cast(Any, lambda *_, **__: None)
    ours = Marking(world, tell, answers, spec, final=final, earliest_ms=schedule.earliest_rel_ms)
    opening = ours.open_at(EPOCH_MS - 1) if behind else ours.open()
    if not final:
        world.at_ms = ANSWERED_MS
        assert ours.close_opening(opening) or answers.closes_ms_of(opening) == NEVER
    ours.close(EPOCH_MS + schedule.load.event_time_bounds_rel_ms()[1])
    return cast(list[Sentinel], world.sent)


@pytest.mark.parametrize(
    ("final", "behind"), [(False, False), (True, False), (True, True)], ids=["at once", "final", "behind a backlog"]
)
@pytest.mark.parametrize("workload", EVERY, ids=lambda name: Path(name).name)
def test_the_fold_of_the_tape_with_marks_is_the_recount_of_the_log_that_holds_them(
    workload, final, behind, monkeypatch
):
    monkeypatch.setattr(sentinels, "KEYS_PER_PARTITION", 2)  # each key costs a query
    found = chosen(workload)
    tape = TapeSpec(
        11, steady(50, 25_000), 3, 20, 1, 10, 10, PRESETS["storm"], workload=found.id, declaration=found.declaration
    )
    spec = RunSpec("", "", "", tape, WINDOW_MS, LATENESS_MS, "", None, FaultSpec("none"))
    marks, codec, oracle = sent_by_a_run(spec, final=final, behind=behind), codec_of(tape), oracle_of(spec)
    blocks = [*Schedule(tape).blocks()]
    load, ours = Encoder(codec, EPOCH_MS), Encoder(codec, 0)
    values = [message["value"] for block in blocks for message in load.batch(block)]
    values += [ours.mark(each)["value"] for each in marks]
    ids = np.concatenate([*(block.id for block in blocks), [each.id for each in marks]]).astype(np.int64)
    log = {"event_id": ids, **codec.read(Values.of(values), ids)}
    run = cast(Any, SimpleNamespace(codec=codec, marks=marks, schedule=Schedule(tape), epoch_ms=EPOCH_MS))

    tape_ledger = by_the_tape(run, oracle, Ledger.of(oracle.settle(oracle.plan(blocks), EPOCH_MS)))

    assert tape_ledger == Ledger.of(recounted(oracle, log))
