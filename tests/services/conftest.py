"""The tests of a module go to one worker, one after the other. Those of the load workers take longest: they come first,
in two halves."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONGEST = "test_load_workers"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.path.is_relative_to(HERE) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(config.rootpath))))
    items.sort(key=lambda item: item.path.stem != LONGEST)
