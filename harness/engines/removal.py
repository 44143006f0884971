"""Removes an engine's installed files: completely, by one process, and not while a run uses them.

A process that makes files in the cache holds the lock of their folder, whose name ends in a digest. All of these locks
are taken before anything is deleted, also those of older lists and of other checkouts. Using an installed folder needs
no lock, so a run holds a separate mark, shared with other runs.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

from harness.engines.environments import RESULTS, stamp_of
from harness.engines.manifest import load
from harness.engines.shipped import SHIPPED, results_list
from harness.install import jvm
from harness.model import EngineManifest, HarnessError, UsageError
from harness.terminal.command_end import cache_folder

Say = Callable[[str], None]


def remove(manifest: EngineManifest, say: Say) -> list[Path]:
    """Delete the files made for this engine, also by older lists, and remains of killed installations.

    Files that this program itself needs stay, and so do the pins of a version.
    """
    with ExitStack() as held:
        for made in _made_for(manifest):
            held.enter_context(_unused(made, manifest.id))
        if jvm.is_version(manifest.packages):  # pinning fetches into folders that are removed here
            held.enter_context(jvm.only_one(jvm.pins_folder(manifest.packages), say))
        return [folder for made in _made_for(manifest) for folder in _remove_all(made, say)]


def sharing(manifest: EngineManifest) -> list[str]:
    """Return the other shipped engines that use the files `remove` deletes for this one."""
    made = set(_made_for(manifest))
    return [other for other in SHIPPED if other != manifest.id and made & set(_made_for(load(other)))]


@contextmanager
def in_use(manifest: EngineManifest) -> Iterator[None]:
    """Make `remove` refuse while a run uses its engine's files. The kernel ends this if we die."""
    with ExitStack() as held:
        for made in _made_for(manifest):
            with suppress(OSError):  # a folder that can't be written can't be removed either
                fcntl.flock(held.enter_context(_mark(made)), fcntl.LOCK_SH)
        yield


@contextmanager
def _unused(made: Path, engine: str) -> Iterator[None]:
    """Ensure that no run uses it, and that none begins to until this ends."""
    with _in_words(made.parent), _mark(made) as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"What was installed for {engine} is in use. A run uses it or another engine that shares it, or it "
                f"is being removed already. Try again when that has ended."
            ) from None
        yield


def _mark(made: Path) -> TextIO:
    made.parent.mkdir(parents=True, exist_ok=True)
    return (made.parent / f".{made.name}.used").open("w")


def _made_for(manifest: EngineManifest) -> list[Path]:
    """Return the path prefixes of this engine's folders in the cache; their names continue with a digest."""
    made = [cache_folder() / "engines" / manifest.packages] if manifest.packages else []
    if results_list(manifest.source).is_file():
        made.append(cache_folder() / "engines" / f"{RESULTS}{manifest.source}")
    if manifest.ivy and manifest.ivy not in jvm.DEFAULT_SETS:
        made.append(cache_folder() / "jars" / manifest.ivy)
    return made


def _remove_all(made: Path, say: Say) -> list[Path]:
    """Remove the folders of every digest. Killed installations leave folders with a leading dot, removed first."""
    name = rf"{re.escape(made.name)}-[0-9a-f]{{16}}"
    wanted = re.compile(rf"{name}|\.{name}-(cache|removed|fetch-\w+)")
    with ExitStack() as held:
        for lock in sorted(made.parent.iterdir()):
            if match := re.fullmatch(rf"\.({name})\.lock", lock.name):
                held.enter_context(jvm.only_one(made.parent / match[1], say))
        gone = [path for path in sorted(made.parent.iterdir()) if wanted.fullmatch(path.name)]
        for folder in gone:
            _discard(folder)
    return gone


def _discard(folder: Path) -> None:
    """Remove the stamp first, then rename, so that a killed removal leaves nothing that looks complete."""
    with _in_words(folder):
        if not folder.name.startswith("."):
            stamp_of(folder).unlink(missing_ok=True)
            folder = folder.rename(folder.with_name(f".{folder.name}-removed"))
        shutil.rmtree(folder)


@contextmanager
def _in_words(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HarnessError(
            f"{folder} could not be removed: {error.strerror} ({error.filename}). The remaining files will not be "
            f"used. Make the folder writable, and start the same command again."
        ) from error
