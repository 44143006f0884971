"""Did the kernel kill a process because there was no memory left?

Then nobody can say what an engine would have done, and that it is gone is not its fault. The kernel counts whom it has
killed; a count that has risen since the run began is the evidence, whichever process it was: the one that is missed may
be the child of a child, so that its end by SIGKILL is not seen. A Java program that has used up a heap of its own
ends by itself (OutOfMemoryError), the count stays as it was, and that is the program's own crash.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """What the kernel said of memory at one moment."""

    granted_bytes: int
    killed: int | None  # processes, up to then; None: it does not say


def in_words(before: Memory, now: Memory) -> str:
    """A clause; "" where the kernel killed nobody meanwhile, or does not say."""
    if before.killed is None or now.killed is None or now.killed <= before.killed:
        return ""
    number = now.killed - before.killed
    return (
        f"the machine had no memory left: the kernel killed {number} process{'es' if number > 1 else ''} to get some "
        f"back, and {now.granted_bytes / 1e9:.2f} GB are granted here"
    )
