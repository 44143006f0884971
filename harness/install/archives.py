"""Archives of classes: with one, a JVM begins with its classes read, checked and linked, which is half of its start.

An archive belongs to one JDK, one class path and one set of flags; its name is a digest of all three, so that another
of them is another file. It is written by a JVM of a short run of its own when that ends in order (`making`), and is
there for others from one rename on (`seal`). Whoever uses one compares its sum first: what is torn or was changed is
left out with a reason, and the JVM starts as it would without. A JVM that doesn't like an archive says so in its own
log and goes on.

Java has two ways. Class data lie on top of the archive that a JDK has of its own classes. From version 25 on there is
the ahead-of-time cache, which stands alone and also holds what the compilers had learnt.
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
    """How a Java makes and uses archives: its options, of which the path ends the last one."""

    suffix: str
    makes: tuple[str, ...]
    uses: tuple[str, ...]


# Class data hold nothing of what a compiler learns: for a short run the first compiler is enough.
CLASS_DATA = Way(
    ".jsa",
    ("-XX:TieredStopAtLevel=1", "-XX:ArchiveClassesAtExit="),
    ("-Xshare:auto", "-XX:SharedArchiveFile="),
)
AOT_CACHE = Way(".aot", ("-XX:AOTCacheOutput=",), ("-XX:AOTCache=",))
AOT_CACHE_SINCE = 25  # 24 has one too, but makes it in two steps


@dataclass(frozen=True)
class Archive:
    """The archive of one kind of JVM: `name` says of which, `path` where it lies once it is made."""

    name: str
    path: Path
    way: Way
    obstacle: str = ""  # why there can't be one

    @property
    def part(self) -> Path:
        """Where a JVM writes it: half of one must never have its name."""
        return self.path.with_suffix(".part")

    @property
    def sum(self) -> Path:
        return self.path.with_suffix(".sha256")


@dataclass(frozen=True)
class Start:
    """How a JVM is started: with these options more, and what is to be said of its archive."""

    options: tuple[str, ...]
    state: str


COLD = Start((), WITHOUT)


def archive_of(name: str, java: Path, classpath: Sequence[Path], flags: Sequence[str] = ()) -> Archive:
    """`classpath`: the jars in the order in which the JVM looks into them."""
    digest = hashlib.sha256(_release(java))
    for jar in classpath:
        seen = jar.stat()  # the JVM refuses an archive when a jar has another size or time than it had
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
    """What tells one JDK from another; some come without the file that says it."""
    home = java.resolve().parent.parent
    try:
        return (home / "release").read_bytes() + str(home).encode()
    except OSError:
        seen = java.resolve().stat()
        return f"{home}\0{seen.st_size}\0{seen.st_mtime_ns}".encode()


def start(archive: Archive) -> Start:
    """With the archive if there is a whole one."""
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
    """Whether one could be made, and there is none that can be used."""
    return not archive.obstacle and start(archive).state != IN_USE


def making(archive: Archive) -> Start:
    """A JVM that is started so writes the archive when it ends in order, which takes it some seconds."""
    try:
        archive.part.parent.mkdir(parents=True, exist_ok=True)
        archive.part.unlink(missing_ok=True)
    except OSError as error:
        raise HarnessError(
            f"{folder()} can't be written ({error.strerror}), so that no archive of classes is made there: the next "
            "start takes as long as this one. Make it writable, or set XDG_CACHE_HOME to a folder that is."
        ) from error
    return Start(_with_path(archive.way.makes, archive.part), BEING_MADE)


def is_made_with(options: Sequence[str]) -> bool:
    """Whether a JVM with these options writes one."""
    return any(option.startswith(way.makes[-1]) for option in options for way in (CLASS_DATA, AOT_CACHE))


def _with_path(options: tuple[str, ...], path: Path) -> tuple[str, ...]:
    return (*options[:-1], f"{options[-1]}{path}")


@contextmanager
def alone(say: Callable[[str], None]) -> Iterator[None]:
    """Who makes archives and who removes some wait for each other: else a new one vanishes before it is sealed."""
    with jvm.only_one(folder() / "training", say):
        yield


def remove(name: str, say: Callable[[str], None]) -> list[Path]:
    """Those of one kind of JVM, of all JDKs and checkouts. A JVM that has one open keeps it."""
    with alone(say):
        gone = sorted(folder().glob(f"{name}-{'[0-9a-f]' * 16}.*"))
        for file in gone:
            file.unlink(missing_ok=True)
    return [file for file in gone if file.suffix in (CLASS_DATA.suffix, AOT_CACHE.suffix)]


def seal(archive: Archive) -> str:
    """Make what was just written known to others; what is wrong with it if it is not whole.

    A JVM writes the head of the file last, so that a JVM which was killed meanwhile leaves zeros there.
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
