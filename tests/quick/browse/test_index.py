"""The list: each folder is shown as what it is, and read again only if it changed."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.experiments.folder import Folder
from harness.model import SCHEMA_VERSION, Outcome
from harness.rundir import store
from harness.rundir.store import Store
from reports.browse.filtering import ON_A_PAGE, Wanted, choices, matching, page_of
from reports.browse.index import Entry
from reports.browse.site import Site
from tests.quick.browse import folders
from tests.quick.browse.folders import DOUBLES, LOSES, OLD, RIGHT, SCRIPT


def states(site: Site) -> dict[str, str]:
    return {entry.name: entry.state for entry in site.index.entries()}


def test_runs_of_each_version_have_verdict_engine_and_scenario(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, *folders.USED)
    assert states(site) == {RIGHT: "PASS", DOUBLES: "FAIL", OLD: "PASS", LOSES: "FAIL"}
    right = next(each for each in site.index.entries() if each.name == RIGHT)
    assert (right.engines, right.sink, right.scenarios) == (("fake",), "absolute", ("selftest",))
    assert right.series.startswith("selftest on fake/absolute, ")


def break_verdict(run: Path) -> None:
    (run / "verdict.json").write_text('{"outcome": "PASS", ')


def edit_verdict(run: Path) -> None:
    verdict = run / "verdict.json"
    verdict.write_text(verdict.read_text().replace("PASS", "FAIL"))


def break_owner(run: Path) -> None:
    (run / "owner.json").write_text("{")
    (run / "verdict.json").unlink()


def wrong_types(run: Path) -> None:
    (run / "verdict.json").unlink()
    (run / "history.jsonl").write_text('{"kind": "ended early"}\n[1, 2]\n{"at_ms": "noon", "kind": ["made"]}\n')


def newer(run: Path) -> None:
    (run / "owner.json").write_text(json.dumps({"schema": 99}))
    (run / "verdict.json").write_text(json.dumps({"schema": 99, "result": "fine"}))


@pytest.mark.parametrize("damage", [break_verdict, edit_verdict, break_owner, wrong_types, newer])
def test_a_broken_run_is_torn_and_costs_no_other_one(damage, site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT, DOUBLES)
    damage(runs / RIGHT)
    assert states(site) == {RIGHT: "torn", DOUBLES: "FAIL"}
    page = site.answers("/", {})
    assert page is not None
    assert site.answers(f"/run/runs/{RIGHT}", {}) is not None


def test_two_runs_are_compared_whatever_is_broken(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, *folders.USED)
    for name, damage in ((RIGHT, break_verdict), (DOUBLES, wrong_types), (OLD, newer)):
        damage(runs / name)
        page = site.answers("/compare", {"a": f"runs/{name}", "b": f"runs/{LOSES}"})
        assert page is not None
        assert page.status == 200, name


def test_half_a_line_of_a_history_is_shown_as_it_is(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    with (runs / RIGHT / "history.jsonl").open("a") as lines:
        lines.write('{"at_ms": 1795')
    assert states(site) == {RIGHT: "PASS"}
    page = site.answers(f"/run/runs/{RIGHT}", {})
    assert page is not None
    assert isinstance(page.body, bytes)
    assert b"(cut off)" in page.body


def test_a_foreign_folder_is_named_and_not_read(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    (runs / "node_modules").mkdir()
    (runs / "theirs").mkdir()
    (runs / "theirs" / "owner.json").write_text('{"name": "another program"}')
    (runs / "file.txt").write_text("no folder")
    assert states(site) == {RIGHT: "PASS", "node_modules": "not ours", "theirs": "not ours"}
    page = site.answers("/", {})
    assert page is not None
    assert isinstance(page.body, bytes)
    assert b"2 other folders, not read" in page.body
    assert site.answers("/run/runs/theirs", {}) is None


def test_a_run_in_progress_is_read_each_time(site: Site, runs: Path, stored: Path) -> None:
    being_written = folders.running(runs, stored)
    (first,) = site.index.entries()
    being_written.tell("epoch", epoch_ms=being_written.clock.now_ms() - 2_000)
    (second,) = site.index.entries()
    assert (first.state, second.state) == ("running", "running")
    assert "Kafka, Redis and the engine start" in first.sentence
    assert second.sentence.startswith("load, 2 s of ")
    assert site.index.read == 2


def test_what_did_not_change_is_read_once(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, *folders.USED)
    assert site.index.entries() == site.index.entries()
    assert site.index.read == len(folders.USED)

    Store(runs / RIGHT).tell("verdict", outcome="PASS", digest="of another one")
    assert states(site)[RIGHT] == "torn"
    assert site.index.read == len(folders.USED) + 1


SMALL = {"owner.json", "spec.json", "verdict.json", "history.jsonl", "measurement.json", "recovery.json"}
MOST_OPENED = 10  # files a run, of which a thousand are listed within a second


def test_a_list_opens_a_few_small_files_of_each_run_and_none_a_second_time(
    site: Site, runs: Path, stored: Path
) -> None:
    for number in range(10):
        for name in folders.USED:
            shutil.copytree(stored / name, runs / f"{name}-{number}", copy_function=os.link)
    with opened_below(runs) as first:
        assert len(site.index.entries()) == 10 * len(folders.USED)
    with opened_below(runs) as second:
        assert site.answers("/", {}) is not None

    assert {path.name for path in first} <= SMALL
    assert 0 < len(first) <= MOST_OPENED * 10 * len(folders.USED)
    assert second == []


OPENED: list[list[Path]] = []  # a list for each block that is open


@functools.cache
def listen() -> None:
    """A hook stays as long as the process."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and OPENED and isinstance(arguments[0], str | bytes | os.PathLike):
            OPENED[-1].append(Path(os.fsdecode(arguments[0])))

    sys.addaudithook(hook)


@contextmanager
def opened_below(folder: Path) -> Iterator[list[Path]]:
    """The files below a folder that are opened in the block."""
    listen()
    found: list[Path] = []
    OPENED.append([])
    try:
        yield found
    finally:
        found += [path for path in OPENED.pop() if path.is_relative_to(folder)]


def test_a_removed_run_is_gone(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT, OLD)
    site.index.entries()
    (runs / OLD).rename(runs.parent / OLD)
    assert states(site) == {RIGHT: "PASS"}


def test_an_experiment_has_its_runs_engines_and_state(site: Site, runs: Path, stored: Path) -> None:
    experiment = Folder.create(runs, "compare")
    experiment.save("compare", asked={"engines": ["spark", "flink"], "scenario": "calm"}, environment={"engine": "x"})
    with experiment.going_on("resume it"):
        (entry,) = site.index.entries()
        assert (entry.kind, entry.state, entry.sentence) == ("compare", "running", "")
        cases = [{"engine": engine, "leg": "steady", "seed": 1} for engine in ("spark", "flink")]
        again = [{"case": cases[0], "run": "runs/a"}, {"case": cases[0], "run": "runs/b"}]
        experiment.save("compare", asked={"engines": ["spark", "flink"], "scenario": "calm"}, wanted=cases, done=again)
        assert site.index.entries()[0].sentence == "1 of 2 cases done"
    experiment.finished(Outcome.PASS, "spark is faster")
    folders.copied(stored, experiment.runs, RIGHT)
    (entry,) = site.index.entries()
    assert (entry.state, entry.sentence) == ("PASS", "spark is faster")
    assert (entry.engines, entry.scenarios) == (("flink", "spark"), ("calm",))
    assert [each.name for each in site.index.entries(entry.place)] == [RIGHT]
    page = site.answers(f"/in/{entry.place}", {})
    assert page is not None
    assert isinstance(page.body, bytes)
    assert f"/run/{entry.place}/runs/{RIGHT}".encode() in page.body


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": 99, "kind": "x"}', f'{{"schema": {SCHEMA_VERSION}}}'])
def test_a_broken_experiment_is_shown(content: str, site: Site, runs: Path) -> None:
    (runs / "x").mkdir()
    (runs / "x" / "experiment.json").write_text(content)
    (entry,) = site.index.entries()
    assert entry.state in ("torn", "not ours")
    assert site.answers("/", {}) is not None


def test_a_served_experiment_lists_its_runs(tmp_path: Path, stored: Path) -> None:
    experiment = Folder.create(tmp_path, "chaos")
    experiment.save("chaos")
    folders.copied(stored, experiment.runs, RIGHT)
    site = Site({"x": experiment.path})
    assert [each.place for each in site.index.entries()] == [f"x/runs/{RIGHT}"]
    assert site.answers(f"/files/x/runs/{RIGHT}/plan.json", {}) is not None


def test_a_copied_page_is_a_page(site: Site, runs: Path) -> None:
    (runs / "copy").mkdir()
    (runs / "copy" / "report.html").write_text('<p class="name">streamgauge</p>')
    (entry,) = site.index.entries()
    assert (entry.kind, entry.has_page) == ("page", True)
    assert site.answers("/files/runs/copy/report.html", {}) is not None


# ---------------------------------------------------------------- The filter


def entry(name: str, state: str = "PASS", engine: str = "spark", scenario: str = "calm", fault: str = "none") -> Entry:
    return Entry(f"runs/{name}", "run", state, f"{name} is {state}", 1, (engine,), "absolute", (scenario,), fault)


ALL = [
    entry("one"),
    entry("two", "FAIL", fault="kill@c3:batch=3"),
    entry("three", engine="flink"),
    entry("four", "UNKNOWN", "flink", "storm"),
    Entry("runs/theirs", "other", "not ours"),
]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["one", "two", "three", "four"]),
        ({"state": "FAIL"}, ["two"]),
        ({"engine": "flink"}, ["three", "four"]),
        ({"engine": "flink", "scenario": "calm"}, ["three"]),
        ({"word": "KILL@c3"}, ["two"]),
        ({"word": " fail  two "}, ["two"]),
        ({"word": "absolute"}, ["one", "two", "three", "four"]),
        ({"word": "nothing has it"}, []),
        ({"engine": SCRIPT}, []),
    ],
)
def test_the_filter_takes_what_is_asked(query: dict[str, str], names: list[str]) -> None:
    assert [each.name for each in matching(ALL, Wanted.of(query))] == names


def test_the_choices_are_those_that_occur() -> None:
    found = choices(ALL)
    assert found.states == {"FAIL": 1, "PASS": 2, "UNKNOWN": 1}
    assert (found.engines, found.scenarios) == ({"flink": 2, "spark": 2}, {"calm": 3, "storm": 1})


@pytest.mark.parametrize(
    ("asked", "number"), [("", 1), ("2", 2), ("0", 1), ("99", 3), ("-1", 1), ("x", 1), ("²", 1), ("9" * 20, 1)]
)
def test_a_long_list_has_pages(asked: str, number: int) -> None:
    entries = [entry(str(each)) for each in range(2 * ON_A_PAGE + 1)]
    shown, chosen, pages = page_of(entries, asked)
    assert (chosen, pages) == (number, 3)
    assert shown[0].name == str((number - 1) * ON_A_PAGE)


def test_the_newest_come_first(site: Site, runs: Path) -> None:
    for name, at_ms in (("b", 3000), ("a", 1000), ("c", 2000)):
        run = Store.create(runs, "calm")
        (run.path / store.HISTORY).write_text(json.dumps({"kind": "made", "at_ms": at_ms}) + "\n")
        run.path.rename(runs / name)
    assert [each.name for each in site.index.entries()] == ["b", "c", "a"]
