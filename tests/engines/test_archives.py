"""Every engine of ours that says it starts from an archive of classes gets one: its JVM ends in order and writes it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.engines import manifest, shipped
from harness.terminal.command_end import cache_folder

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

WITH_ARCHIVES = [engine for engine in shipped.SHIPPED if manifest.load(engine).archive]


@pytest.mark.parametrize("engine", WITH_ARCHIVES)
def test_an_engine_that_is_added_has_an_archive_for_its_next_start(engine, tmp_path, monkeypatch):
    cache = tmp_path / "streamgauge"
    cache.mkdir()
    for folder in cache_folder().iterdir():
        if folder.name != "archives":
            (cache / folder.name).symlink_to(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    line = [sys.executable, "-m", "harness", "engines", "add", engine]
    done = subprocess.run(line, capture_output=True, text=True, timeout=250, check=False)

    made = sorted(path.name.rsplit("-", 1)[0] for path in (cache / "archives").glob("*.sha256"))
    assert (done.returncode, made) == (0, sorted(["broker", engine])), done.stderr
