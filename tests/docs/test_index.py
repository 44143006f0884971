"""docs/README.md: every document is in the index, and every word of a verdict is in the glossary, with its outcome."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness.judging.checks import CHECKS
from harness.selftest.report import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
INDEX = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(
    str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md"
)
ROWS = re.findall(r"^\| (`.+`) \| (FAIL|UNKNOWN) \| .+ \|$", INDEX, re.MULTILINE)
MEANING = {word: outcome for words, outcome in ROWS for word in re.findall(r"`([^`]+)`", words)}
SPEAKING = [path for path in (ROOT / "harness").rglob("*.py") if "CheckResult(" in path.read_text(encoding="utf-8")]
PLANTED = sorted({told for part in tomllib.loads(EXPECTED.read_text()).values() for told in part.values()})


def test_every_part_of_the_selftest_is_explained():
    """Its file of what is expected, wrong checkers, and runs that must PASS."""
    text = (ROOT / "docs" / "evidence" / "selftest.md").read_text(encoding="utf-8")
    explained = [
        word for row in re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)
    ]

    assert sorted(explained) == sorted([*tomllib.loads(EXPECTED.read_text()), "mutants", "clean"])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_document_is_in_the_index(document):
    assert f"]({document})" in INDEX or f"]({document}#" in INDEX


@pytest.mark.parametrize("told", PLANTED)
def test_every_word_of_a_verdict_is_in_the_glossary_with_its_outcome(told):
    """The planted bugs of `selftest` are answered with every word there is."""
    outcome, _, words = told.partition(" ")
    for word in filter(None, words.split(", ")):
        assert word in MEANING
        assert MEANING[word] == outcome or (outcome == "FAIL" and "," in words)  # the worse of two outcomes counts


def test_every_word_that_a_check_may_say_is_in_the_glossary():
    literals = re.compile(r'word="([a-z -]+)"')
    words = {word for path in SPEAKING for word in literals.findall(path.read_text(encoding="utf-8"))}

    assert len(words) > len(CHECKS) / 2
    assert words - MEANING.keys() == set()
