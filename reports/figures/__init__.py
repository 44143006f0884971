"""Drawings, one per module: plain numbers in, a figure out. None of them knows a run, a store or a page.

Each module has values for its content and `draw(..., canvas)`; reports/figures/style.py gives the canvas its size and
colours and turns the figure into pictures.

matplotlib keeps a list of fonts below the home folder, and complains on stderr if it can't be written. Therefore it
gets a folder of ours before any drawing imports it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from harness.model import HarnessError
from harness.terminal.command_end import cache_folder


def _folder_for_fonts() -> Path:
    with suppress(OSError, HarnessError):
        folder = cache_folder() / "matplotlib"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    passing = Path(tempfile.mkdtemp(prefix="streamgauge-matplotlib-"))
    atexit.register(shutil.rmtree, passing, ignore_errors=True)
    return passing


if not os.environ.get("MPLCONFIGDIR"):
    os.environ["MPLCONFIGDIR"] = str(_folder_for_fonts())
