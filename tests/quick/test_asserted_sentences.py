"""A sentence that a slow test asserts is one of the program, or was given to it by the test.

Plain `test` leaves out many tests of real engines, so one of them can expect the old words of a message for weeks. And
a test that a phrase is absent passes forever once the program has lost the phrase.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ("harness", "workloads", "generators", "reports", "examples", "tools")
HELP = ROOT / "harness" / "cli"  # its docstrings are shown
TEXTS = {".toml", ".java", ".sh", ".j2", ".json", ".md", ".yml", ".js", ".css", ".html"}
SLOW = ("engines", "services", "quality")
EVERY_TIME = ("program",)  # what is missing fails there at once, so only what is absent has to be checked
FOREIGN = (  # sentences of Java, Kafka, Redis, PostgreSQL, pip and Linux
    *("cannot find symbol", "Java heap space", "Too small maximum heap", "Picked up JAVA_TOOL_OPTIONS"),
    *("Unable to use shared archive", "No broken requirements found"),
    *("Formatting metadata directory", "due to log retention size", "Invalid username or password"),
    *("hash value is not an integer", "Bad file descriptor"),
    *("permission denied for table counts", "password authentication failed"),
)

HOLE = "\0"  # of an f-string
WORD = re.compile(r"[A-Za-z_]+(?:['-][A-Za-z_]+)*|\0")
RUN = re.compile(r"[A-Za-z_]+(?:['-][A-Za-z_]+)*(?:\s+[A-Za-z_]+(?:['-][A-Za-z_]+)*)*")
FIELD = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
PIECE = re.compile(
    r"""\#[^\n]*
    | (?P<prefix>\b[rbfRBF]{1,2})? (?P<quote>"{3}|'{3}|["']) (?P<text>(?:[^\\"']+|\\.|(?!(?P=quote)).)*) (?P=quote)""",
    re.VERBOSE | re.DOTALL,
)
LOOKS = {"startswith", "endswith", "count", "index", "search", "match", "fullmatch", "findall"}


def strings(source: str, *, docstrings: bool = False) -> Iterator[str]:
    """Yield the strings of Python code, those beside each other as one. To parse all of the program takes seconds."""
    joined, end = "", 0
    for piece in PIECE.finditer(source):
        between, end = source[end : piece.start()].strip(), piece.end()
        if between not in ("", "+"):
            yield joined
            joined = ""
        text = piece["text"] or ""
        if not joined and piece["quote"] == '"""' and between[-1:] in ("", ":") and not docstrings:
            continue
        if "f" in (piece["prefix"] or "").lower():
            for hole in FIELD.findall(text):
                yield from strings(hole)
            text = FIELD.sub(HOLE, text)
        joined += re.sub(r"\\[a-z]?", " ", text)
    yield joined


def read(folders: Iterable[Path]) -> Iterator[str]:
    """Yield the strings of the program and of what tests run, and all text of other files."""
    for path in (path for folder in folders for path in folder.rglob("*")):
        if path.suffix == ".py" and not path.name.startswith("test_"):
            yield from strings(path.read_text(encoding="utf-8"), docstrings=HELP in path.parents)
        elif path.suffix in TEXTS:
            yield path.read_text(encoding="utf-8")


class Said:
    """The words of texts, in which runs of words are looked up."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._lines = "\n".join(f" {' '.join(WORD.findall(text.lower()))} " for text in texts)

    def has(self, *words: str) -> bool:
        return f" {' '.join(words)} " in self._lines


def is_said(run: Sequence[str], said: Said, own: Said) -> bool:
    """Fewer than three words prove nothing. A run may go on in a hole of the program if two of its words are beside the
    hole, or if more than three words fill it that are said elsewhere."""

    def is_whole(words: Sequence[str]) -> bool:
        return said.has(*words) or own.has(*words)

    def fills(words: Sequence[str], beside: Sequence[str]) -> bool:
        return (len(beside) > 1 and is_said(words, said, own)) or (len(words) > 3 and is_whole(words))

    if len(run) < 3 or is_whole(run):
        return True
    halves = [(run[:cut], run[cut:]) for cut in range(1, len(run))]
    return any(
        (said.has(*left, HOLE) and fills(right, left)) or (said.has(HOLE, *right) and fills(left, right))
        for left, right in halves
    )


def literals(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    return (each for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes))


def text_of(literal: ast.Constant) -> str:
    return literal.value.decode(errors="replace") if isinstance(literal.value, bytes) else str(literal.value)


def names(nodes: Iterable[ast.AST]) -> Counter[str]:
    return Counter(each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))


def claims(nodes: Iterable[ast.AST], *, absent: bool) -> Iterator[ast.AST]:
    """Yield what asserts compare, and the patterns of exceptions; `absent`: only of what must not be there."""
    for each in nodes:
        if isinstance(each, ast.Assert):
            parts = [*ast.walk(each.test)]
            calls = (part for part in parts if isinstance(part, ast.Call))
            given = {id(arg) for call in calls if getattr(call.func, "attr", "") not in LOOKS for arg in call.args}
            if not absent or any(isinstance(part, ast.NotIn | ast.Not) for part in parts):
                yield from (
                    part for part in parts if id(part) not in given or not isinstance(part, ast.Constant | ast.Name)
                )
        elif isinstance(each, ast.keyword) and each.arg == "match" and not absent:
            yield from ast.walk(each.value)


def columns(decorator: ast.AST, constants: dict[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a `parametrize`, each with each of its values."""
    match decorator:
        case ast.Call(ast.Attribute(attr="parametrize"), [ast.Constant(str(text)), values, *_]):
            parameters = [text]
        case ast.Call(ast.Attribute(attr="parametrize"), [ast.Tuple(parts), values, *_]):
            parameters = [str(part.value) for part in parts if isinstance(part, ast.Constant)]
        case _:
            return
    values = constants.get(values.id, values) if isinstance(values, ast.Name) else values
    for row in _elements(values):
        cells = row.args if isinstance(row, ast.Call) else [row]
        if len(parameters) > 1 and len(cells) == 1:
            cells = _elements(cells[0])
        yield from zip(parameters, cells, strict=False)


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else []


def unknown(source: str, said: Said, *, absent: bool = False) -> list[tuple[int, str]]:
    """Return the lines of a file of tests with the runs of words that it asserts and nobody says."""
    parts = [[*ast.walk(statement)] for statement in ast.parse(source).body]
    nodes = [node for part in parts for node in part]
    claimed = [[*claims(part, absent=absent)] for part in parts]
    assigned = [
        (target.id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    # What has another use, too, may be an input.
    found = [node for part in claimed for node in part]
    uses, here = names(nodes), names(found)
    values = [value for name, value in assigned if 0 < here[name] == uses[name]]
    for part, inside in zip(parts, claimed, strict=True):
        uses, here = names(part), names(inside)
        for decorator in getattr(part[0], "decorator_list", ()):
            values += [cell for name, cell in columns(decorator, dict(assigned)) if 0 < here[name] == uses[name]]
    asserted = {id(each): each for each in literals([*found, *(node for value in values for node in ast.walk(value))])}
    remarks = [node.msg for node in nodes if isinstance(node, ast.Assert) and node.msg]
    remarks += [node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    others = asserted.keys() | {id(each) for remark in remarks for each in ast.walk(remark)}
    own = Said(text_of(each) for each in literals(nodes) if id(each) not in others)
    return [
        (each.lineno, " ".join(run))
        for each in asserted.values()
        for run in map(WORD.findall, RUN.findall(re.sub(r"\\.", ".", text_of(each).lower())))
        if not is_said(run, said, own)
    ]


def program() -> Said:
    here = (path.read_text(encoding="utf-8") for path in (ROOT / "streamgauge", ROOT / "action.yml"))
    helpers = (ROOT / "tests" / folder for folder in (*SLOW, *EVERY_TIME))
    return Said([*read(ROOT / folder for folder in PROGRAM), *read(helpers), *here, *FOREIGN])


def test_each_sentence_that_is_asserted_is_said_today():
    said = program()
    files = [(path, folder) for folder in (*SLOW, *EVERY_TIME) for path in (ROOT / "tests" / folder).glob("test_*.py")]
    stale = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path, folder in sorted(files)
        for line, words in unknown(path.read_text(encoding="utf-8"), said, absent=folder in EVERY_TIME)
    ]

    assert stale == []


SAYS = """
def end(code, events, why):
    \"\"\"The old words of it.\"\"\"
    where = "in the last of the files"
    went = f"so {many(events, 'event')} in it went " "astray" + f" {why or 'for no reason'}"
    return f"it ended by itself with {code}, {went}"
"""


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ('assert "it ended by itself with 7, so 3 events" in said', []),
        ('assert "went astray" in said', []),
        ('assert "event in it went astray" in said', []),
        ('assert "in it went astray for no reason" in said', []),
        ('assert f"{code}, so 3 events in it went astray" in said', []),
        ('assert "it stopped by itself" in said', ["it stopped by itself"]),
        ('assert f"{x}, so 3 events in it were lost" in said, "a note of it"', ["events in it were lost"]),
        ('assert said.startswith("for no good reason")', ["for no good reason"]),
        ('assert "the old words of it" not in said', ["the old words of it"]),
        ('assert said(b"any words of the test") == b"other words of the test"', ["other words of the test"]),
        ('run("its own words here")\nassert "its own words here" in said', []),
        ('with raises(E, match=r"ended by itself \\(here it is\\)"): pass', ["here it is"]),
        ('NOTE = "ended all by itself"\nassert NOTE in said', ["ended all by itself"]),
        ('NOTE = "ended all by itself"\nrun(NOTE)\nassert NOTE in said', []),
        ('@mark.parametrize("a", ["ended all by itself"])\ndef test(a):\n    assert a in x', ["ended all by itself"]),
        (
            '@mark.parametrize(("a", "b"), [("as this is", "as that is")])\ndef test(a, b):\n    assert a in run(b)',
            ["as this is"],
        ),
    ],
)
def test_words_that_nobody_says_are_found(test, words):
    assert [found for _, found in unknown(test, Said(strings(SAYS)))] == words


def test_strings_are_read_as_python_reads_them():
    source = (ROOT / "harness" / "faults" / "redis.py").read_text(encoding="utf-8")
    said = Said(strings(source, docstrings=True))

    texts = [WORD.findall(text_of(each).lower()) for each in literals(ast.walk(ast.parse(source)))]

    assert len(texts) > 100
    assert [words for words in texts if len(words) > 1 and not said.has(*words)] == []
