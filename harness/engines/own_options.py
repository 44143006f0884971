"""The options that a job reads itself, such as `streamgauge.parser`: its engine never sees them.

One that the job does not read would change nothing, and nobody would be told: it is refused before the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from harness.explain import nearest
from harness.model import EngineManifest

PREFIX = "streamgauge."


def unread(manifest: EngineManifest, options: Iterable[str]) -> str:
    """A sentence about the first of them that the job does not read; "" where it reads all, or does not say."""
    if manifest.understands is None:
        return ""
    for name in options:
        if name.startswith(PREFIX) and not reads(manifest, name):
            known = ", ".join(manifest.understands) or "none that begins so"
            return f"{manifest.id} has no option {name}: its job reads {known}{nearest(name, manifest.understands)}"
    return ""


def reads(manifest: EngineManifest, option: str) -> bool:
    return any(fnmatchcase(option, pattern) for pattern in manifest.understands or ())
