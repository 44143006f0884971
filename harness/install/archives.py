"""Archives of classes. A JVM with an archive starts with its classes read, verified and linked, in about half the time.

An archive fits one JDK, one class path and one set of flags. Its name is a digest of all three, so any change leads to
another file. A JVM of a short training run writes it on a clean exit (`making`); one rename publishes it (`seal`). Each
use first verifies the checksum: a damaged or modified archive is left out with a reason, and the JVM starts without
one. A JVM that rejects an archive logs that and goes on.

Java has two kinds. Class data archives build on the archive of the JDK's own classes. From version 25 on there is the
ahead-of-time cache, which stands alone and also holds compiler profiles.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.host.disk_space import size_in_words
from harness.install import jvm
from harness.model import HarnessError
from harness.terminal.command_end import cache_folder

IN_USE, NONE_YET, WITHOUT, BEING_MADE = "in use", "none yet", "without", "being made"


@dataclass(frozen=True)
class Way:
    """The options with which a Java makes and uses archives. The path is appended to the last option."""

    suffix: str
    makes: tuple[str, ...]
    uses: tuple[str, ...]


# Class data archives hold no compiler profiles, so the first compiler is enough for a short run.
CLASS_DATA = Way(
    ".jsa",
    ("-XX:TieredStopAtLevel=1", "-XX:ArchiveClassesAtExit="),
    ("-Xshare:auto", "-XX:SharedArchiveFile="),
)
AOT_CACHE = Way(".aot", ("-XX:AOTCacheOutput=",), ("-XX:AOTCache=",))
AOT_CACHE_SINCE = 25  # 24 needs two steps to make one


@dataclass(frozen=True)
class Archive:
    """The archive for one kind of JVM, called `name`. It need not exist at `path` yet."""

    name: str
    path: Path
    way: Way
    obstacle: str = ""  # why none can be made

    @property
    def part(self) -> Path:
        """Return the path to which a JVM writes: an unfinished archive must never have the final name."""
        return self.path.with_suffix(".part")

    @property
    def sum(self) -> Path:
        return self.path.with_suffix(".sha256")


@dataclass(frozen=True)
class Start:
    """Extra options for starting a JVM, and the state of its archive for reports."""

    options: tuple[str, ...]
    state: str


COLD = Start((), WITHOUT)


def archive_of(name: str, java: Path, classpath: Sequence[Path], flags: Sequence[str] = ()) -> Archive:
    """Describe the archive for these jars and flags. `classpath` lists the jars in search order."""
    digest = hashlib.sha256(_release(java))
    for jar in classpath:
        seen = jar.stat()  # the JVM rejects an archive if size or time of a jar has changed
        digest.update(f"{jar}\0{seen.st_size}\0{seen.st_mtime_ns}\n".encode())
    digest.update("\0".join(flags).encode())
    way = way_of(java)
    path = folder() / f"{name}-{digest.hexdigest()[:16]}{way.suffix}"
    return Archive(name, path, way, _obstacle(java, path, way))


def way_of(java: Path) -> Way:
    return AOT_CACHE if jvm.java_version(java) >= AOT_CACHE_SINCE else CLASS_DATA


def _obstacle(java: Path, path: Path, way: Way) -> str:
    if any(letter.isspace() for letter in str(path)):
        return f"{path} has a blank in it, which options of a JVM can't hold"
    if way is CLASS_DATA and not jvm.shares_classes(java):
        return f"{java} has no archive of its own classes, on which others lie (`{java} -Xshare:dump` makes it)"
    return ""


def folder() -> Path:
    return cache_folder() / "archives"


def _release(java: Path) -> bytes:
    """Return bytes that identify the JDK. Some JDKs lack the `release` file."""
    home = java.resolve().parent.parent
    try:
        return (home / "release").read_bytes() + str(home).encode()
    except OSError:
        seen = java.resolve().stat()
        return f"{home}\0{seen.st_size}\0{seen.st_mtime_ns}".encode()


def start(archive: Archive) -> Start:
    """Use the archive if it exists and is intact."""
    if archive.obstacle:
        return Start((), f"left out: {archive.obstacle}")
    try:
        wanted = archive.sum.read_text(encoding="utf-8").strip()
        with archive.path.open("rb") as stream:
            seen = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return Start((), NONE_YET)
    except (OSError, ValueError) as error:
        return Start((), f"left out: {archive.path} can't be read ({error})")
    if seen != wanted:
        return Start((), f"left out: {archive.path} is not what was written there")
    return Start(_with_path(archive.way.uses, archive.path), IN_USE)


def lacks(archive: Archive) -> bool:
    """Return whether an archive can be made and no usable one exists."""
    return not archive.obstacle and start(archive).state != IN_USE


def making(archive: Archive) -> Start:
    """Return options with which a JVM writes the archive on a clean exit, which takes it some seconds."""
    try:
        archive.part.parent.mkdir(parents=True, exist_ok=True)
        archive.part.unlink(missing_ok=True)
    except OSError as error:
        raise HarnessError(
            f"{folder()} can't be written ({error.strerror}), so no class archive is written there and the next "
            f"start is not faster. Make it writable, or set XDG_CACHE_HOME to a writable folder."
        ) from error
    return Start(_with_path(archive.way.makes, archive.part), BEING_MADE)


def is_made_with(options: Sequence[str]) -> bool:
    """Return whether a JVM with these options writes an archive."""
    return any(option.startswith(way.makes[-1]) for option in options for way in (CLASS_DATA, AOT_CACHE))


def _with_path(options: tuple[str, ...], path: Path) -> tuple[str, ...]:
    return (*options[:-1], f"{options[-1]}{path}")


@contextmanager
def alone(say: Callable[[str], None]) -> Iterator[None]:
    """Serialise making and removing archives: otherwise a new one could be removed before it is sealed."""
    with jvm.only_one(folder() / "training", say):
        yield


def remove(name: str, say: Callable[[str], None]) -> list[Path]:
    """Remove the archives of one kind of JVM, for all JDKs and checkouts. A JVM with one open keeps its copy."""
    with alone(say):
        gone = sorted(folder().glob(f"{name}-{'[0-9a-f]' * 16}.*"))
        for file in gone:
            file.unlink(missing_ok=True)
    return [file for file in gone if file.suffix in (CLASS_DATA.suffix, AOT_CACHE.suffix)]


def seal(archive: Archive) -> str:
    """Publish a newly written archive, or return what is wrong with it.

    A JVM writes the head of the file last, so a JVM that was killed before leaves zeros there.
    """
    try:
        with archive.part.open("rb") as stream:
            if not any(stream.read(4)):
                return f"the JVM of {archive.name} did not end writing its archive"
            stream.seek(0)
            written = hashlib.file_digest(stream, "sha256").hexdigest()
        archive.sum.write_text(f"{written}\n", encoding="utf-8")
        archive.part.rename(archive.path)
    except FileNotFoundError:
        free = shutil.disk_usage(archive.path.parent).free
        return f"the JVM of {archive.name} wrote no archive; {size_in_words(free)} are free in {archive.path.parent}"
    except OSError as error:
        return f"the archive of {archive.name} can't be kept in {archive.path.parent}: {error.strerror}"
    return ""
