"""When a load begins: its epoch, from which all planned times count.

What is expected is sealed before that moment is known, so it is counted in parts of windows, and the epoch may lie
wherever no part reaches over the edge of a window: a load need not wait for the next edge.
"""

from __future__ import annotations

from math import gcd

from harness.model import RunSpec

PART_MS = 500
MOST_PARTS = 2_000_000  # in a run with more of them each window is one part
# How far ahead of now the epoch lies at least: the fleet has to read it before its first slice is due.
LEAD_MS = 700


def part_ms(spec: RunSpec) -> int:
    """How long a part of a window is: the epoch is a multiple of it."""
    part = gcd(spec.window_ms, PART_MS)
    span_ms = spec.tape.reach_ms + spec.tape.warm_up_ms + spec.tape.load_ms
    return part if spec.tape.all_campaigns * span_ms // part <= MOST_PARTS else spec.window_ms


def next_ms(now_ms: int, part_ms: int) -> int:
    return -(-(now_ms + LEAD_MS) // part_ms) * part_ms
