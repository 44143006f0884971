"""docs/test/workloads.md: its examples work, and its limits and kinds of values are those of the program."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from workloads.declared import oracle
from workloads.declared.checked import check
from workloads.declared.declaration import load
from workloads.declared.sandbox import DEADLINE_S, MEMORY_MIB

ROOT = Path(__file__).resolve().parents[2]
RIDES = ROOT / "examples" / "rides"
PAGE = (ROOT / "docs" / "test" / "workloads.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    table = PAGE.split(f"| {heading} |")[1].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_the_example_can_be_checked(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "workload.toml").write_text(text, encoding="utf-8")
    found = check(load(tmp_path))

    assert sum(row["pages"] for row in found.rows) == found.events
    assert any(1 < row["different"] < row["pages"] for row in found.rows)


def test_the_example_with_sliding_windows_has_each_event_in_three_of_them():
    found = check(load(RIDES))
    (line,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)

    assert line in (RIDES / "workload.toml").read_text(encoding="utf-8")
    assert found.keys == ("city", "opens")
    assert found.placed == sum(row["trips"] for row in found.rows)
    assert 0 < found.placed < 3 * found.events, "some are not finished"
    opens = sorted({row["opens"] for row in found.rows})
    assert {later - earlier for earlier, later in pairwise(opens)} == {10_000}
    assert all(0 < row["drivers"] <= row["trips"] and 300 <= row["largest"] <= 25_000 for row in found.rows)


def test_every_kind_of_value_is_explained():
    assert first_column("kind | is") == [*oracle.KINDS]


def test_limits_are_those_of_the_program():
    assert (DEADLINE_S, MEMORY_MIB) == (120, 4096)
    assert "two minutes and 4 GiB" in PAGE
