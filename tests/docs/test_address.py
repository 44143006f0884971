"""The address of the repository is set in pyproject.toml, and the version in harness/__init__.py. The pages agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness import __version__

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
NAME = ADDRESS.removeprefix("https://github.com/")
CLONING = ("README.md", "CONTRIBUTING.md", "docs/start/tutorial.md")
FILES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("examples/**/*.md"),
    *ROOT.glob("examples/**/*.yml"),
]
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}


@pytest.mark.parametrize("name", CLONING)
def test_a_page_that_begins_with_a_clone_has_the_address(name):
    assert re.search(rf"^ +git clone {re.escape(ADDRESS)}(?: |$)", TEXTS[name], re.MULTILINE)


def test_every_clone_of_this_repository_has_the_same_address():
    cloned = {url for text in TEXTS.values() for url in re.findall(r"git clone (?!would )(\S+)", text)}

    assert {url for url in cloned if "streamgauge" in url or "://" not in url} == {ADDRESS}


def test_every_address_of_this_repository_begins_with_it():
    for name, text in TEXTS.items():
        for url in re.findall(r"https?://[^\s/]+/\w+/streamgauge\b", text):
            assert url == ADDRESS, name


@pytest.mark.parametrize("name", ["docs/ci/github.md", "examples/ci/github.yml"])
def test_a_workflow_uses_the_action_of_this_repository_and_version(name):
    assert re.findall(r"uses: (\S*streamgauge\S*)", TEXTS[name]) == [f"{NAME}@v{__version__}"]


def test_the_recipe_for_gitlab_installs_this_version_from_the_address():
    recipe = TEXTS["examples/ci/gitlab-ci.yml"]

    assert f"STREAMGAUGE: {ADDRESS}\n" in recipe
    assert f"VERSION: v{__version__}\n" in recipe


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md"])
def test_the_wheel_of_this_version_is_named(name):
    assert set(re.findall(r"streamgauge-(\d[\d.]*)-py3", TEXTS[name])) == {__version__}


def test_the_newest_version_of_the_changelog_is_this_one():
    changelog = TEXTS["CHANGELOG.md"]
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)

    assert newest
    assert newest[1] == __version__
    assert f"[{__version__}]: {ADDRESS}/releases/tag/v{__version__}\n" in changelog
