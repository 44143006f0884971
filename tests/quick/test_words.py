"""The program speaks in the field's words. Those of an idiom of its own have a budget that may only fall."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ("harness", "workloads", "generators", "reports")
WORDS = ("told", "nobody", "somebody", "whoever", "of which", "that which")
FRAGMENT = re.compile(r"(What|Of|Where|Whether|By|As|Who|Which|That)\b")
# As many as there are. Who takes some away lowers the number.
BUDGET = {
    "told": 0,
    "nobody": 0,
    "somebody": 0,
    "whoever": 1,
    "of which": 0,
    "that which": 0,
    "fragments": 0,
}


def paths() -> Iterator[Path]:
    return (path for folder in PROGRAM for path in sorted((ROOT / folder).rglob("*.py")))


def prose(text: str) -> Iterator[str]:
    """Comments and docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    yield from docstrings(text)


def docstrings(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def counted(texts: Iterator[str]) -> Counter[str]:
    found = Counter(dict.fromkeys(BUDGET, 0))
    for text in texts:
        spoken = " ".join(prose(text))
        found.update({word: len(re.findall(rf"\b{word}\b", spoken, re.IGNORECASE)) for word in WORDS})
        found["fragments"] += sum(bool(FRAGMENT.match(each)) for each in docstrings(text))
    return found


def test_the_idiom_does_not_grow():
    found = counted(path.read_text(encoding="utf-8") for path in paths())

    assert {word: count for word, count in found.items() if count > BUDGET[word]} == {}


def test_each_of_its_signs_would_be_seen():
    text = '"""What nobody was told."""\n# of which somebody knows, whoever it is, that which is\n'

    assert counted(iter([text])) == dict.fromkeys([*WORDS, "fragments"], 1)
