"""docs/start/why.md: each word of a verdict and each cause has an entry, none is left over, and reports name them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from harness.cli.app import COMMANDS
from harness.experiments.upgrade import Upgraded, Word
from harness.judging.checks import CHECKS
from harness.judging.judge import conclude
from harness.model import CheckResult, EngineState, Outcome, Verdict
from harness.selftest import planted
from harness.selftest.report import EXPECTED
from reports import project_url, screen, why
from reports.exports import machine, markdown
from reports.page import Link, Page, render
from tests.quick.reports.test_screen import MEASURED, failed, result, wrong

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / why.PAGE).read_text(encoding="utf-8")
FAILED, UNDECIDED = PAGE.split("| UNKNOWN | words |")[0], PAGE.split("| UNKNOWN | words |")[1].split("\n## ")[0]
SOURCES = sorted((ROOT / "harness").rglob("*.py"))
CHAPTERS = {"why-is-my-run-unknown-or-fail", "fail", "unknown", "other-commands"}
REACHED_THE_END = {"drained", "unsettled"}
MOST_WORDS = 65
COLUMNS = 79


def anchors_of(page: str) -> list[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]


ANCHORS = anchors_of(PAGE)


def words_of(source: str) -> Iterator[str]:
    """The words that a check may give: by name, or at the fourth place of its result. `failed` has it at the fifth
    place, or takes the name of the check.
    """
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        given = [each.value for each in call.keywords if each.arg == "word"]
        if isinstance(call.func, ast.Name) and call.func.id == "CheckResult":
            given += call.args[3:4]
        if isinstance(call.func, ast.Name) and call.func.id == "failed":
            given += call.args[4:5] or call.args[:1]
        for text in (node for value in given for node in ast.walk(value)):
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value:
                yield text.value


@cache
def texts() -> frozenset[str]:
    """All texts of the program but for its docstrings, and the fixed parts of those with gaps."""
    found: set[str] = set()
    for path in SOURCES:
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        constants = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
        found |= {node.value for node in constants if isinstance(node.value, str)}
    return frozenset(found)


def all_words() -> set[str]:
    """Those in the source, those of planted bugs, and the states of an engine that did not reach the end."""
    written = {word for path in SOURCES for word in words_of(path.read_text(encoding="utf-8"))}
    expected = [told for part in tomllib.loads(EXPECTED.read_text()).values() for told in part.values()]
    told = {word for each in expected for word in each.partition(" ")[2].split(", ") if word}
    return written | told | ({*get_args(EngineState)} - REACHED_THE_END)


def unexplained(words: Iterable[str], page: str = PAGE) -> set[str]:
    return {word for word in words if word not in why.WORDS or why.anchor_of(word) not in anchors_of(page)}


def entries() -> dict[str, str]:
    """The text of each entry, without its heading."""
    _, *parts = re.split(r"^#+ .+$", PAGE, flags=re.MULTILINE)
    return dict(zip(ANCHORS, parts, strict=True))


def test_every_word_that_a_verdict_may_have_has_an_entry():
    words = all_words()

    assert len(words) > len(CHECKS)
    assert unexplained(words) == set()
    assert words == why.WORDS, "there are words that nothing gives"


def test_a_word_without_an_entry_is_found():
    (word,) = words_of('CheckResult("lost", Outcome.FAIL, "they are gone", word="evaporated")')
    (at_its_place,) = words_of('CheckResult("lost", Outcome.FAIL, "they are gone", "evaporated")')
    told_by_engine = [
        *words_of('failed("lost", "they are gone", 3, (), "evaporated")\nfailed("evaporated", "", 3, ())')
    ]

    assert [word, word] == told_by_engine
    assert word == at_its_place
    assert unexplained({word, "lost"}) == {"evaporated"}
    assert unexplained({"lost", "stuck"}, PAGE.replace("### `lost`\n", "")) == {"lost"}


def reached() -> set[str]:
    """The anchors of all entries that a run may lead to."""
    causes = [*why.CAUSES.values(), why.WITHOUT_A_WORD]
    words = map(why.anchor_of, why.WORDS)
    others = {"cut-short", why.NOT_JUDGED, why.UPGRADE}
    return {*words, *why.IF_UNKNOWN.values(), *(to for each in causes for _, to in each)} | others


def test_every_anchor_is_a_heading_and_no_heading_is_left_over():
    assert len(ANCHORS) == len(set(ANCHORS))
    assert reached() - set(ANCHORS) == set()
    others = set(ANCHORS) - reached() - CHAPTERS
    assert others
    assert others - {*COMMANDS} == set()


@pytest.mark.parametrize(
    "said", sorted({said for causes in (*why.CAUSES.values(), why.WITHOUT_A_WORD) for said, _ in causes})
)
def test_what_tells_causes_apart_is_said_by_the_program(said):
    assert any(said in text for text in texts())


def test_every_check_of_a_planted_bug_leads_to_an_entry():
    seen = set()
    for name, case in planted.planted():
        verdict = conclude(case)
        for check in verdict.checks:
            assert (why.anchor(check) in ANCHORS) is (check.outcome is not Outcome.PASS), (name, check)
        leading = why.leading(verdict)
        assert (why.name(verdict) == "") is (verdict.outcome is Outcome.PASS), name
        if leading and verdict.outcome is not Outcome.PASS:
            assert verdict.sentence.startswith(f"{leading.word or leading.name}: {leading.sentence}"), name
            assert why.name(verdict) == f"{why.PAGE}#{why.anchor(leading)}", name
            seen.add((verdict.outcome, leading.word))

    shown = {Outcome.FAIL: FAILED, Outcome.UNKNOWN: UNDECIDED}
    odd = {(outcome, word) for outcome, word in seen if word and f"[`{word}`](#" not in shown[outcome]}
    assert odd == set(), "these stand in the table of the other outcome"


@pytest.mark.parametrize("word", sorted(why.WORDS))
def test_the_tables_at_the_top_lead_to_every_word(word):
    assert (FAILED + UNDECIDED).count(f"[`{word}`](#{why.anchor_of(word)})") == 1


def test_entries_are_short():
    own = {anchor: len(text.split()) for anchor, text in entries().items() if anchor not in CHAPTERS}

    assert {anchor: words for anchor, words in own.items() if words > MOST_WORDS} == {}
    assert min(own.values()) > 5


def of(word: str, sentence: str, outcome: Outcome = Outcome.FAIL, check: str = "engine") -> str:
    return why.anchor(CheckResult(check, outcome, sentence, word))


READY = "no answer within 120 s (ready_s); 0 of 4 opening events have been counted in window 1763700000000"
BATCH = "exactly batch 3 once more"


@pytest.mark.parametrize(
    ("word", "sentence", "anchor"),
    [
        ("stuck", READY, "stuck"),
        (
            "stuck",
            f"{READY}; the job wrote keys such as 'a' (a string), but the manifest expects b",
            "stuck-results-elsewhere",
        ),
        (
            "stuck",
            f"{READY}; the job wrote nothing to Redis. Check that it reads all partitions",
            "stuck-nothing-written",
        ),
        ("stuck", "no progress for 120 s (drain_s); 5 of 9 records are done", "stuck-no-progress"),
        ("stuck", "no progress for 120 s (ready_s); 5 of 9 records are done", "stuck-no-progress"),
        (
            "stuck",
            "no answer within 120 s (drain_s); 0 of 4 closing events have been counted",
            "stuck-closing-events-not-counted",
        ),
        ("stuck", "no answer within 120 s; kill@offset=50%: SIGKILL to process group 7", "stuck-after-a-fault"),
        ("crashed", "the engine ended by itself with exit code 1 although no fault killed it", "crashed"),
        ("crashed", "the engine ended by itself with exit code 1 for the 9th time", "crashed-again-and-again"),
        ("duplicated", f"7 events too many in 2 cells: {BATCH}, which was replayed", "duplicated-one-batch-again"),
        (
            "duplicated",
            f"7 events too many in 2 cells: {BATCH}: the checkpoint had lost that run",
            "duplicated-a-forgotten-batch",
        ),
        ("duplicated", "7 events too many in 2 cells, windows 12:08:30 UTC", "duplicated"),
        ("late-dropped", "9 events dropped as late, at most 0 allowed", "late-dropped"),
        ("oracle", "they differ", "oracle"),
    ],
)
def test_a_sentence_leads_to_its_cause(word, sentence, anchor):
    assert of(word, sentence) == anchor
    assert anchor in ANCHORS


def test_a_word_may_have_another_cause_if_nothing_is_decided():
    ours = "9 events dropped as late, at most 0 allowed; 9 of them were sent seconds after their time"

    assert of("late-dropped", ours, check="late") == "late-dropped"
    assert of("late-dropped", ours, Outcome.UNKNOWN, "late") == "late-dropped-sent-late"


def test_a_check_that_passed_has_no_entry_and_an_unknown_word_leads_to_the_page():
    odd = CheckResult("lost", Outcome.FAIL, "they are gone", "evaporated")

    assert of("", "all is right", Outcome.PASS) == ""
    assert why.anchor(odd) == ""
    assert why.name(Verdict(Outcome.FAIL, "evaporated: they are gone", 0, (odd,), {})) == why.PAGE
    assert why.name(Verdict(Outcome.UNKNOWN, "nothing was checked", 0, (), {})) == why.PAGE


def test_the_check_that_leads_the_sentence_is_explained():
    lost, stopped = (CheckResult(name, Outcome.FAIL, f"{name}!", name, 1) for name in ("lost", "unreadable"))
    verdict = Verdict(Outcome.FAIL, "unreadable: unreadable!", 2, (lost, stopped), {})

    assert why.leading(verdict) is stopped
    assert why.leading(replace(verdict, sentence="of an older version")) is lost


def test_the_screen_the_summary_and_json_name_the_entry(monkeypatch):
    monkeypatch.setattr(project_url, "_of_project", lambda: "")
    shown = failed(wrong("lost"))

    assert "  why      docs/start/why.md#lost" in screen.lines(shown)
    assert "Why, and what to do: `docs/start/why.md#lost`." in markdown.as_text(shown)
    assert machine.as_object("run", shown)["why"] == "docs/start/why.md#lost"


def test_a_pass_needs_no_entry():
    right = result(MEASURED)

    assert not any(line.startswith("  why ") for line in screen.lines(right))
    assert "why.md" not in markdown.as_text(right)
    assert machine.as_object("run", right)["why"] == ""


def test_an_upgrade_that_was_refused_is_explained_by_its_own_entry():
    lines = screen.upgraded("old", "new", Upgraded(Word.REFUSED, "it stopped", 3), result(MEASURED))

    assert [line for line in lines if line.startswith("  why ")] == ["  why      docs/start/why.md#upgrade"]


def test_every_name_fits_the_screen():
    assert max(len(f"  why      {why.link(anchor)}") for anchor in reached()) <= COLUMNS


def test_where_the_project_has_an_address_the_page_and_the_summary_have_a_link(monkeypatch):
    monkeypatch.setattr(project_url, "_of_project", lambda: "https://forge.example/team/streamgauge/")
    address = "https://forge.example/team/streamgauge/blob/HEAD/docs/start/why.md#lost"

    assert project_url.of("docs/start/why.md#lost") == address
    assert f"[docs/start/why.md#lost]({address})" in markdown.as_text(failed(wrong("lost")))


@pytest.mark.parametrize(
    ("href", "shown"),
    [
        ("", "Why, and what to do: docs/start/why.md#lost."),
        ("https://forge.example/x", '<a href="https://forge.example/x">docs/start/why.md#lost</a>.'),
    ],
)
def test_a_page_names_the_entry(href, shown):
    page = Page("a run", "", Outcome.FAIL, "lost: 1.", (), (), "", (), why=Link("docs/start/why.md#lost", href))

    assert shown in render(page)
    assert "why.md" not in render(replace(page, why=None))


def test_the_address_is_that_of_the_metadata(monkeypatch, tmp_path):
    monkeypatch.setattr(project_url, "ROOT", tmp_path)
    file = tmp_path / "pyproject.toml"

    assert project_url._in_checkout() == {}
    file.write_text('[project]\nname = "x"\n')
    assert project_url._in_checkout() == {}
    file.write_text("[project\n")
    assert project_url._in_checkout() == {}
    file.write_text('[project.urls]\nRepository = "https://forge.example/x"\n')
    assert project_url._in_checkout() == {"Repository": "https://forge.example/x"}
