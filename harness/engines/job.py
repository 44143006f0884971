"""The job that an engine runs, with its dependencies and the place of its state."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.model import EngineManifest, FileSeam


@dataclass(frozen=True)
class Surroundings:
    """An engine's prepared dependencies: its Python, and its jars, with its own classes first."""

    python: Path
    jars: tuple[Path, ...] = ()
    java: str = ""  # "" if the command does not need it
    packages: tuple[Path, ...] = ()  # folders with the packages that its results are read with; its job may use them


OURS = Surroundings(Path(sys.executable))  # of this program


@dataclass(frozen=True)
class History:
    """Older input in files, and the offsets at which the rest begins in Kafka."""

    folder: str
    seam: FileSeam

    def as_json(self) -> dict[str, Any]:
        return {"folder": self.folder, **asdict(self.seam)}


@dataclass(frozen=True)
class Job:
    manifest: EngineManifest
    surroundings: Surroundings = OURS
    checkpoint: str = ""  # "": the engine itself decides where its state lies
