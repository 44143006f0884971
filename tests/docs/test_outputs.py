"""The outputs that pages show are what the program prints: lines and labels of now, sentences that it still has."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from harness.cli import app, doctor
from harness.terminal.command_end import ended
from reports import screen
from tools import outputs

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("start", "test", "break", "measure", "ci")
USER_PAGES = [
    *(ROOT / "README.md", ROOT / "docs" / "README.md"),
    *sorted(page for part in PARTS for page in (ROOT / "docs" / part).glob("*.md")),
]
KEPT = sorted(outputs.KEPT.glob("*.json"))
# Texts of the program that a verdict is made of. Of a word before a number the program has the singular.
SOURCES = sorted(path for part in ("harness", "reports", "workloads") for path in (ROOT / part).rglob("*.py"))
WORD = re.compile(r"[a-z][a-z'-]+")
# Blocks that come from no run, and what holds them.
HELD_ELSEWHERE = {
    "bench --locality": "tests/quick/tools/test_locality.py",
    "audit": "results that others publish; docs/evidence/audit.md names them",
    "doctor": "below",
    "workload check": "test_own_question.py",
}


def blocks(page: Path) -> list[str]:
    """Each fenced block without a language: an output."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for language, text in fenced if not language]


# ---------------------------------------------------------------- Blocks


@pytest.mark.parametrize("page", outputs.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_outputs_of_a_page_are_current(page):
    """`python -m tools.outputs` writes them."""
    assert outputs.stale([page]) == {}


@pytest.mark.parametrize("page", [page for page in USER_PAGES if blocks(page)], ids=lambda page: page.stem)
def test_every_output_names_its_command_and_is_held(page):
    for block in blocks(page):
        command = re.match(r"\$ (?:\./)?streamgauge (.+)\n", block)
        assert command or block.startswith("streamgauge gate: "), block
        if command and not command[1].startswith(tuple(HELD_ELSEWHERE)):
            assert outputs.file_of(command[1]) in KEPT


def test_no_run_is_kept_that_no_page_shows():
    shown = {outputs.file_of(found[1]) for page in outputs.PAGES for found in outputs.BLOCK.finditer(page.read_text())}

    assert shown == {*KEPT}


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_a_kept_run_names_no_place_of_the_machine_that_made_it(kept):
    assert not re.findall(r"(?<![\w.:])/(?:home|root|work|tmp|Users)/", kept.read_text())


@pytest.mark.parametrize("page", ["README.md", "docs/start/what-it-finds.md"])
def test_the_picture_of_a_fail_is_described_by_the_verdict_of_its_run(page):
    (described,) = re.findall(r'fail\.png"[^>]* alt="([^"]+)"', (ROOT / page).read_text(encoding="utf-8"))
    sentence = outputs.kept("run --sink increment").verdict.sentence

    assert re.findall(r"[\d,]+ events too many in [\d,]+ cells", sentence)[0] in described


@pytest.mark.parametrize("page", ["docs/start/machine.md", "docs/test/own-kafka-and-redis.md"])
def test_what_doctor_answers_is_what_it_prints(page, monkeypatch, tmp_path, capsys):
    """Names and states; the figures are those of a machine."""
    (block,) = [each for each in blocks(ROOT / page) if each.startswith("$ ./streamgauge doctor")]
    command, *lines = block.splitlines()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "client.properties").write_text("security.protocol=SSL\n")
    monkeypatch.setenv("REDIS_PASSWORD", "secret")
    monkeypatch.setattr(doctor, "connect", nullcontext)
    for name in ("kafka_says", "redis_says"):
        monkeypatch.setattr(doctor, name, lambda *_: [])

    ended(words := shlex.split(command)[2:], lambda: app.called(words))

    printed = capsys.readouterr().out.splitlines()
    of_a_machine = {re.sub(r"[\d,.]+", "N", line) for line in printed}
    assert lines.count("...") < len(lines)
    for line in lines:
        assert line in (*printed, "...") or re.sub(r"[\d,.]+", "N", line) in of_a_machine, line


PRINTED = """\
FAIL  lost: 19 events are missing
      from 17 cells

  run      calm on spark/absolute
  load     300 records sent
  fault    kill landed in batch 3, which was
           replayed
  slack    0

  lost
    campaign 1: expected 3, seen 2
      -1; batch 3 touched it
    campaign 2: expected 5, seen 1
      -4
  wrong value
    campaign 1: expected 9, seen 8

  runs/20261123-120736-calm-spark
""".splitlines()


@pytest.mark.parametrize(
    ("block", "made"),
    [
        ("FAIL  old\n", [0, 1]),
        ("FAIL  old\n...\n", [0, 1, "..."]),
        ("FAIL  old\n\n  run      old\n  ...\n  slack    old\n", [0, 1, 2, 3, "  ...", 7]),
        ("FAIL  old\n  ...\n  fault    old\n           old\n           old\n", [0, 1, "  ...", 5, 6]),
        ("FAIL  old\n  ...\n  lost\n    campaign 9\n", [0, 1, "  ...", 9, 10, 11]),
        ("FAIL  old\n  wrong value\n    old\n  ...\n  runs/old\n", [0, 1, 14, 15, "  ...", 17]),
    ],
)
def test_a_block_keeps_its_parts_and_gets_their_lines_of_now(block, made):
    lines = [each if isinstance(each, str) else PRINTED[each] for each in made]

    assert outputs.renewed(block.splitlines(), PRINTED) == lines
    assert outputs.renewed(lines, PRINTED) == lines


def test_a_part_that_is_printed_no_more_is_named():
    with pytest.raises(outputs.OutputError, match="cost"):
        outputs.renewed(["PASS", "  cost     9 CPU-s"], PRINTED)


@pytest.fixture
def page(tmp_path):
    """A page with an output, and a function that changes it."""
    source = ROOT / "docs" / "test" / "python.md"
    copy: Path = tmp_path / "python.md"

    def changed(old: str, new: str) -> Path:
        text = source.read_text()
        assert old in text
        copy.write_text(text.replace(old, new))
        return copy

    return changed


def test_an_output_that_was_edited_is_named_and_mended(page, monkeypatch, capsys):
    edited = page("PASS  ", "PASS: ")
    monkeypatch.setattr(outputs, "stale", lambda real=outputs.stale: real([edited]))

    assert outputs.main(["--check"]) == 1
    assert "python.md is not current" in capsys.readouterr().err
    assert outputs.main([]) == outputs.main(["--check"]) == 0
    assert edited.read_text() == (ROOT / "docs" / "test" / "python.md").read_text()
    assert outputs.main(["--chek"]) == 2


def test_an_output_of_a_run_that_is_not_kept_is_named(page):
    with pytest.raises(outputs.OutputError, match="own-enginex"):
        outputs.stale([page("engine examples/own-engine\n", "engine examples/own-enginex\n")])


def test_what_the_screen_prints_otherwise_makes_a_page_stale(page, monkeypatch):
    monkeypatch.setattr(screen, "WIDTH", 60)

    assert [*outputs.stale([copy := page("PASS  ", "PASS  ")])] == [copy]


# ---------------------------------------------------------------- Sentences of a verdict


@cache
def texts(sources: Sequence[Path] = tuple(SOURCES)) -> frozenset[tuple[str, ...]]:
    """Words that follow each other in the fixed parts of the program's texts, one or two at a time."""
    found: set[tuple[str, ...]] = set()
    for path in sources:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                found |= {*_of_a_text(node.value)}
    return frozenset(found)


def words_of(text: str) -> list[str]:
    return [word.strip(".,:;()`") for word in text.split()]


def _of_a_text(text: str) -> Iterator[tuple[str, ...]]:
    words = words_of(text)
    yield from pairwise(words)
    if len(words) == 1:
        yield tuple(words)


def gone(sentence: str, known: frozenset[tuple[str, ...]]) -> list[str]:
    """Words of a sentence that no text of the program has beside a neighbour of theirs, nor alone."""
    words = words_of(sentence)
    held = {number + side for number, pair in enumerate(pairwise(words)) if pair in known for side in (0, 1)}
    return [
        word
        for number, word in enumerate(words)
        if number not in held and WORD.fullmatch(word) and not {(word,), (word.removesuffix("s"),)} & known
    ]


def unwrapped(printed: Sequence[str]) -> list[str]:
    """The sentences of the parts of a screen, each on one line."""
    return [" ".join(" ".join(part.lines).split()) for part in outputs.parts(printed) if part.name not in ("", "path")]


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_program_still_has_the_sentences_that_a_page_shows(kept):
    command = kept_command(kept)
    shown = [
        outputs.renewed(found[2].splitlines(), screen.lines(outputs.kept(command)))
        for page in outputs.PAGES
        for found in outputs.BLOCK.finditer(page.read_text(encoding="utf-8"))
        if outputs.file_of(found[1]) == kept
    ]

    assert shown
    for sentence in {sentence for lines in shown for sentence in unwrapped(lines)}:
        assert [word for word in gone(sentence, texts()) if word not in of_declared_questions()] == [], sentence


def of_declared_questions() -> frozenset[str]:
    """Return the names that users gave: keys and values of the questions in examples/."""
    files = sorted((ROOT / "examples").rglob("workload.toml"))
    return frozenset(word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))


def kept_command(kept: Path) -> str:
    (command,) = re.findall(r'^ "command": "(.*)",$', kept.read_text(encoding="utf-8"), re.MULTILINE)
    return str(command)


SENTENCE = "19,840 events too many in 377 cells: exactly batch 3 once more, which was replayed after kill@c3:batch=3"


def test_a_sentence_that_the_program_has_no_more_is_found(tmp_path):
    now, later = tmp_path / "now.py", tmp_path / "later.py"
    now.write_text('WHAT = "event"\nsaid = f"{n} {WHAT}s too many in {m} cells: exactly batch {b} once more{why}"\n')
    later.write_text(now.read_text().replace("once more", "a second time"))
    elsewhere = {("which", "was"), ("replayed", "after")}

    assert gone(SENTENCE, texts((now,)) | elsewhere) == []
    assert gone(SENTENCE, texts((later,)) | elsewhere) == ["once", "more"]
