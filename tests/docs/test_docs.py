"""What the documents say exists, and what exists is in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import cli, plan
from harness.checks import CHECKS
from harness.engines.manifest import SHIPPED
from harness.model import Exit
from harness.settings import KEYS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RUN = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    return [c.name or c.callback.__name__ for c in cli.app.registered_commands if c.callback]


@pytest.mark.parametrize("command", commands())
def test_every_command_stands_in_the_readme(command):
    assert re.search(rf"streamgauge {command}\b|`{command}\b", README)


@pytest.mark.parametrize("document", [README, RUN], ids=["README", "run"])
def test_no_document_shows_a_command_that_does_not_exist(document):
    shown = set(re.findall(r"\./streamgauge ([a-z]+)", document))

    assert shown <= set(commands())


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_of_a_scenario_is_explained(key):
    assert f"`{key}`" in RUN


@pytest.mark.parametrize("name", sorted({*plan.scenarios(), *SHIPPED, "fake", *CHECKS}))
def test_every_scenario_engine_and_check_is_named(name):
    assert f"`{name}`" in RUN


def test_exit_codes_are_the_same_in_the_readme():
    for code in (Exit.PASS, Exit.FAIL, Exit.USAGE, Exit.UNKNOWN, Exit.BROKEN):
        assert f"**{code}**" in README


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.[a-z]+)?)`", ARCHITECTURE))))
def test_every_path_of_the_map_exists(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", re.findall(r"\]\(([^)#:]+)\)", README + RUN))
def test_every_link_leads_somewhere(name):
    assert (ROOT / name).exists() or (ROOT / "docs" / name).exists()


def test_the_changelog_names_the_commands():
    for command in commands():
        assert f"`{command}`" in CHANGELOG or f"`streamgauge {command}`" in CHANGELOG
