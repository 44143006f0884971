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
PROGRAM = ("client", "harness", "workloads", "generators", "reports")
WORDS = ("told", "nobody", "somebody", "whoever", "of which", "that which")
USED = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
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
# The same for messages: strings of more than one word that are no docstrings.
MESSAGES = {"told": 7, "nobody": 1, "somebody": 0, "whoever": 0, "of which": 1, "that which": 0}
KEYS = ROOT / "harness" / "selftest"  # its strings are names of planted runs, by which expected.toml knows them


def paths() -> Iterator[Path]:
    return (path for folder in PROGRAM for path in sorted((ROOT / folder).rglob("*.py")))


def comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def messages(tree: ast.Module) -> Iterator[str]:
    beside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in beside)
    return (node.value for node in texts if isinstance(node.value, str) and " " in node.value.strip())


def uses(spoken: str) -> Counter[str]:
    return Counter(word.lower() for word in USED.findall(spoken))


def counted(text: str, tree: ast.Module) -> Counter[str]:
    found = Counter(dict.fromkeys(BUDGET, 0))
    documented = [*docstrings(tree)]
    if uses(" ".join(text.split())):  # to tokenize takes most of the time
        found.update(uses(" ".join((*comments(text), *documented))))
    found["fragments"] += sum(bool(FRAGMENT.match(each)) for each in documented)
    return found


def test_the_idiom_does_not_grow():
    found: Counter[str] = Counter()
    in_messages: Counter[str] = Counter()
    for path in paths():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        found.update(counted(text, tree))
        if KEYS not in path.parents:
            in_messages.update(uses(" ".join(messages(tree))))

    assert {word: count for word, count in found.items() if count > BUDGET[word]} == {}
    assert {word: count for word, count in in_messages.items() if count > MESSAGES[word]} == {}


def test_a_message_is_seen_and_a_docstring_or_a_name_is_none():
    tree = ast.parse('"""Told."""\nx = [f"it told {told} of it", "told", "nobody knows"]\n')

    assert set(messages(tree)) == {"it told ", " of it", "nobody knows"}
    assert uses(" ".join(messages(tree))) == Counter({"told": 1, "nobody": 1})


def test_each_of_its_signs_would_be_seen():
    text = '"""What nobody was told."""\n# of which somebody knows, whoever it is, that which is\n'

    assert counted(text, ast.parse(text)) == dict.fromkeys([*WORDS, "fragments"], 1)
