"""The version of the run folder's format. Each run records it."""

from __future__ import annotations

SCHEMA_VERSION = 4  # 3: a run has digests of its files; 4: its plan holds the spec, its history these digests
READABLE_SCHEMAS = range(2, SCHEMA_VERSION + 1)
