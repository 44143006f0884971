"""Stored runs, unpacked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.browse.site import Site
from tests.quick.browse import folders


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.unpack(tmp_path_factory.mktemp("stored"))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """An empty folder of runs, with a secret beside it."""
    (tmp_path / "secret.txt").write_text(folders.SECRET)
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def site(runs: Path) -> Site:
    return Site({"runs": runs})
