"""When a load begins: its epoch, from which all planned times count.

What is expected is sealed before that moment is known, so it is counted in parts of windows (`Oracle.part_ms`), and the
epoch may lie wherever no part reaches over the edge of a window: a load need not wait for the next edge.
"""

from __future__ import annotations

# How far ahead of now the epoch lies at least: the fleet has to read it before its first slice is due.
LEAD_MS = 700


def next_ms(now_ms: int, part_ms: int) -> int:
    return -(-(now_ms + LEAD_MS) // part_ms) * part_ms
