"""Locates the program's own files and its command name.

In a checkout the launcher lies beside this package. No wheel contains it, so without it the program is an installed
one: below `streamgauge/program` in a user's environment. Nothing is ever written beside an installed program: its own
environment lies in the user's cache, and its output goes to the state folder and the current folder. Standard library
only, because the launcher imports this too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.terminal.command_end import PROGRAM

ROOT = Path(__file__).resolve().parents[2]  # the checkout; streamgauge/program of an installed one
IS_CHECKOUT = (ROOT / PROGRAM).is_file()
COMMAND = f"./{PROGRAM}" if IS_CHECKOUT else PROGRAM  # as the user types it
HOW_TO_MEND = f"Delete {sys.prefix} and start again: the next command makes it anew."
