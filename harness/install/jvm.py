"""Finds Java; fetches and verifies the jars that run on it.

The embedded broker and Spark's Kafka connector are Maven artifacts. Each set is described by an `ivy.xml` and pinned,
jar by jar, by the `jars.sha256` beside it. The Ivy inside pyspark resolves them into a folder of the user's cache. The
folder's name is a digest of both files, so another version is another folder and a folder's content never changes. A
fetch is published by one rename after every checksum matched; later uses verify again and need no network. Standard
library only, because the launcher needs Java before anything is installed; pyspark is located, not imported.

    python -m harness.install.jvm [SET...]        fetch what is missing ("services", "kafka-tools", names of engines)
    python -m harness.install.jvm --pin [SET...]  resolve anew, write jars.sha256 (after a change of ivy.xml)
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from harness.host import disk_space
from harness.install.origin import HOW_TO_MEND
from harness.model import Exit, HarnessError
from harness.terminal.command_end import cache_folder

MINIMUM_JAVA = 17
# By default Java formats and parses in the user's locale: in Turkish the upper case of "i" is not "I", so a broker
# does not recognise its own words. Users also read the output of our programs. An engine's Java keeps the user's
# locale.
ENGLISH = ("-Duser.language=en", "-Duser.country=US")
DEFAULT_SETS = ("services", "spark")
IVY_DEADLINE_S = 900
TOLD_EVERY_S = 15.0
HOW_TO_GET_JAVA = (
    f"Install a Java runtime of version {MINIMUM_JAVA} or newer (Debian, Ubuntu: openjdk-17-jre-headless; "
    "Fedora: java-21-openjdk-headless; macOS: openjdk@17 from Homebrew), or set JAVA_HOME to one that is there."
)

_HARNESS = Path(__file__).resolve().parent.parent
_OF_NO_ENGINE = {"services": "services", "kafka-tools": "services/kafka-tools"}  # set -> its folder
# Ivy has Maven's central repository built in; a site with a mirror passes its own settings file. The switched-off
# lookups cost a request per file and more than double the time: sources, documentation, and weak checksums of
# files that we verify with our own strong ones.
_IVY_SETTINGS = """<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" useMavenMetadata="false"/></resolvers>
</ivysettings>
"""
_OWN_SETTINGS_VARIABLE = "STREAMGAUGE_IVY_SETTINGS"

Say = Callable[[str], None]


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


def jars(which: str, say: Say = _say_on_stderr) -> Path:
    """Return the folder with exactly the pinned jars of this set ("services", "spark", ...); fetch it if needed."""
    source = source_folder(which)
    pinned = read_sums(source / "jars.sha256")
    folder = jar_folder(which)
    if not differences(pinned, folder):
        return folder
    with only_one(folder, say):
        found = differences(pinned, folder)  # another process may have fetched them in the meantime
        if found:
            if folder.exists():
                say(f"The jars in {folder} are not the pinned ones ({'; '.join(found)}): fetching them again.")
            try:
                _fetch(which, folder, pinned, say)
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
    for name in ("ivy.xml", "jars.sha256"):
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


def _fetch(which: str, folder: Path, pinned: dict[str, str], say: Say) -> None:
    with _scratch(folder) as scratch:
        fetched = _resolve(which, scratch, say)
        found = differences(pinned, fetched)
        if found:
            raise HarnessError(
                f"The jars of {which} came, but not as pinned in {source_folder(which) / 'jars.sha256'}: "
                f"{_some(found)}. Nothing of it was kept; Ivy's log is {_ivy_log(which)}. If this repeats, "
                "the repository that is asked holds other files than the project was tested with."
            )
        if folder.exists():
            shutil.rmtree(folder)
        fetched.rename(folder)


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """The name contains the folder's digest, and we hold its lock: an existing one is a dead process's."""
    prefix = f".{folder.name}-fetch-"
    for left_over in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix) as scratch:
        yield Path(scratch)


def _resolve(which: str, scratch: Path, say: Say) -> Path:
    """Run Ivy with all of its own files below `scratch`. Return the folder of the fetched jars."""
    own_settings = os.environ.get(_OWN_SETTINGS_VARIABLE)
    settings = Path(own_settings) if own_settings else scratch / "ivysettings.xml"
    if not own_settings:
        settings.write_text(_IVY_SETTINGS, encoding="utf-8")
    fetched = scratch / "jars"
    command: list[str | Path] = [
        java(),
        *ENGLISH,
        f"-Divy.default.ivy.user.dir={scratch / 'ivy'}",
        "-Djava.net.useSystemProxies=true",
        *("-jar", _ivy_jar(), "-settings", settings, "-ivy", source_folder(which) / "ivy.xml"),
        *("-retrieve", f"{fetched}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    say(f"Fetching the JVM artifacts of {which} ...")
    log = _ivy_log(which)
    log.parent.mkdir(parents=True, exist_ok=True)
    code = _run_ivy(command, which, log, say)
    # Ivy also exits with 0 after some failures, so the fetched files count, not the exit code.
    if code != 0 or not fetched.is_dir():
        raise HarnessError(explain_failure(which, code, log.read_text(errors="replace"), log))
    return fetched


def _run_ivy(command: Sequence[str | Path], which: str, log: Path, say: Say) -> int:
    """Return the exit code. Report progress to the user in intervals."""
    began = time.monotonic()
    with log.open("wb") as output:
        ivy = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            while (passed_s := time.monotonic() - began) < IVY_DEADLINE_S:
                with suppress(subprocess.TimeoutExpired):
                    return ivy.wait(TOLD_EVERY_S)
                say(f"Fetching the JVM artifacts of {which} ... {passed_s + TOLD_EVERY_S:.0f} s so far")
        finally:
            ivy.kill()
            ivy.wait()
    raise HarnessError(
        f"Fetching the JVM artifacts of {which} did not end within {IVY_DEADLINE_S} s. "
        f"The network may be slow or down. Ivy's log is {log}. Start the same command again."
    )


def explain_failure(which: str, code: int, said: str, log: Path) -> str:
    """Explain a failed fetch to the user in one sentence, from Ivy's output."""
    if disk_space.ended_of_full(said, log.parent):
        cause, remedy = f"the disk of {cache_folder()} is full", "free about 200 MB there, or set XDG_CACHE_HOME"
    elif re.search(
        r"Host \S+ not found|UnknownHost|ConnectException|timed out|unreachable|Connection refused|SSLHandshake", said
    ):
        cause = "the Maven repository was not reached"
        remedy = (
            "check the network; behind a proxy set JAVA_TOOL_OPTIONS to -Dhttps.proxyHost=... -Dhttps.proxyPort=..., "
            f"or {_OWN_SETTINGS_VARIABLE} to an Ivy settings file that names a mirror"
        )
    else:
        missing = re.findall(r"::\s+(\S+#\S+;\S+): not found", said)
        cause = f"the repository has no {missing[0]}" if missing else f"Ivy ended with code {code}"
        remedy = f"read the log; a mirror may lack files ({_OWN_SETTINGS_VARIABLE} chooses another one)"
    return f"The JVM artifacts of {which} could not be fetched: {cause}. To go on, {remedy}. Ivy's log is {log}."


def _ivy_log(which: str) -> Path:
    return cache_folder() / "jars" / f"{which}.log"


def _some(clauses: Sequence[str], most: int = 5) -> str:
    more = len(clauses) - most
    return "; ".join(clauses[:most]) + (f"; and {more} more" if more > 0 else "")


def _ivy_jar() -> Path:
    """Return the Ivy inside pyspark. Locating the package does not import it."""
    spec = importlib.util.find_spec("pyspark")
    locations = list(spec.submodule_search_locations or []) if spec else []
    found = [jar for location in locations for jar in sorted(Path(location).glob("jars/ivy-*.jar"))]
    if not found:
        raise HarnessError(f"No pyspark with an Ivy inside is installed for {sys.executable}. {HOW_TO_MEND}")
    return found[-1]


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
    """Write jars.sha256 from the repository's current files. For maintainers, who review the difference."""
    path = source_folder(which) / "jars.sha256"
    with tempfile.TemporaryDirectory(prefix="streamgauge-pin-") as scratch:
        write_sums(path, sums_of(_resolve(which, Path(scratch), say)))
    return path


def pin_and_keep(which: str, say: Say = _say_on_stderr) -> Path:
    """Pin like `pin`, but without a review: the fetched jars are kept, and from now on no others are accepted.

    The caller holds the lock of the pins.
    """
    unpinned = jar_folder(which)
    unpinned.parent.mkdir(parents=True, exist_ok=True)
    with _scratch(unpinned) as scratch:
        fetched = _resolve(which, scratch, say)
        write_sums(source_folder(which) / "jars.sha256", sums_of(fetched))
        folder = jar_folder(which)
        shutil.rmtree(folder, ignore_errors=True)
        fetched.rename(folder)
    return folder


def main(arguments: Sequence[str]) -> int:
    names = [argument for argument in arguments if argument != "--pin"] or DEFAULT_SETS
    try:
        # Ivy requests small files one by one: two sets in parallel take little longer than one.
        with ThreadPoolExecutor() as pool:
            for path in pool.map(pin if "--pin" in arguments else jars, names):
                print(path)
    except HarnessError as error:
        print(f"streamgauge: {error}", file=sys.stderr)
        return Exit.BROKEN
    return Exit.PASS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
