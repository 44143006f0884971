"""Reads the tables of docs/reference/, as somebody does who looks up a word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"


def page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def sections(text: str, level: int = 2) -> Mapping[str, str]:
    """What stands below each heading of a level, by the heading."""
    parts = re.split(rf"^{'#' * level} (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of all tables, without their heads."""
    lines = text.splitlines()
    heads = {number - 1 for number, line in enumerate(lines) if re.fullmatch(r"\|( --- \|)+", line)}
    body = (line for number, line in enumerate(lines) if number not in heads and line.startswith("| "))
    return [
        [cell.replace(r"\|", "|") for cell in re.split(r" \| ", line[2:-2])] for line in body if "| --- |" not in line
    ]


def names(text: str) -> list[str]:
    """What the first cells name as code."""
    return [name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])]


def answer_of(command: str) -> set[str]:
    """The keys that json.md lists for a command; `exit` and `command` are left out there."""
    told = sections(page("json.md"), 3)[command]
    same = re.search(r"The keys of \[(.+?)\]", told)
    return answer_of(same[1]) if same else set(names(told.split("\n## ")[0]))
