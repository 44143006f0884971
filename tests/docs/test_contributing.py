"""CONTRIBUTING.md tells which files to touch. Each is there, and what is in a registry already follows the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sized
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.cli import app
from harness.config.scenario_keys import KEYS
from harness.engines.shipped import SHIPPED
from harness.faults.registry import FAULTS
from harness.judging.checks import CHECKS
from harness.results.registry import SOURCES
from reports.sections import SECTIONS
from workloads.shipped import WORKLOADS, folder_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:[\w.*-]+/)+[\w.*-]*|[A-Z]+\.md)`")
IN = re.compile(r"`(\w+)`[^`|.]*? in\s+`((?:\w+/)+\w+\.py)`")


class Row(NamedTuple):
    adds: str
    write: str
    registry: str
    tests: str
    documents: str

    @classmethod
    def all(cls) -> dict[str, Row]:
        lines = [line.split("|")[1:-1] for line in PAGE.splitlines() if re.match(r"\| an? ", line)]
        rows = [cls(*(cell.strip() for cell in line)) for line in lines]
        return {row.adds: row for row in rows}


class Held(NamedTuple):
    """What a registry holds: where it was written, and how documents call it."""

    name: str
    file: str
    called: str


def _file_of(made: Callable[..., object]) -> str:
    return made.__module__.replace(".", "/") + ".py"


def _held() -> Iterator[tuple[str, Held]]:
    for name, path in SHIPPED.items():
        yield "an engine", Held(name, str(path.relative_to(ROOT)), f"`{name}`")
    for name, kind in FAULTS.items():
        yield "a fault", Held(name, f"harness/faults/{kind.family}.py", f"`{name}")
    for name, check in CHECKS.items():
        yield "a check", Held(name, _file_of(check), f"`{name}`")
    for name, place in app.COMMANDS.items():
        yield "a command", Held(name, f"harness/cli/{place.module}.py", f"`{name}")
    for name, module in WORKLOADS.items():
        yield "a workload", Held(name, module.replace(".", "/") + ".py", f"`workloads/{name}/`")
    for section in SECTIONS:
        yield "a section of a run's page", Held(section.id, _file_of(section.make), section.title)
    for name, source in SOURCES.items():
        yield "a source of results", Held(name, _file_of(source), name)
    for path in sorted(path for name in WORKLOADS for path in folder_of(name).glob("scenarios/*.toml")):
        yield "a scenario", Held(path.stem, str(path.relative_to(ROOT)), f"`{path.stem}`")
    for name in KEYS:
        yield "a key of a scenario", Held(name, "", f"`{name}`")


ROWS, HELD = Row.all(), list(_held())


def test_each_row_is_held_against_what_is_there():
    assert {adds for adds, _ in HELD} == set(ROWS)


@pytest.mark.parametrize("path", sorted(set(PATH.findall(PAGE))))
def test_every_path_exists(path):
    assert [*ROOT.glob(path.replace("NAME", "*"))], path


@pytest.mark.parametrize(("name", "path"), sorted(set(IN.findall(PAGE))), ids=str)
def test_every_name_is_in_the_file_that_is_said_to_hold_it(name, path):
    found = getattr(import_module(path.removesuffix(".py").replace("/", ".")), name)

    assert callable(found) or (isinstance(found, Sized) and len(found) > 0)


@pytest.mark.parametrize("adds", [adds for adds in ROWS if adds != "a scenario"])
def test_each_row_names_its_registry(adds):
    assert IN.search(ROWS[adds].registry)


@pytest.mark.parametrize(("adds", "held"), HELD, ids=lambda each: each.name if isinstance(each, Held) else each)
def test_what_is_there_was_added_as_the_table_says(adds, held):
    row = ROWS[adds]
    patterns = [path.replace("NAME", held.name.replace("-", "[-_]")) for path in PATH.findall(row.write)]
    documents = [(ROOT / path).read_text(encoding="utf-8") for path in PATH.findall(row.documents)]

    assert not patterns or any(fnmatch(held.file, pattern) and (ROOT / held.file).is_file() for pattern in patterns)
    assert documents
    assert all(held.called in text for text in documents)
