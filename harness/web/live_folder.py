"""The folder of a run or an experiment that its live page reads and writes."""

from __future__ import annotations

FOLDER = "live"
URL_FILE = "url"  # in it, while the page is served
