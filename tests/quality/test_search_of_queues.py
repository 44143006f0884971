"""A search of simulated queues: its interval holds their true capacity, and a capacity that sinks has no answer."""

from __future__ import annotations

import numpy as np
import pytest

from harness.experiments.curve import crossing, lives, steer
from tools.search_proof import proof
from tools.search_proof.proof import KINDS

OBJECTIVE_MS = 10_000.0
KIND = {kind.name: kind for kind in KINDS}


@pytest.mark.parametrize("name", ["maintenance", "neighbours", "state that grows", "no batches told"])
def test_an_interval_holds_the_truth(name):
    lanes = proof.searched(KIND[name], 4, 5)
    assert sum(lane.covered for lane in lanes) >= 3
    assert not any(lane.held_above for lane in lanes)


def test_a_capacity_that_sinks_has_no_answer():
    assert sum(lane.low_per_s is None for lane in proof.searched(KIND["sinks"], 4, 5)) >= 3


def lived(kind, seed, count):
    """What was measured in each life of one engine, with its truth."""
    settings, draw = steer.QUICK, np.random.default_rng(seed)
    engines = kind.engines(draw, 1)
    (truth_per_s,) = proof.truths(kind, engines, draw, OBJECTIVE_MS / 1000)
    courses = [proof.courses(kind, engines, draw, [settings])[0] for _ in range(count)]
    each = [list(lives.apart(life, proof.measured(kind, course, settings))) for life, course in enumerate(courses)]
    return truth_per_s, each


def test_three_lives_say_more_than_one():
    truth_per_s, each = lived(KIND["neighbours"], 7, 3)
    alone = [crossing.answer(own, OBJECTIVE_MS).width for own in each]
    together = lives.answer(each, OBJECTIVE_MS)

    assert together.low_per_s is not None
    assert together.high_per_s is not None
    assert together.low_per_s <= truth_per_s <= together.high_per_s
    assert together.width is not None
    assert together.width < np.mean([width for width in alone if width])
