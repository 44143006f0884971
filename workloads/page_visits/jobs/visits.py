"""What all jobs of page visits know: the fields they need, and the names of their results."""

from __future__ import annotations

LENGTH_MS, STEP_MS = 10_000, 2_000  # of a window; from the beginning of one to that of the next, where they overlap
VISITS, VISITORS = "visits", "visitors"


def key_of(value: str, country: str) -> str:
    return f"{value}:{country}"
