"""The interface to which a run reports its progress."""

from __future__ import annotations

from typing import Protocol

from harness.terminal.progress_lines import Facts
from harness.terminal.screens import NullScreen

__all__ = ["NullScreen", "Screen"]


class Screen(Protocol):
    def phase(self, name: str, waits_for: str = "") -> None: ...
    def update(self, facts: Facts) -> None: ...
