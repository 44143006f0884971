"""What was made for an engine is removed: whole, by one process, and not while a run uses it.

Whoever makes something in the cache holds the lock of its folder, whose name ends in a digest. All of these locks are
taken before anything goes, those of older lists and of other checkouts too. Nobody needs a lock to use what is ready,
so that a run holds a mark of its own, shared with other runs.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

from harness.engines.environments import stamp_of
from harness.engines.manifest import SHIPPED, load
from harness.install import jvm
from harness.model import EngineManifest, HarnessError, UsageError
from harness.terminal.command_end import cache_folder

Say = Callable[[str], None]


def remove(manifest: EngineManifest, say: Say) -> list[Path]:
    """Delete what was made for this engine, by older lists too, and what killed installations left of it.

    What this program itself needs stays, and so do the pins of a version.
    """
    with ExitStack() as held:
        for made in _made_for(manifest):
            held.enter_context(_unused(made, manifest.id))
        if jvm.is_version(manifest.packages):  # who pins it fetches into places that are removed here
            held.enter_context(jvm.only_one(jvm.pins_folder(manifest.packages), say))
        return [folder for made in _made_for(manifest) for folder in _remove_all(made, say)]


def sharing(manifest: EngineManifest) -> list[str]:
    """The other shipped engines that use what `remove` deletes for this one."""
    made = set(_made_for(manifest))
    return [other for other in SHIPPED if other != manifest.id and made & set(_made_for(load(other)))]


@contextmanager
def in_use(manifest: EngineManifest) -> Iterator[None]:
    """As long as a run needs what was made for its engine; `remove` refuses meanwhile. The kernel ends it if we die."""
    with ExitStack() as held:
        for made in _made_for(manifest):
            with suppress(OSError):  # where nothing can be written, nothing can be removed
                fcntl.flock(held.enter_context(_mark(made)), fcntl.LOCK_SH)
        yield


@contextmanager
def _unused(made: Path, engine: str) -> Iterator[None]:
    """No run has it in use, and until this ends none begins to."""
    with _in_words(made.parent), _mark(made) as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"What was installed for {engine} is in use: a run goes on with it, or with another engine that shares "
                "it, or it is being removed already. Try again when that has ended."
            ) from None
        yield


def _mark(made: Path) -> TextIO:
    made.parent.mkdir(parents=True, exist_ok=True)
    return (made.parent / f".{made.name}.used").open("w")


def _made_for(manifest: EngineManifest) -> list[Path]:
    """What is this engine's in the cache: folders whose names go on with a digest."""
    made = [cache_folder() / "engines" / manifest.packages] if manifest.packages else []
    if manifest.ivy and manifest.ivy not in jvm.DEFAULT_SETS:
        made.append(cache_folder() / "jars" / manifest.ivy)
    return made


def _remove_all(made: Path, say: Say) -> list[Path]:
    """Of every digest. Killed installations leave folders that begin with a dot; they come first."""
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
    """First its stamp goes, then its name, so that nothing looks whole when this is killed on the way."""
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
            f"{folder} could not be removed: {error.strerror} ({error.filename}). What is left of it will not be used. "
            "Make it writable, and the same command again goes on."
        ) from error
