"""For how long the oldest probe has waited that no reader has seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generators.tape import Tape
from harness.config import plan
from harness.engines import fake
from harness.results.oldest_unseen import Unseen
from workloads.registry import oracle_of

EPOCH_MS = 1_750_000_000_000
KEYS = {"engine": "fake", "rate": 200, "duration": "8s", "window": "4s", "campaigns": 5, "probes": 20}
KEYS |= {"fault": "none", "disorder": "none"}


@pytest.fixture
def spec():
    return plan.resolve("test", KEYS, {}, lambda *_: fake.MANIFEST)[0]


def dues_ms(tape):
    return tape.probes.due_us(np.arange(tape.probes.total)) / 1000


def test_nothing_waits_where_readers_see_all(spec):
    unseen = Unseen(oracle_of(spec), EPOCH_MS, lambda *_: True)

    assert [unseen.oldest_ms(Tape(spec.tape), at_ms) for at_ms in (0, 1000, 7999)] == [0.0, 0.0, 0.0]


def test_one_that_nobody_sees_waits_from_when_it_was_due(spec):
    tape, unseen = Tape(spec.tape), Unseen(oracle_of(spec), EPOCH_MS, lambda *_: False)
    first_ms = dues_ms(tape)[0]

    assert unseen.oldest_ms(tape, 5000) == 5000 - first_ms
    assert unseen.oldest_ms(tape, 6000) == 6000 - first_ms


def test_what_was_seen_waits_no_longer_and_the_next_one_does(spec):
    asked, seen, tape = [], set(), Tape(spec.tape)

    def shows(*cell):
        asked.append(cell)
        return cell in seen

    unseen = Unseen(oracle_of(spec), EPOCH_MS, shows)
    first_ms, second_ms = dues_ms(tape)[:2]

    assert unseen.oldest_ms(tape, 4000) == 4000 - first_ms
    seen.add(asked[0])
    assert unseen.oldest_ms(tape, 4000) == 4000 - second_ms
    assert asked[0][1] == EPOCH_MS, "the window in which it is due"


def test_a_load_without_probes_tells_nothing(spec):
    without = replace(spec, tape=replace(spec.tape, probes=0))

    assert Unseen(oracle_of(without), EPOCH_MS, lambda *_: False).oldest_ms(Tape(without.tape), 5000) == 0.0
