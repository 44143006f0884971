"""Every command that a document or the program prints, as its reader would type it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.cli.app import COMMANDS
from harness.cli.examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
# The changelog is a history: nobody copies a command from it.
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))),
]
CALL = r"(?:\S*/)?streamgauge "
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
NAMES = "|".join(COMMANDS)


class Printed(NamedTuple):
    """What follows the name of the program, and where it stands."""

    words: str
    place: str


def all_printed() -> list[Printed]:
    """Each once; of the same words the first place is kept."""
    found: dict[str, str] = {}
    of_help = ((words, "harness/cli/examples.py") for words in EXAMPLES.values())
    for words, place in (*_in_documents(), *_in_examples(), *_in_the_program(), *of_help):
        found.setdefault(" ".join(words.split()), place)
    return [Printed(*each) for each in sorted(found.items())]


def _in_documents() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        place = str(path.relative_to(ROOT))
        blocks = [*FENCE.findall(text), *re.findall(r"^(?: {4}.*\n)+", text, re.MULTILINE)]
        yield from ((words, place) for block in blocks for words in _in_block(block))
        yield from ((words, place) for words in _inline(FENCE.sub("", text)))


def _in_block(block: str) -> Iterator[str]:
    for line in block.splitlines():
        if called := re.fullmatch(rf"\s*(?:- |\$ )?{CALL}((?:{NAMES})\b.*)", line):
            yield re.split(r" +#", called[1])[0]
        yield from _substituted(line)


def _inline(text: str) -> Iterator[str]:
    """A name alone is only talked about, and a line of TOML may begin with one: `workload = "page_visits"`."""
    for code in re.findall(r"`([^`]+)`", text):
        line = " ".join(code.split())
        if called := re.fullmatch(rf"(?:{CALL})?((?:{NAMES}) (?!= ).+)", line):
            yield called[1]
        yield from _substituted(line)


def _substituted(line: str) -> Iterator[str]:
    """As in `eval "$(./streamgauge completion bash)"`."""
    yield from re.findall(rf"\$\({CALL}([^)]+)\)", line)


def _in_examples() -> Iterator[tuple[str, str]]:
    """Files to copy, and the comments in them."""
    for path in sorted(path for path in (*ROOT.glob("examples/**/*"), *ROOT.glob("workloads/**/*.toml"))):
        if path.suffix in (".toml", ".yml", ".sh", ".py"):
            place = str(path.relative_to(ROOT))
            for line in path.read_text(encoding="utf-8").splitlines():
                yield from ((words, place) for words in (*_in_block(line.lstrip("# ")), *_inline(line)))


def _in_the_program() -> Iterator[tuple[str, str]]:
    """What it advises. A value that only the program knows stands there as {}."""
    for path in sorted((*ROOT.glob("harness/**/*.py"), *ROOT.glob("reports/**/*.py"), *ROOT.glob("workloads/**/*.py"))):
        source = path.read_text(encoding="utf-8")
        if "streamgauge" not in source:  # to parse takes long
            continue
        tree = ast.parse(source)
        place = str(path.relative_to(ROOT))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) not in docstrings | inner and (text := _text(node)):
                for code in re.findall(rf"`{CALL}([^`]+)`", text):
                    if " " in code or code in COMMANDS:
                        yield code, place


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""
