"""The interface to which a run reports its progress."""

from __future__ import annotations

from typing import Protocol

from harness.terminal.progress_lines import Facts
from harness.terminal.screens import NullScreen

__all__ = ["NullScreen", "Screen"]


def sent_so_far(now_ms: float, sent: int, planned: int) -> Facts:
    """The progress of a phase in which no engine works."""
    return {"now_ms": now_ms, "sent": min(sent, planned), "planned": planned, "done": -1}


class Screen(Protocol):
    def phase(self, name: str, waits_for: str = "") -> None: ...
    def update(self, facts: Facts) -> None: ...
