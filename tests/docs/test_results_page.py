"""docs/test/results.md: every source of results has its line, and the patterns that it shows fit their questions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness.engines.template import misfit, mistake
from harness.results.registry import SOURCES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "test" / "results.md").read_text(encoding="utf-8")
BLOCKS = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
VIEWS: list[dict[str, str]] = [{}]
RIDES = [{"city": "Ulm", "value": "trips"}, {"city": "Ulm", "value": "max"}]


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_has_its_line(source):
    assert re.search(rf'^\| .* \| `results = "{source}[":]', PAGE, re.MULTILINE)


@pytest.mark.parametrize(("block", "keys", "parts"), [(0, ["ad"], VIEWS), (1, ["trips:Ulm", "max:Ulm"], RIDES)])
def test_the_patterns_that_it_shows_fit(block, keys, parts):
    shown = BLOCKS[block]

    assert shown["results"] == "redis:template"
    assert mistake(shown["key"], shown["field"]) == misfit(shown["key"], shown["field"], keys, parts, "opens") == ""
