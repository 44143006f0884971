"""Where the program's own files lie, and how it is called there.

In a checkout the launcher lies beside this package. No wheel holds it, so where it is missing the program was installed
into an environment. Nothing is ever written beside an installed program: what it makes goes to the user's cache, its
state folder, and the current folder. Standard library only, because the launcher asks too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.terminal.command_end import PROGRAM

ROOT = Path(__file__).resolve().parents[2]  # the checkout; of an installed program its site-packages
IS_CHECKOUT = (ROOT / PROGRAM).is_file()
COMMAND = f"./{PROGRAM}" if IS_CHECKOUT else PROGRAM  # as it is typed
HOW_TO_MEND = (
    f"Delete {sys.prefix} and start again: the next command makes it anew."
    if IS_CHECKOUT
    else "Install its wheel again: `uv tool install --reinstall WHEEL`, or `pipx install --force WHEEL`."
)
