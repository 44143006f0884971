"""The seam: a source of results gives all that there is, as the rows of our own schema.

Translating happens here and nowhere else, so that judging and measuring know one schema only. What can't be translated
keeps its own name, and the checks name it: nothing is passed over in silence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.clock import Clock
from harness.model import EngineManifest, KafkaAddress
from harness.observe import ELSEWHERE, HASH, NO_RESULT, ORPHAN, VANISHED, WRONG_TYPE, Row
from harness.watching.sampler import Sampled
from harness.whole import whole

UPDATED = "updated:"
# Kinds of rows that are no type of a key: one that vanished while it was read says nothing of its type either.
TRANSLATED = (HASH, VANISHED, NO_RESULT, ELSEWHERE, ORPHAN)


@dataclass(frozen=True)
class Place:
    """Where the results of one run are."""

    client: Any  # of Redis
    kafka: KafkaAddress
    topic: str  # of results, for engines that write them to Kafka
    campaigns: Sequence[str]
    tables: Mapping[str, str]  # keys of the workload's tables, which are ours -> kind
    window_ms: int
    watermark_ms: int
    manifest: EngineManifest
    config: Path  # the engine's orders
    log: Path  # for what a reader complains of
    clock: Clock  # of the run


class Observer(Protocol):
    """Looks at the results from `start` until `stop`."""

    def start(self) -> None: ...
    def stop(self) -> Sampled: ...
    def shows(self, key: int, field: int) -> bool:
        """Whether anything of this cell was seen; true of one at which nobody looks."""

    def changed_ms(self) -> int | None:
        """When the results were last seen to change."""


class Results(ABC):
    def __init__(self, place: Place) -> None:
        self._place = place

    @abstractmethod
    def rows(self) -> list[Row]:
        """Everything, orphans included."""

    def snapshot(self) -> object:
        """What a drain compares with the look before; all of it, where there is no cheaper way."""
        return self.rows()

    def close(self) -> None:  # noqa: B027  (most have nothing open)
        """Let go of what is open."""


def window_start(text: str, place: Place) -> str:
    """A job may name a window by its end. What is no number stays what it is."""
    number = whole(text)
    return text if place.manifest.window_key == "start" or number is None else str(number - place.window_ms)


def by_campaign(rows: Sequence[Row], campaigns: Sequence[str]) -> list[list[str] | str]:
    """As a hash of Redis for each campaign: field, value, field, value, ...; as an error where its key is no hash."""
    found: Mapping[str, list[str]] = {name: [] for name in campaigns}
    wrong = {row.key for row in rows if row.key in found and row.kind not in TRANSLATED}
    for row in rows:
        if row.key in found and row.kind == HASH:
            found[row.key].extend((row.field, row.value))
    return [WRONG_TYPE if name in wrong else found[name] for name in campaigns]
