"""The interface to which a run reports its progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Screen(Protocol):
    def phase(self, name: str, detail: str = "") -> None: ...
    def update(self, facts: Mapping[str, str | float | int]) -> None: ...


class NullScreen:
    """A screen without output."""

    def phase(self, name: str, detail: str = "") -> None: ...
    def update(self, facts: Mapping[str, str | float | int]) -> None: ...
