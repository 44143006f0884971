"""The plan of a backlog, as Spark's data source takes it: text, for processes on any machine."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from harness.model import TapeSpec


@dataclass(frozen=True)
class Plan:
    """A backlog: its tape, and the load start, before which its events lie."""

    tape: TapeSpec
    epoch_ms: int

    def as_text(self) -> str:
        return msgspec.json.encode(self).decode()

    @staticmethod
    def of_text(text: str) -> Plan:
        return msgspec.json.decode(text, type=Plan)
