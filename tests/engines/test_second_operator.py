"""Which events a second stateful operator of Spark drops as late: what docs/evidence/questions.md says of it."""

from __future__ import annotations

import pytest

from tests.engines.parse_in_python import make_session
from tests.engines.second_operator import events, in_time_for_its_window, in_time_itself, pairs, see

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600), pytest.mark.xdist_group("spark-parse")]  # one session


@pytest.mark.parametrize("seed", [1, 2])
def test_behind_an_aggregate_nothing_more_is_dropped(tmp_path, seed):
    given = events(seed)
    seen = see(make_session(), tmp_path, "an aggregate of an aggregate", given)

    assert seen.events == {each.number for each in given[:-1] if in_time_for_its_window(seen, each)}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_join_with_an_aggregate_drops_events_by_the_same_watermark(tmp_path, seed):
    given = events(seed)
    seen = see(make_session(), tmp_path, "a join with an aggregate", given)

    assert seen.events == {each.number for each in given[:-1] if in_time_itself(seen, each)}


@pytest.mark.parametrize("seed", [1, 2])
def test_behind_a_join_the_watermark_of_the_checkpoint_is_not_the_rule(tmp_path, seed):
    given = events(seed)
    seen = see(make_session(), tmp_path, "an aggregate of a join", given)
    made = pairs(seen, given)

    assert set(seen.rows) == set(made)
    assert any(made.values()), "no pair came late, so nothing was tested"
