"""Prints `campaign,window,count` for each cell of the table that job.py writes."""

import json
import sqlite3
import sys
from pathlib import Path

run = json.loads(Path(sys.argv[1]).read_text())
database = sqlite3.connect(f"file:{run['folder']}/counts.db?mode=ro", uri=True)
for row in database.execute("SELECT campaign, opens, views FROM ad_counts"):
    print(*row, sep=",")
