"""Records in a folder of ours, each in a file, for the commands that come after the one that wrote them."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from harness.terminal.command_end import state_folder

T = TypeVar("T")


def folder(name: str) -> Path:
    found = state_folder() / name
    found.mkdir(exist_ok=True)
    return found


def write(name: str, record: Any) -> Path:
    """Write a dataclass atomically: another process may be reading."""
    file = folder(name) / f"{uuid.uuid4().hex}.json"
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(record)))
    return draft.replace(file)


def read(name: str, kind: type[T]) -> list[tuple[Path, T]]:
    """Read all records, but for those that are torn or of another version."""
    found = []
    for file in folder(name).glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            found.append((file, kind(**json.loads(file.read_text()))))
    return found
