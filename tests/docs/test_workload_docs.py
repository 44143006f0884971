"""docs/workloads.md: its example works, and its tables are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

from workloads.declared import oracle
from workloads.declared.checked import check
from workloads.declared.declaration import load
from workloads.declared.fields import KINDS
from workloads.declared.sandbox import DEADLINE_S, MEMORY_MIB

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    table = PAGE.split(f"| {heading} |")[1].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_the_example_can_be_checked(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "workload.toml").write_text(example)

    found = check(load(tmp_path))

    assert found.id == "sessions"
    assert sum(row["pages"] for row in found.rows) == found.events
    assert any(1 < row["different"] < row["pages"] for row in found.rows)


def test_every_kind_of_field_and_of_value_is_explained():
    assert set(first_column("kind | keys")) == set(KINDS)
    assert first_column("kind | is") == [*oracle.KINDS]


def test_limits_are_those_of_the_program():
    assert (DEADLINE_S, MEMORY_MIB) == (120, 4096)
    assert "two minutes and 4 GiB" in PAGE
