"""The files of a load worker, in a private folder: its own settings of the Kafka client, and what it says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

OWN_VARIABLE = "STREAMGAUGE_WORKER"  # the folder
SETTINGS, SAID = "settings.json", "said.jsonl"


class Own:
    """The folder. The settings may hold secrets, and are never sent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def settings_file(self) -> Path:
        return self._folder / SETTINGS

    def settings_of(self, client: str) -> Mapping[str, Any]:
        settings: dict[str, Mapping[str, Any]] = json.loads(self.settings_file.read_bytes())
        return settings[client]

    def say(self, kind: str, **facts: object) -> None:
        with (self._folder / SAID).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **facts}) + "\n")

    def said(self) -> Iterator[dict[str, Any]]:
        """Yield every whole line so far."""
        path = self._folder / SAID
        if path.exists():
            for line in path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines():
                yield json.loads(line)
