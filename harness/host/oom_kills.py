"""Detects that the kernel killed a process because the machine had no memory left.

Such a run is no evidence about the engine, and its end is not the engine's fault. The evidence is the kernel's count of
OOM kills: it has risen since the run began, whichever process was killed. The victim may be the child of a child, whose
SIGKILL we can't see. A Java program that exhausts its own heap (OutOfMemoryError) does not raise the count; that is the
program's own crash.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """Granted memory and the kernel's count of OOM kills at one moment."""

    granted_bytes: int
    killed: int | None  # processes so far; None: not counted


def in_words(before: Memory, now: Memory) -> str:
    """Return a clause, or "" if the kernel killed no process in between or does not count."""
    if before.killed is None or now.killed is None or now.killed <= before.killed:
        return ""
    number = now.killed - before.killed
    return (
        f"the machine ran out of memory: the kernel killed {number} process{'es' if number > 1 else ''} to free "
        f"some; {now.granted_bytes / 1e9:.2f} GB are granted here"
    )
