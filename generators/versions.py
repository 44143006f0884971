"""Compares the versions of a run and of its workers on other hosts. They must be equal, or another load would be sent.
Pure, except for the digest of our own files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

# The folders whose code decides what is sent, and when.
DECIDING = ("generators", "workloads", "harness/model", "harness/util")
DIGITS = 12


def code_digest() -> str:
    """Return a digest of the code that decides what is sent: two checkouts may have the same version."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(path for folder in DECIDING for path in (root / folder).rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:DIGITS]


def differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Return what differs, in words; "" if nothing does."""
    return ", ".join(_differences(ours, theirs))


def _differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*ours, *theirs]):
        here, there = ours.get(name, "none"), theirs.get(name, "none")
        if here != there:
            yield f"{name} {there} instead of {here}"
