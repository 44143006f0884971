"""Locates the program's own files and its command name.

In a checkout the launcher lies beside this package. No wheel contains it, so without it the program is an installed
one. Nothing is ever written beside an installed program: its output goes to the user's cache, the state folder, and the
current folder. Standard library only, because the launcher imports this too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.terminal.command_end import PROGRAM

ROOT = Path(__file__).resolve().parents[2]  # the checkout; site-packages of an installed program
IS_CHECKOUT = (ROOT / PROGRAM).is_file()
COMMAND = f"./{PROGRAM}" if IS_CHECKOUT else PROGRAM  # as the user types it
HOW_TO_MEND = (
    f"Delete {sys.prefix} and start again: the next command makes it anew."
    if IS_CHECKOUT
    else "Install its wheel again: `uv tool install --reinstall WHEEL`, or `pipx install --force WHEEL`."
)
