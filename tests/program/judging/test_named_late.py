"""A run of an engine that names what it dropped as late: judged to the single event, as with Spark's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.engines import fake, late
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import Outcome
from harness.selftest import cheat
from harness.selftest.runs import fake_run

SILENT_OF_LATE = replace(fake.MANIFEST, evidence="none")
LATE: Mapping[str, Any] = {"disorder": "late", "sink": "absolute"}


@pytest.fixture(scope="module")
def dropped(tmp_path_factory):
    """The places of all that the same engine drops, by its batches."""
    _, store = fake_run(tmp_path_factory.mktemp("told"), **LATE)
    found = StoredRun(store).countable
    return [*zip(found.events.partition[found.dropped], found.events.offset[found.dropped], strict=True)]


def judged(folder, places, **dials):
    """As if it had named these."""
    _, store = fake_run(folder, manifest=SILENT_OF_LATE, **LATE, **dials)
    lines = "".join(f"[{partition},{offset}]\n" for partition, offset in places)
    (store.path / late.FILE).write_text(lines)
    cheat.recompute_all(store)
    return judge(StoredRun(store))


def test_without_names_what_is_missing_is_inferred_and_slack_says_so(tmp_path):
    verdict, _ = fake_run(tmp_path, manifest=SILENT_OF_LATE, **LATE)
    (check,) = [each for each in verdict.checks if each.name == "late"]

    assert verdict.slack > 0
    assert "inferred from what the cells lack" in check.sentence


def test_with_names_nothing_could_be_missing_unnoticed(tmp_path, dropped):
    verdict = judged(tmp_path, dropped)
    (check,) = [each for each in verdict.checks if each.name == "late"]

    assert len(dropped) > 3
    assert verdict.slack == 0
    assert check.outcome is Outcome.PASS
    assert check.sentence == f"{len(dropped)} events dropped as late, each named by the engine itself"


def test_one_that_it_does_not_name_is_lost(tmp_path, dropped):
    assert judged(tmp_path, dropped[1:]).words == ("lost",)


def test_one_that_it_names_and_counted_is_duplicated_where_it_was_late_at_all(tmp_path, dropped):
    _, store = fake_run(tmp_path / "told", **LATE)
    found = StoredRun(store).countable
    rows = np.flatnonzero(found.permitted & ~found.dropped)[:1]
    kept = [*zip(found.events.partition[rows], found.events.offset[rows], strict=True)]

    assert judged(tmp_path, [*dropped, *kept]).words == ("duplicated",)


def test_killed_only_what_it_may_have_read_twice_could_be_missing_unnoticed(tmp_path):
    """Names below its durable progress stand, and what was sent after the restart was read once."""
    killed: Mapping[str, Any] = {"fault": "kill@t>=12s", "duration": "30s", "rate": 400}
    _, store = fake_run(tmp_path / "told", **LATE, **killed)
    found = StoredRun(store).countable
    places = [*zip(found.events.partition[found.dropped], found.events.offset[found.dropped], strict=True)]
    unnamed, _ = fake_run(tmp_path / "unnamed", manifest=SILENT_OF_LATE, **LATE, **killed)
    verdict = judged(tmp_path / "named", places, **killed)

    assert len(places) > 10
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert verdict.slack < len(places) / 2
    assert unnamed.slack > 10 * verdict.slack
    forgot = judged(tmp_path / "forgot", places[1:], **killed)
    assert forgot.words == ("lost",)
    assert "late.jsonl does not name it" in forgot.sentence
