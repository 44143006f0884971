"""Somebody edits a stored run: one that FAILs does not PASS by that, and one that PASSes is not blamed for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.judging import digests, verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import AFTER_STOP, OBSERVED, StoredRun
from harness.model import Outcome, UsageError, Verdict
from harness.rundir.store import HISTORY, Store
from harness.selftest import cheat
from harness.selftest.runs import fake_run
from reports import listing
from tests.quality import edits

ALL = bool(os.environ.get("STREAMGAUGE_TEST_ALL"))
COUNT = 300 if ALL else 8  # of each run
SEED = 1
BUGS = {"falls": "visiting-text", "drops": "drop", "stop": "double-at-stop"}
Recompute = Callable[[Store], None]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Store]:
    folder = tmp_path_factory.mktemp("edited")
    made = {name: fake_run(folder / name, conf={"misbehave": bug}) for name, bug in BUGS.items()}
    assert all(verdict.outcome is Outcome.FAIL for verdict, _ in made.values())
    made["right"] = fake_run(folder / "right", checksum=True, fault="kill@c3:batch=3", disorder="mobile")
    assert made["right"][0].outcome is Outcome.PASS
    return {name: store for name, (_, store) in made.items()}


def judged(store: Store) -> Verdict:
    """As `recheck` does it. A folder that it refuses with a sentence is no PASS either."""
    try:
        return judge(StoredRun.open(store.path))
    except UsageError as refused:
        return Verdict(Outcome.UNKNOWN, str(refused), 0, (), {})


def copied(store: Store, to: Path) -> Store:
    shutil.rmtree(to, ignore_errors=True)
    return Store(shutil.copytree(store.path, to))


def outcomes(run: Store, folder: Path, recompute: Recompute | None) -> list[tuple[edits.Edit, Outcome, str]]:
    """Of each edit: the outcome, and its sentence."""
    found = []
    for edit in edits.drawn(run.path, SEED, COUNT):
        store = copied(run, folder / "copy")
        edit.apply(store.path)
        if recompute:
            recompute(store)
        listed, verdict = listing.run_of(store), judged(store)
        passes = Outcome.PASS.value in (verdict.outcome.value, listed.state)
        found.append((edit, Outcome.PASS if passes else verdict.outcome, verdict.sentence))
    return found


@pytest.mark.parametrize("recompute", [None, cheat.recompute_digests], ids=["edited", "and digests.json"])
@pytest.mark.parametrize("name", BUGS)
def test_no_edit_of_one_file_makes_a_wrong_run_right(runs, tmp_path, name, recompute):
    assert [
        str(edit) for edit, outcome, _ in outcomes(runs[name], tmp_path, recompute) if outcome is Outcome.PASS
    ] == []


def test_an_edited_run_is_blamed_on_nobody_and_the_file_is_named(runs, tmp_path):
    found = outcomes(runs["right"], tmp_path, None)

    assert {outcome for _, outcome, _ in found} <= {Outcome.PASS, Outcome.UNKNOWN}
    assert [str(edit) for edit, outcome, said in found if outcome is not Outcome.PASS and edit.file not in said] == []


def test_the_number_of_edits_that_recomputing_all_lets_pass_is_printed(runs, tmp_path, capsys):
    """As docs/reference/run.md says, no digest prevents it."""
    found = [each for name in BUGS for each in outcomes(runs[name], tmp_path, cheat.recompute_all)]
    passed = [str(edit) for edit, outcome, _ in found if outcome is Outcome.PASS]
    with capsys.disabled():
        print(f"\n{len(passed)} of {len(found)} edits make a wrong run right if all is recomputed {passed or ''}")
    assert len(found) >= len(BUGS) * COUNT / 2


# The edits of a careful cheat, who knows what to change.


def loosened(store: Store) -> None:
    store.write_json("spec.json", {**store.read_json("spec.json"), "late_dropped_max": None})


def without_the_falls(store: Store) -> None:
    """What was seen for a while goes, with all that was seen of its window."""
    rows = store.read_table("samples.parquet").to_pylist()
    kept = {row.field for row in StoredRun(store).rows}
    kept_rows = [row for row in rows if str(row["window_ms"]) in kept]
    store.write_table("samples.parquet", {name: [row[name] for row in kept_rows] for name in rows[0]})


def as_before_the_stop(store: Store) -> None:
    shutil.copy(store.path / OBSERVED, store.path / AFTER_STOP)


CAREFUL: dict[str, tuple[Callable[[Store], None], dict[str, Any], str]] = {
    "spec.json": (loosened, {"disorder": "late", "late_dropped_max": 0}, "late-dropped"),
    "samples.parquet": (without_the_falls, {"conf": {"misbehave": "visiting-window"}}, "phantom"),
    AFTER_STOP: (as_before_the_stop, {"conf": {"misbehave": "double-at-stop"}}, "changed when stopped"),
}


@pytest.mark.parametrize("name", CAREFUL)
def test_one_file_edited_with_care(tmp_path, name):
    edit, changes, word = CAREFUL[name]
    verdict, store = fake_run(tmp_path, **changes)
    assert (verdict.outcome, verdict.words[0]) == (Outcome.FAIL, word)
    edit(store)
    cheat.recompute_digests(store)

    verdict = judged(store)

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("edited",))
    assert f"{name} was edited" in verdict.sentence


@pytest.mark.parametrize("name", ["spec.json", "samples.parquet"])
def test_one_file_edited_with_care_contradicts_another_one(tmp_path, name):
    """Whatever became of all digests."""
    edit, changes, _ = CAREFUL[name]
    _, store = fake_run(tmp_path, **changes)
    rows = store.read_table("samples.parquet").num_rows
    edit(store)
    cheat.recompute_all(store)
    cheat.say(store, "observer", rows=rows)
    cheat.recompute_digests(store)

    verdict = judged(store)

    assert verdict.outcome is Outcome.UNKNOWN
    assert name in verdict.sentence


def of_schema_2(store: Store) -> None:
    store.write_json("owner.json", {**store.read_json("owner.json"), "schema": 2})
    (store.path / digests.FILE).unlink()


def never_judged(store: Store) -> None:
    for name in (digests.FILE, verdict_file.FILE):
        (store.path / name).unlink()
    lines = (store.path / HISTORY).read_bytes().splitlines(keepends=True)
    (store.path / HISTORY).write_bytes(b"".join(line for line in lines if b'"kind":"verdict"' not in line))


@pytest.mark.parametrize("hide", [of_schema_2, never_judged])
def test_digests_that_are_gone_let_nothing_pass(runs, tmp_path, hide):
    store = copied(runs["stop"], tmp_path / "run")
    as_before_the_stop(store)
    hide(store)

    verdict = judged(store)

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("edited",))
    assert "digests.json is missing" in verdict.sentence


def test_what_was_wrong_at_first_is_not_right_now(runs, tmp_path):
    store = copied(runs["stop"], tmp_path / "run")
    as_before_the_stop(store)
    cheat.recompute_all(store)
    assert judged(store).outcome is Outcome.PASS, "as docs/reference/run.md says, digests do not prevent this"
    store.tell(verdict_file.KIND, outcome="FAIL")

    verdict = judged(store)

    assert verdict.outcome is Outcome.UNKNOWN
    assert "the first verdict of this run was FAIL" in verdict.sentence


def test_a_verdict_that_was_edited_is_not_listed_as_one(runs, tmp_path):
    store = copied(runs["drops"], tmp_path / "run")
    assert listing.run_of(store).state == "FAIL"
    store.write_json(verdict_file.FILE, {**store.read_json(verdict_file.FILE), "outcome": "PASS"})

    assert listing.run_of(store).state == listing.TORN
    assert "verdict.json was edited" in listing.run_of(store).sentence
