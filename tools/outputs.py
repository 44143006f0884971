"""Keeps the outputs that pages show current: a block is what the program prints now of a run that was made.

    python -m tools.outputs                      writes the blocks of all pages
    python -m tools.outputs --check              names the pages with a block that is not current, and exits with 1
    python -m tools.outputs --keep RUN COMMAND   takes a run as what COMMAND gives, in place of the one before

A block is fenced, and begins with its command after `$ `. Below stand parts of the last screen of that run: the
verdict, lines with a label, witnesses, the path. `...` stands for what the page leaves out. What the last screen needs
of a run is in outputs/ beside this file. The sentences of a verdict are kept with the run and are not made anew;
tests/docs/test_outputs.py holds them against the texts of the program.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from reports import result, screen
from reports.result import Result

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_suffix("")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"(?<=^```\n)\$ (?:\./)?streamgauge (run\b[^\n]*)\n(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
GAP = "..."
LABELLED = re.compile(r"  (\S.{7} )\S")


class Part(NamedTuple):
    """Some lines of a screen that are shown or left out together, and a name for them."""

    name: str
    lines: tuple[str, ...]


class OutputError(Exception):
    """A block can't be made from the kept runs."""


class Kept(msgspec.Struct):
    """What a command gave."""

    command: str
    result: dict[str, Any]


def parts(lines: Sequence[str]) -> Iterator[Part]:
    """Split a screen, or a block of one, into its parts. Blank lines and gaps are parts without a name."""
    name, found, heading = "verdict", list[str](), ""
    for line in lines:
        begins = _name_of(line, heading)
        if begins is not None:
            if found:
                yield Part(name, tuple(found))
            name, found = begins, []
            heading = begins if line == f"  {begins}" else heading
        found.append(line)
    if found:
        yield Part(name, tuple(found))


def _name_of(line: str, heading: str) -> str | None:
    """Return the name of the part that begins with a line; None: the line goes on with the part before."""
    if not line.strip() or line.strip() == GAP:
        return ""
    if labelled := LABELLED.match(line):
        return labelled[1].strip()
    if re.match(r"    \S", line):
        return f"{heading} witness"
    if re.match(r"  \S", line):
        return "path" if "/" in line else line.strip()
    return None


def renewed(block: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return a block with the same parts, of a screen as it is printed now."""
    now: dict[str, list[Part]] = {}
    for part in parts(printed):
        now.setdefault(part.name, []).append(part)
    made: list[str] = []
    for part in parts(block):
        if part.name and not now.get(part.name):
            raise OutputError(f"The screen has no `{part.name}`.")
        made += now[part.name].pop(0).lines if part.name else part.lines
    return made


def current(text: str) -> str:
    """Return a page with its blocks as they would be written now."""

    def block(found: re.Match[str]) -> str:
        lines = renewed(found[2].splitlines(), screen.lines(kept(found[1])))
        return found[0].removesuffix(found[2]) + "".join(f"{line}\n" for line in lines)

    return BLOCK.sub(block, text)


def file_of(command: str) -> Path:
    words = re.sub(r"[^a-z0-9]+", "-", command.lower()).strip("-")
    return KEPT / f"{words}.json"


def kept(command: str) -> Result:
    """Read what a command gave."""
    file = file_of(command)
    if not file.is_file():
        raise OutputError(f"No run of `{command}` is kept.")
    stored = msgspec.json.decode(file.read_bytes(), type=Kept)
    return msgspec.convert(stored.result, Result, strict=False, dec_hook=lambda kind, value: kind(value))


def keep(run: Path, command: str) -> Path:
    """Write what the last screen needs of a run."""
    found = replace(result.read(run), path=Path("runs", run.name), environment={})
    values = {each.name: getattr(found, each.name) for each in fields(found)}
    stored = msgspec.to_builtins({"command": command, "result": values}, enc_hook=str)
    file = file_of(command)
    KEPT.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(stored), indent=1).replace(f"{ROOT}/".encode(), b"")
    file.write_bytes(text + b"\n")
    return file


def stale(pages: Sequence[Path] = PAGES) -> dict[Path, str]:
    """Return the pages whose blocks are not current, each with its text as it would be written now."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    return {page: now for page, text in texts.items() if (now := current(text)) != text}


def main(arguments: Sequence[str]) -> int:
    """Write the blocks, check them, or keep a run. Return the exit code."""
    match [*arguments]:
        case []:
            for page, text in stale().items():
                page.write_text(text, encoding="utf-8")
            return 0
        case ["--check"]:
            for page in (found := stale()):
                print(f"{page} is not current: `python -m tools.outputs` writes it.", file=sys.stderr)
            return 1 if found else 0
        case ["--keep", run, command]:
            print(keep(Path(run), command.removeprefix("./").removeprefix("streamgauge ")))
            return 0
    print("python -m tools.outputs [--check | --keep RUN COMMAND]", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
