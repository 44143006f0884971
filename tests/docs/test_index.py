"""docs/README.md: from there every document can be reached, and the self-test's page explains each part of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.selftest.report import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = {path.resolve(): path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
INDEX = ROOT / "docs" / "README.md"


def reached(texts: Mapping[Path, str], first: Path = INDEX) -> set[Path]:
    """What a reader finds who follows the links of these documents from one to the next."""
    seen, left = {first}, [first]
    while left:
        page = left.pop()
        links = re.findall(r"\]\(([^)#:]+)[)#]", texts[page])
        found = {(page.parent / link).resolve() for link in links} & texts.keys()
        left += found - seen
        seen |= found
    return seen


REACHED = reached(DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT / "docs")))
def test_every_document_can_be_reached_from_the_index(document):
    assert document in REACHED


def test_a_document_without_a_link_to_it_is_not_reached():
    page, other, alone = (ROOT / "docs" / name for name in ("a.md", "b.md", "c.md"))
    texts = {page: "[b](b.md#heading)", other: "[a](a.md), [elsewhere](https://example.org/c.md)", alone: "[a](a.md)"}

    assert reached(texts, page) == {page, other}


def test_every_part_of_the_selftest_is_explained():
    """Its file of what is expected, wrong checkers, and runs that must PASS."""
    text = DOCUMENTS[ROOT / "docs" / "evidence" / "selftest.md"]
    explained = [
        word for row in re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)
    ]

    assert sorted(explained) == sorted([*tomllib.loads(EXPECTED.read_text()), "mutants", "clean"])
