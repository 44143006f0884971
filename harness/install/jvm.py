"""Finds Java; fetches and verifies the jars that run on it.

The embedded broker and Spark's Kafka connector are Maven artifacts. Each set is described by an `ivy.xml` and pinned,
jar by jar, by the `jars.sha256` beside it; `jars.lock` lists where each jar lies in a repository, and its size. Ivy
fetches them into a folder of the user's cache. The folder's name is a digest of the first two files, so another version
is another folder and a folder's content never changes. A fetch is published by one rename after every checksum matched;
the jars of a fetch that was broken off stay for the next try. Later uses verify again and need no network. Standard
library only, because the launcher needs Java before anything is installed; pyspark is located, not imported.

    python -m harness.install.jvm [SET...]        fetch what is missing ("services", "kafka-tools", names of engines)
    python -m harness.install.jvm --ivy-below=UV_CACHE  the same while uv installs the Spark in which Ivy is
    python -m harness.install.jvm --pin [SET...]  resolve anew, write jars.sha256, jars.lock (after a change of ivy.xml)
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TextIO

from harness.install import ivy
from harness.install.ivy import Artifact, Say
from harness.install.progress import Amount
from harness.model import Exit, HarnessError
from harness.terminal.command_end import cache_folder

MINIMUM_JAVA = 17
# By default Java formats and parses in the user's locale: in Turkish the upper case of "i" is not "I", so a broker
# does not recognise its own words. Users also read the output of our programs. An engine's Java keeps the user's
# locale.
ENGLISH = ("-Duser.language=en", "-Duser.country=US")
DEFAULT_SETS = ("services", "spark")
SUMS, PLACES = "jars.sha256", "jars.lock"
HOW_TO_GET_JAVA = (
    f"Install a Java runtime of version {MINIMUM_JAVA} or newer (Debian, Ubuntu: openjdk-17-jre-headless; "
    "Fedora: java-21-openjdk-headless; macOS: openjdk@17 from Homebrew), or set JAVA_HOME to one that is there."
)

_HARNESS = Path(__file__).resolve().parent.parent
_OF_NO_ENGINE = {"services": "services", "kafka-tools": "services/kafka-tools"}  # set -> its folder
FindIvy = Callable[[], Path]


def _say_on_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- Java


@functools.cache
def java() -> Path:
    """Return the `java` for all child processes; raise with advice if it is missing or too old."""
    found = find_java()
    version = java_version(found)
    if version < MINIMUM_JAVA:
        raise HarnessError(f"Java {MINIMUM_JAVA} or newer is needed, {found} is Java {version}. {HOW_TO_GET_JAVA}")
    return found


def find_java() -> Path:
    """Return the java of JAVA_HOME if it is set, because Spark obeys it too; else the `java` on PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        inside = Path(home) / "bin" / "java"
        if os.access(inside, os.X_OK):
            return inside
        raise HarnessError(
            f"JAVA_HOME is {home}, but there is no program {inside}. Unset JAVA_HOME to use the java on PATH, "
            f"or point it at a Java {MINIMUM_JAVA} or newer."
        )
    on_path = shutil.which("java")
    if on_path is None:
        raise HarnessError(
            f"Java {MINIMUM_JAVA} or newer is needed and none was found: JAVA_HOME is not set and "
            f"no java is on PATH. {HOW_TO_GET_JAVA}"
        )
    return Path(on_path)


def java_version(program: Path) -> int:
    """Return the major version that this program reports."""
    done = _asked_its_version(program)
    said = done.stderr + done.stdout
    version = parse_java_version(said)
    if version is None:
        shown = said.strip().splitlines()[:1] or [f"nothing, exit code {done.returncode}"]
        raise HarnessError(f"{program} -version should name a version; it said: {shown[0]}. {HOW_TO_GET_JAVA}")
    return version


def shares_classes(program: Path) -> bool:
    """Return whether it starts from an archive of its own classes; trimmed runtimes have none."""
    return "sharing" in _asked_its_version(program).stderr


@functools.cache
def _asked_its_version(program: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{program} -version did not run: {error}. {HOW_TO_GET_JAVA}") from error


def parse_java_version(text: str) -> int | None:
    """Return 17 for `openjdk version "17.0.15"`, and 8 for the old numbering, `"1.8.0_392"`."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


# ---------------------------------------------------------------- Jars


def jars(which: str, say: Say = _say_on_stderr, find_ivy: FindIvy = ivy.installed) -> Path:
    """Return the folder with exactly the pinned jars of this set ("services", "spark", ...); fetch it if needed."""
    pinned = read_sums(source_folder(which) / SUMS)
    folder = jar_folder(which)
    if not differences(pinned, folder):
        return folder
    with only_one(folder, say):
        found = differences(pinned, folder)  # another process may have fetched them in the meantime
        if found:
            if folder.exists():
                say(f"The jars in {folder} are not the pinned ones ({'; '.join(found)}): fetching them again.")
            try:
                _fetch(which, folder, pinned, say, find_ivy)
            except OSError as error:
                raise HarnessError(
                    f"The JVM artifacts of {which} could not be stored in {folder.parent}: {error.strerror}. Free "
                    "about 200 MB there, or set XDG_CACHE_HOME to a folder on another disk, and try again."
                ) from error
    return folder


def classpath(which: str, say: Say = _say_on_stderr) -> str:
    """Return the argument of `java -cp` for this set of jars."""
    return f"{jars(which, say)}/*"


def source_folder(which: str) -> Path:
    """Return the folder of this set's ivy.xml and jars.sha256."""
    folder = pins_folder(which) if is_version(which) else _HARNESS / _OF_NO_ENGINE.get(which, f"engines/{which}")
    if not (folder / "ivy.xml").is_file():
        raise HarnessError(f"There is no set of JVM artifacts named {which}: {folder / 'ivy.xml'} does not exist.")
    return folder


def is_version(which: str) -> bool:
    """Return whether the set is a version chosen by the user, such as spark@4.1.1, whose pins are not ours."""
    return "@" in which


def pins_folder(which: str) -> Path:
    """Return the folder of the pins of a user's version, which its first use makes and which stay."""
    return cache_folder() / "pins" / which


def jar_folder(which: str) -> Path:
    """Return the folder of this set's jars, which may not be fetched yet."""
    source = source_folder(which)
    digest = hashlib.sha256()
    for name in ("ivy.xml", SUMS):
        if (source / name).is_file():
            digest.update((source / name).read_bytes())
    return cache_folder() / "jars" / f"{which}-{digest.hexdigest()[:16]}"


def read_sums(path: Path) -> dict[str, str]:
    """Parse file name -> SHA-256 from the format of `sha256sum`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise HarnessError(f"The pinned sums of the jars cannot be read: {error}.") from error
    pairs = (line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#"))
    return {name.lstrip("*"): digest for digest, name in pairs}


def write_sums(path: Path, sums: dict[str, str]) -> None:
    path.write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)), encoding="utf-8")


def sums_of(folder: Path) -> dict[str, str]:
    """Compute file name -> SHA-256 for a folder; empty if it does not exist."""
    if not folder.is_dir():
        return {}
    return {entry.name: _sum_of(entry) for entry in sorted(folder.iterdir())}


def _sum_of(path: Path) -> str:
    if not path.is_file():
        return "not a file"
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def differences(pinned: dict[str, str], folder: Path) -> list[str]:
    """List each deviation of a folder from the pins as a clause; empty if it matches."""
    seen = sums_of(folder)
    return (
        [f"{name} is missing" for name in sorted(pinned.keys() - seen.keys())]
        + [f"{name} is not pinned" for name in sorted(seen.keys() - pinned.keys())]
        + [
            f"{name} has the sum {seen[name][:12]}..., pinned is {pinned[name][:12]}..."
            for name in sorted(pinned.keys() & seen.keys())
            if seen[name] != pinned[name]
        ]
    )


# ---------------------------------------------------------------- Fetching


def amount(sets: Sequence[str]) -> Amount:
    """Return how many bytes of these sets are here, also of unfinished fetches, and how many there will be."""
    done = total = 0
    for which in sets:
        wanted, folder = ivy.read_artifacts(source_folder(which) / PLACES), jar_folder(which)
        size = sum(each.size for each in wanted)
        total += size
        done += size if folder.is_dir() else _bytes_so_far(folder, {each.name for each in wanted})
    return Amount(done, total)


def _bytes_so_far(folder: Path, wanted: set[str]) -> int:
    """Add up what unfinished fetches have of these jars. Ivy writes to a .part, and copies what is finished."""
    sizes: dict[str, int] = {}
    for path in folder.parent.glob(f"{_prefix(folder)}*/**/*.jar*"):
        name = path.name.removesuffix(".part")
        if name in wanted:
            with suppress(OSError):  # it was renamed in the meantime
                sizes[name] = max(path.stat().st_size, sizes.get(name, 0))
    return sum(sizes.values())


def _fetch(which: str, folder: Path, pinned: dict[str, str], say: Say, find_ivy: FindIvy) -> None:
    source, kept = source_folder(which), folder.with_name(f"{_prefix(folder)}kept")
    known = ivy.read_artifacts(source / PLACES)
    with _scratch(folder, pinned, kept) as scratch:
        fetched = scratch / "jars"
        if {each.name for each in known} == pinned.keys():
            fetched.mkdir()
            if missing := [each for each in known if not (kept / each.name).is_file()]:
                _fetch_artifacts(which, missing, scratch, say, find_ivy)
        else:
            _resolve(which, scratch, say, find_ivy)
        for jar in kept.iterdir() if kept.is_dir() else ():
            jar.replace(fetched / jar.name)
        found = differences(pinned, fetched)
        if found:
            raise HarnessError(
                f"The jars of {which} came, but not as pinned in {source / SUMS}: "
                f"{_some(found)}. No such jar was kept; Ivy's log is {_ivy_log(which)}. If this repeats, "
                "the repository that is asked holds other files than the project was tested with."
            )
        if folder.exists():
            shutil.rmtree(folder)
        fetched.rename(folder)
    shutil.rmtree(kept, ignore_errors=True)


def _prefix(folder: Path) -> str:
    """Return the beginning of the names of a set's unfinished fetches, which `engines rm` removes too."""
    return f".{folder.name}-fetch-"


@contextmanager
def _scratch(folder: Path, pinned: dict[str, str], kept: Path) -> Iterator[Path]:
    """Make a folder for a fetch. Its verified jars move to `kept` if the fetch ends early, and so do those of fetches
    whose process is dead: their names contain the folder's digest, whose lock we hold."""
    for left_over in folder.parent.glob(f"{_prefix(folder)}*"):
        if left_over != kept:
            _keep(left_over, pinned, kept)
            shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=_prefix(folder)) as name:
        try:
            yield Path(name)
        except BaseException:
            _keep(Path(name), pinned, kept)
            raise


def _keep(place: Path, pinned: dict[str, str], kept: Path) -> None:
    """Move finished jars out of a fetch, from wherever Ivy has put them."""
    for jar in place.rglob("*.jar"):
        if jar.name in pinned and _sum_of(jar) == pinned[jar.name]:
            kept.mkdir(exist_ok=True)
            jar.replace(kept / jar.name)


def _fetch_artifacts(which: str, artifacts: Sequence[Artifact], scratch: Path, say: Say, find_ivy: FindIvy) -> None:
    """Fetch these jars into `scratch/jars`, by several Ivys at the same time."""
    jar, settings = find_ivy(), ivy.settings_file(scratch, poms=False)
    pattern = f"{scratch / 'jars'}/[artifact]-[revision](-[classifier]).[ext]"
    commands = []
    for number, share in enumerate(ivy.shares(artifacts)):
        place, wanted = scratch / str(number), scratch / f"ivy-{number}.xml"
        wanted.write_text(ivy.ivy_xml(f"{which}-{number}", share), encoding="utf-8")
        commands.append(ivy.command(java(), jar, place, settings=settings, ivy_file=wanted, pattern=pattern))
    _run_ivy(which, commands, scratch, say)


def _resolve(which: str, scratch: Path, say: Say, find_ivy: FindIvy = ivy.installed) -> list[Artifact]:
    """Let Ivy find out what belongs to a set, and fetch it into `scratch/jars`. Return the places of the jars."""
    fetched, tree = scratch / "jars", scratch / "tree"
    fetched.mkdir()
    settings, wanted = ivy.settings_file(scratch, poms=True), source_folder(which) / "ivy.xml"
    pattern = f"{tree}/[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
    command = ivy.command(java(), find_ivy(), scratch / "0", settings=settings, ivy_file=wanted, pattern=pattern)
    _run_ivy(which, [command], scratch, say)
    found = []
    for path in sorted(each for each in tree.rglob("*") if each.is_file()):
        organisation, module, revision, name = path.relative_to(tree).parts
        found.append(Artifact(PurePosixPath(*organisation.split("."), module, revision, name), path.stat().st_size))
        path.rename(fetched / name)
    return found


def _run_ivy(which: str, commands: Sequence[Sequence[str]], scratch: Path, say: Say) -> None:
    say(f"Fetching the JVM artifacts of {which} ...")
    log = _ivy_log(which)
    log.parent.mkdir(parents=True, exist_ok=True)
    code = ivy.run(commands, which, log, say, lambda: amount([which]))
    said = log.read_text(errors="replace")
    # Ivy also exits with 0 after some failures.
    failed = code != 0 or re.search(r"UNRESOLVED DEPENDENCIES|FAILED DOWNLOADS", said)
    if failed or not any(scratch.rglob("*.jar")):
        raise HarnessError(ivy.explain_failure(which, code, said, log))


def _ivy_log(which: str) -> Path:
    return cache_folder() / "jars" / f"{which}.log"


def _some(clauses: Sequence[str], most: int = 5) -> str:
    more = len(clauses) - most
    return "; ".join(clauses[:most]) + (f"; and {more} more" if more > 0 else "")


@contextmanager
def only_one(folder: Path, say: Say) -> Iterator[TextIO]:
    """Hold a lock on a cache entry, so that two first uses make it once. The kernel frees it if we die."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stream = (folder.parent / f".{folder.name}.lock").open("w")
    except OSError as error:
        raise HarnessError(
            f"The cache folder {folder.parent} cannot be written: {error.strerror}. Make it writable or "
            "set XDG_CACHE_HOME to a folder that is."
        ) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Another streamgauge is making {folder.name}; waiting for it ...")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream


def pin(which: str, say: Say = _say_on_stderr) -> Path:
    """Write jars.sha256 and jars.lock from the repository's current files. Maintainers review the difference."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-pin-") as scratch:
        return _write_pins(which, Path(scratch), say)


def _write_pins(which: str, scratch: Path, say: Say) -> Path:
    source = source_folder(which)
    ivy.write_artifacts(source / PLACES, _resolve(which, scratch, say))
    write_sums(source / SUMS, sums_of(scratch / "jars"))  # last: a version of the user's is pinned once it exists
    return source / SUMS


def pin_and_keep(which: str, say: Say = _say_on_stderr) -> Path:
    """Pin like `pin`, but without a review: the fetched jars are kept, and from now on no others are accepted.

    The caller holds the lock of the pins.
    """
    unpinned = jar_folder(which)
    unpinned.parent.mkdir(parents=True, exist_ok=True)
    with _scratch(unpinned, {}, unpinned) as scratch:
        _write_pins(which, scratch, say)
        folder = jar_folder(which)
        shutil.rmtree(folder, ignore_errors=True)
        (scratch / "jars").rename(folder)
    return folder


BELOW = "--ivy-below="


def main(arguments: Sequence[str]) -> int:
    names = [argument for argument in arguments if not argument.startswith("--")] or DEFAULT_SETS
    below = [Path(argument.removeprefix(BELOW)) for argument in arguments if argument.startswith(BELOW)]

    def fetch(which: str) -> Path:
        if "--pin" in arguments:
            return pin(which)
        return jars(which, find_ivy=(lambda: ivy.wait_for(below[0])) if below else ivy.installed)

    try:
        with ThreadPoolExecutor() as pool:
            for path in pool.map(fetch, names):
                print(path)
    except HarnessError as error:
        print(f"streamgauge: {error}", file=sys.stderr)
        return Exit.BROKEN
    return Exit.PASS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
