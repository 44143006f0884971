"""The folders that are served, and the only way from an address to a file in them.

A place is an address below a served folder, such as `runs/20261128-130010-calm-spark`. It leads to nothing outside of
that folder: neither by `..`, nor by an absolute path, nor by a link that leads out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from harness.rundir import markers
from harness.util.suggest import is_file
from harness.util.texts import printable, shown
from reports import saved


@dataclass(frozen=True)
class Served:
    """The served folders by the name that an address begins with."""

    roots: Mapping[str, Path]

    def path(self, place: str) -> Path | None:
        """Return the real path of a place; None if there is nothing, or if it lies outside of its folder."""
        name, *parts = place.split("/")
        if name not in self.roots or any(part in ("", ".", "..") or "\0" in part for part in parts):
            return None
        root = self._real_roots[name]
        found = _real(root.joinpath(*parts))
        return found if found and found.is_relative_to(root) else None

    def folder(self, place: str) -> Path | None:
        """Return the folder of a run, an experiment or a page of ours; None if the place is no such folder."""
        found = self.path(place)
        return found if found and is_ours(found) and not self.unreadable(place, found) else None

    def file(self, place: str) -> Path | None:
        """Return a file of a run, an experiment or a page of ours. A hidden file is not served: it may be half
        written.
        """
        found = self.path(place)
        if not found or not is_file(found) or any(part.startswith(".") for part in place.split("/")[1:]):
            return None
        root = self._root(place)
        above = [folder for folder in found.parents if folder == root or folder.is_relative_to(root)]
        return found if any(map(is_ours, above)) else None

    def unreadable(self, place: str, path: Path) -> str:
        """Return why nothing of a place is read: a link in it leads out, or a pipe would never end; "" if neither."""
        root = self._root(place)
        for entry in _entries(path):
            if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
                continue
            real = _real(Path(entry.path)) if entry.is_symlink() else None
            if real is None or not real.is_relative_to(root):
                reason = "leads out of the served folder" if entry.is_symlink() else "is no file and no folder"
                return f"{shown(printable(entry.name))} in it {reason}, so that nothing of it is read"
            if not (real.is_file() or real.is_dir()):
                return f"{shown(printable(entry.name))} in it is no file and no folder, so that nothing of it is read"
        return ""

    def below(self, place: str) -> Iterator[str]:
        """Yield the places of all folders directly below a place, also of those that lead out."""
        found = self.path(place)
        for entry in _entries(found) if found else ():
            if not entry.name.startswith(".") and _is_folder(entry):
                yield f"{place}/{entry.name}"

    def _root(self, place: str) -> Path:
        return self._real_roots[place.partition("/")[0]]

    @cached_property
    def _real_roots(self) -> Mapping[str, Path]:
        return {name: path.resolve() for name, path in self.roots.items()}


def is_ours(folder: Path) -> bool:
    """Check if a folder holds a run, an experiment, or a copied page of either."""
    return any(markers.is_one(folder, marker) for marker in markers.CALLED) or saved.is_copy(folder)


def address(*parts: str) -> str:
    """Return the address of a page. A name that is not UTF-8 keeps its bytes."""
    return "/" + "/".join(quote(os.fsencode(part)) for part in parts)


def _real(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a name that can't exist
        return None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """List a folder that may be removed at the same time."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
