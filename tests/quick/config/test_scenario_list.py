"""The list of scenarios: in groups, on one screen of a terminal, and with a line for each in a pipe."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from harness.cli import scenario_list
from harness.config import plan

GROUPS = plan.scenario_groups()


def test_each_scenario_lies_in_one_group_and_says_briefly_what_it_is():
    named = [name for found in GROUPS.values() for name in found]

    assert sorted(named) == sorted(plan.scenarios())
    assert all(GROUPS.values()), "no group is empty"
    assert {what for what in plan.scenarios().values() if not 10 <= len(what) <= 35} == set()


def test_the_shipped_scenarios_fit_a_terminal_of_80_by_24_with_its_prompt():
    lines = scenario_list.fitted(GROUPS, 79, 23)

    assert lines[0].split() == ["group", "scenario", "what"], "there is room for what each of them is"
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 79
    listed = [line for line in lines[1:] if line not in (scenario_list.ON_VARIANTS, scenario_list.ON_NAMES)]
    assert [line.split("  ")[0] for line in listed if line[0] != " "] == [*plan.SCENARIO_GROUPS]


def test_the_largest_group_is_only_named_if_there_is_no_room_for_more():
    many = {"speed": {f"scenario-{number}": "what" for number in range(40)}, "faults": {"kill": "ends a process"}}

    lines = scenario_list.fitted(many, 79, 23)

    assert len(lines) <= 23
    assert sum("ends a process" in line for line in lines) == 1
    assert sum(line.count("scenario-") for line in lines) == 40
    assert "| cat" in lines[-1]


def test_variants_stand_in_the_line_of_their_scenario():
    found = {"enrichment": "a", "enrichment-calm": "b", "enrichment-late": "c", "late": "d", "page-late": "e"}

    assert scenario_list.merge_variants(found) == {"enrichment, -calm, -late": "a", "late": "d", "page-late": "e"}


def test_where_there_is_no_room_at_all_only_names_are_listed_by_group():
    many = {"speed": {f"scenario-{number}": "what" for number in range(40)}, "faults": {"kill": "what"}}

    lines = scenario_list.fitted(many, 79, 10)

    assert max(map(len, lines)) <= 79
    assert lines[0].startswith("speed   scenario-0, scenario-1,")
    assert lines[-1] == "faults  kill"
    assert sum(line.count("scenario-") for line in lines) == 40


@pytest.mark.parametrize("columns", [80, None])
def test_a_pipe_gets_a_line_for_each_scenario(columns, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: columns is not None)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((columns or 80, 24)))

    lines = scenario_list.shown(GROUPS).splitlines()

    assert (len(lines) == 1 + len(plan.scenarios())) is (columns is None)
    if columns is None:
        assert sum("enrichment-late" in line for line in lines) == 1
