"""What all jobs of page visits know: the fields they need, and the names of their results."""

from __future__ import annotations

LENGTH_MS, STEP_MS = 10_000, 2_000  # of a window; from the beginning of one to that of the next, where they overlap
GAP_MS = 2_000  # within which visits are one session
VISITS, VISITORS = "visits", "visitors"
PAGES, DIFFERENT = "pages", "different"


def key_of(value: str, whose: str) -> str:
    return f"{value}:{whose}"
