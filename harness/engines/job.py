"""What an engine runs: a job, all that it needs around it, and where it finds its state."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.model import EngineManifest, FileSeam


@dataclass(frozen=True)
class Surroundings:
    """Ready to be used: which Python runs the engine, and which jars it finds, its own classes first."""

    python: Path
    jars: tuple[Path, ...] = ()
    java: str = ""  # "" where nobody asked for it


OURS = Surroundings(Path(sys.executable))  # this program's own


@dataclass(frozen=True)
class History:
    """Older input, which lies in files, and where the rest of it begins in Kafka."""

    folder: str
    seam: FileSeam

    def as_json(self) -> dict[str, Any]:
        return {"folder": self.folder, **asdict(self.seam)}


@dataclass(frozen=True)
class Job:
    manifest: EngineManifest
    surroundings: Surroundings = OURS
    checkpoint: str = ""  # "" where its state lies is for the engine to know
