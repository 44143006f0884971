"""Prints what `job.py` has put into its file."""

import json
import sys
from pathlib import Path

cells = Path(json.loads(Path(sys.argv[1]).read_text())["folder"]) / "cells.json"
if cells.exists():
    print("\n".join(f"{cell},{value}" for cell, value in json.loads(cells.read_text()).items()))
