"""Computes when a load starts; all planned times count from there.

The expected counts are sealed before that moment is known, so they are kept in parts of windows (`Oracle.part_ms`). The
load may start wherever no part crosses a window edge, so it need not wait for the next window.
"""

from __future__ import annotations

# Least time from now to the load start: the fleet has to read it before its first slice is due.
LEAD_MS = 700


def next_ms(now_ms: int, part_ms: int) -> int:
    return -(-(now_ms + LEAD_MS) // part_ms) * part_ms
