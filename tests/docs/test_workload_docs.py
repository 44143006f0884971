"""docs/test/workloads.md: its example works, and its tables are those of the program."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from harness.engines.template import misfit
from workloads.declared import oracle
from workloads.declared.checked import Checked, check
from workloads.declared.declaration import load
from workloads.declared.fields import KINDS
from workloads.declared.sandbox import DEADLINE_S, MEMORY_MIB

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "test" / "workloads.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    table = PAGE.split(f"| {heading} |")[1].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def example(name: str, folder: Path) -> Checked:
    (text,) = (each for each in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if f'id = "{name}"' in each)
    (folder / "workload.toml").write_text(text, encoding="utf-8")
    return check(load(folder))


def test_the_example_can_be_checked(tmp_path):
    found = example("sessions", tmp_path)

    assert sum(row["pages"] for row in found.rows) == found.events
    assert any(1 < row["different"] < row["pages"] for row in found.rows)


def test_the_example_with_sliding_windows_has_each_event_in_three_of_them(tmp_path):
    found = example("rides", tmp_path)

    assert found.keys == ("city", "opens")
    assert found.placed == sum(row["trips"] for row in found.rows)
    assert 0 < found.placed < 3 * found.events, "some are not finished"
    opens = sorted({row["opens"] for row in found.rows})
    assert {later - earlier for earlier, later in pairwise(opens)} == {10_000}
    assert all(0 < row["drivers"] <= row["trips"] and 250 <= row["max"] <= 18_000 for row in found.rows)
    assert misfit("rides:{city}:{end}", "{value}", ["trips:Ulm"], [{"city": "Ulm", "value": "trips"}], "opens") == ""


def test_every_kind_of_field_and_of_value_is_explained():
    assert set(first_column("kind | keys")) == set(KINDS)
    assert first_column("kind | is") == [*oracle.KINDS]


def test_limits_are_those_of_the_program():
    assert (DEADLINE_S, MEMORY_MIB) == (120, 4096)
    assert "two minutes and 4 GiB" in PAGE
