"""Whatever befalls the files of a run that is wrong: it never PASSes, and it is said with a word what is missing."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.drivers import one_run
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import Exit, Outcome, RunSpec, TapeSpec, UsageError
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from tests.quality import tampered

pytestmark = pytest.mark.timeout(900)
VALUES: tuple[Any, ...] = (None, 0, -1, 1 << 62, 1e300, "", "x", [], {}, True, False, ...)  # ...: the field is gone
# Without digests nothing can tell a file that is shorter than it was from one that was never longer.
PART_OF_IT = ("half", "half of its rows")
WITH_A_WORD = re.compile(r"(FAIL|UNKNOWN)  [a-z][a-z -]+:\s")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tampered.make(tmp_path_factory.mktemp("tampered"))


# With the digests of before, each change of a file is `edited`, whatever is wrong: `recheck` below tries that of one.
@pytest.mark.parametrize("digests", [pytest.param("as before", marks=pytest.mark.thorough), "written anew"])
@pytest.mark.parametrize("wrong", tampered.WRONG)
def test_no_file_can_be_damaged_so_that_a_wrong_run_passes(runs, tmp_path, wrong, digests):
    passed, silent = [], []
    for name in tampered.files_of(runs[wrong]):
        if name == "digests.json" and digests != "as before":
            continue
        for number, (what, tamper) in enumerate(tampered.tampers(runs[wrong].path / name)):
            store = tampered.copied(runs[wrong], tmp_path / f"{name}-{number}")
            tamper(store.path / name)
            if digests != "as before" and what in PART_OF_IT:
                continue
            if digests == "written anew":
                tampered.with_digests(store)
            verdict = judge(StoredRun(Store(store.path)))
            passed += [f"{name}: {what}"] if verdict.outcome is Outcome.PASS else []
            silent += [f"{name}: {what}"] if not verdict.words else []
    assert passed == []
    assert silent == []


def spec_changes() -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Each field of spec.json and of its tape, gone or of another value."""
    for where, fields in (((), dataclasses.fields(RunSpec)), (("tape",), dataclasses.fields(TapeSpec))):
        for name in (field.name for field in fields):
            for value in VALUES:
                yield where, name, value


def test_no_field_of_the_spec_can_be_edited_so_that_a_wrong_run_passes(runs, tmp_path):
    store = tampered.copied(runs["one lost, one doubled"], tmp_path / "run")
    before = store.read_json("spec.json")
    for where, name, value in spec_changes():
        spec = json.loads(json.dumps(before))
        place = spec[where[0]] if where else spec
        place.pop(name) if value is ... else place.update({name: value})
        if spec == before:
            continue
        store.write_json("spec.json", spec)
        verdict = judge(StoredRun(Store(store.path)))
        assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("edited",)), (where, name, value)
        assert "spec.json was edited" in verdict.sentence


def test_a_spec_of_another_tape_is_refused_without_digests_too(runs, tmp_path):
    store = tampered.copied(runs["one lost, one doubled"], tmp_path / "run")
    before = store.read_json("spec.json")
    for _, name, value in [each for each in spec_changes() if each[0]]:
        spec = json.loads(json.dumps(before))
        spec["tape"].pop(name) if value is ... else spec["tape"].update({name: value})
        if spec == before or ({**spec["tape"], name: None} == {**before["tape"], name: None} and value is ...):
            continue
        store.write_json("spec.json", spec)
        tampered.with_digests(store)
        assert judge(StoredRun(Store(store.path))).outcome is not Outcome.PASS, (name, value)


def _not_driven(*_: object) -> None:
    raise UsageError("It could be run again.")


# A page takes long to draw: in parts, which go on beside each other.
@pytest.mark.parametrize(
    ("command", "part", "parts"),
    [("recheck", 0, 1), *(("report", part, 4) for part in range(4)), ("replay", 0, 1), ("ls", 0, 1)],
)
def test_no_command_ends_in_a_traceback_on_a_damaged_run(runs, tmp_path, monkeypatch, command, part, parts):
    """Exit 3 or 2 with a sentence, and of a verdict a word; `ls` and `report` show what is left."""
    if command == "recheck":
        monkeypatch.setattr(one_run, "write_page", lambda *_: None)  # `report` tries that
    if command == "replay":
        monkeypatch.setattr(one_run, "drive", _not_driven)
    wrong = runs["one lost, one doubled"]
    for name in tampered.files_of(wrong):
        for number, (what, tamper) in enumerate(tampered.tampers(wrong.path / name)):
            if number % parts != part:
                continue
            store = tampered.copied(wrong, tmp_path / command / f"{name}-{number}")
            tamper(store.path / name)
            place = store.path.parent if command == "ls" else store.path
            try:
                done = CliRunner().invoke(app.app, [command, str(place)], catch_exceptions=False)
            except (UsageError, MissingEvidence):  # exit 2 and 3, with their sentence
                continue
            assert done.exit_code in (Exit.PASS, Exit.USAGE, Exit.UNKNOWN, Exit.FAIL), (name, what)
            assert command in ("ls", "report") or done.exit_code != Exit.PASS, (name, what)
            assert command != "recheck" or WITH_A_WORD.match(done.stdout), (name, what, done.stdout)
