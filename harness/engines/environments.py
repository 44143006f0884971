"""Prepares an engine's dependencies: its own Python packages, jars, and compiled Java classes.

Most engines run in this program's `.venv`. An engine that needs other packages names a list of them in its manifest
(`packages`): they go, pinned with hashes, into a separate environment, which uv makes on first use in the user's cache.
Its folder's name is a digest of the list, so another version is another folder. Java sources are compiled once, into a
jar of the same cache, which needs a JDK. `prepare` runs before anything of a run is started and reports missing parts;
it also looks up and pins a version that a user named (versions.py).
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from harness.engines import versions
from harness.engines.job import OURS, Surroundings
from harness.engines.manifest import load
from harness.engines.shipped import jobs_folder, lock_file, results_list
from harness.engines.versions import UV
from harness.install import jvm
from harness.install.installer import BOOTSTRAP, BUILDING, index_settings, run_step
from harness.model import EngineManifest, HarnessError, UsageError
from harness.terminal.command_end import cache_folder

ROOM_NEEDED = 4_000_000_000  # while the largest is unpacked; less than 1 GB stays
COMPILE_DEADLINE_S = 120
BUILT = ("--only-binary", ":all:")  # nothing is built from source, which would run code of packages
RESULTS = "results-"  # followed by a source: the folder of the packages that read it
PACKAGES, JDK = "Python packages", "a JDK"  # the names in `missing`
HOW_TO_GET_A_JDK = (
    f"Install a JDK of version {jvm.MINIMUM_JAVA} or newer (Debian, Ubuntu: openjdk-17-jdk-headless; Fedora: "
    "java-21-openjdk-devel; macOS: openjdk@17 from Homebrew), or set JAVA_HOME to one that is there."
)

Say = Callable[[str], None]


def prepare(manifest: EngineManifest, say: Say) -> Surroundings:
    """Return everything that this engine needs; make missing parts."""
    _refuse_what_is_lacking(manifest)
    if _is_unknown(manifest):
        versions.pin(manifest.packages, say)
    python = _python(manifest.packages, say) if manifest.packages else OURS.python
    jars = tuple(sorted(jvm.jars(manifest.ivy, say).glob("*.jar"))) if manifest.ivy else ()
    if manifest.java:
        jars = (_classes(manifest, (*jars, *jars_inside(manifest, python)), say), *jars)
    java = str(jvm.java()) if "{java}" in manifest.command else ""
    return Surroundings(python, jars, java, _readers_packages(manifest.source, say))


def _readers_packages(source: str, say: Say) -> tuple[Path, ...]:
    """Return the folder of the packages with which this process reads the results. They are fetched on first use."""
    pins = results_list(source)
    if not pins.is_file():
        return ()
    python = python_with(source, [pins], _readers_folder(source), say)
    return tuple((python.parent.parent / "lib").glob("python*/site-packages"))


def _readers_folder(source: str) -> Path:
    return _folder_for(f"{RESULTS}{source}", results_list(source))


def missing(manifest: EngineManifest) -> tuple[str, ...]:
    """Return the parts that `prepare` would make, and a JDK, which it can't; () if nothing is missing."""
    if _is_unknown(manifest):
        return (PACKAGES, "jars")
    lacking = [JDK] if manifest.java and not _has_jdk() else []
    reads_with = results_list(manifest.source).is_file()
    if (manifest.packages and not stamp_of(folder_of(manifest.packages)).is_file()) or (
        reads_with and not stamp_of(_readers_folder(manifest.source)).is_file()
    ):
        lacking.append(PACKAGES)
    if manifest.ivy and jvm.differences(
        jvm.read_sums(jvm.source_folder(manifest.ivy) / "jars.sha256"), jvm.jar_folder(manifest.ivy)
    ):
        lacking.append("jars")
    return tuple(lacking)


def installed_versions() -> list[EngineManifest]:
    """Return the installed versions among those that users named."""
    named = (load(engine) for engine in versions.all_pinned())
    return [manifest for manifest in named if not missing(manifest)]


def _is_unknown(manifest: EngineManifest) -> bool:
    """Return whether this version has never been used here."""
    return jvm.is_version(manifest.packages) and not versions.pinned(manifest.packages)


def folder_of(packages: str) -> Path:
    return _folder_for(packages, lock_file(packages))


def _folder_for(name: str, pins: Path) -> Path:
    digest = hashlib.sha256(pins.read_bytes())
    digest.update(sys.version.encode())  # the environment uses this program's interpreter
    return cache_folder() / "engines" / f"{name}-{digest.hexdigest()[:16]}"


def jars_inside(manifest: EngineManifest, python: Path) -> tuple[Path, ...]:
    """Return the jars inside the Python packages, such as Spark's own: to compile against."""
    if not manifest.jars_inside:
        return ()
    site = python.parent.parent / "lib"
    return tuple(sorted(site.glob(f"python*/site-packages/{manifest.jars_inside}/*.jar")))


def _refuse_what_is_lacking(manifest: EngineManifest) -> None:
    """Check early, before minutes are spent."""
    _refuse_without_its_jar(manifest)
    if manifest.java:
        _javac(_whose(manifest))
    if PACKAGES not in missing(manifest):  # jars need little space, and check it themselves
        return
    place = cache_folder()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < ROOM_NEEDED:
        raise HarnessError(
            f"Installing the engine {manifest.id} needs {ROOM_NEEDED / 1e9:.0f} GB for a while in {cache_folder()}, "
            f"and {free / 1e9:.1f} GB are free. Free some space, or set XDG_CACHE_HOME to a folder on another disk."
        )


def _refuse_without_its_jar(manifest: EngineManifest) -> None:
    """A run builds nothing. Java's own error would come late and look like a crashed job."""
    jars = [word.replace("{home}", manifest.home) for word in manifest.command if word.endswith(".jar")]
    absent = [jar for jar in jars if "{" not in jar and not (Path(manifest.home) / jar).is_file()]
    if absent:
        build = " ".join(manifest.build).replace("{home}", manifest.home)
        how = f"run '{build}' in {manifest.home}" if build else "build it"
        raise UsageError(
            f"The jar {absent[0]}, which the manifest of {manifest.id} names in its command, does not exist: {how}, "
            f"and start the same command again."
        )


def stamp_of(folder: Path) -> Path:
    return folder / "streamgauge.ready"


def _python(packages: str, say: Say) -> Path:
    folder = folder_of(packages)
    return python_with(packages, [BOOTSTRAP, lock_file(packages)], folder, say)


def python_with(packages: str, pins: Sequence[Path], folder: Path, say: Say) -> Path:
    """Return the Python of the environment in this folder. Make it first if it is missing: `pins` lists its packages,
    and begins with BOOTSTRAP if some of them are built from source.
    """
    python = folder / "bin" / "python"
    if stamp_of(folder).is_file():
        return python
    with jvm.only_one(folder, say) as lock:
        if not stamp_of(folder).is_file():  # another process may have made it in the meantime
            _install(packages, pins, folder, lock)
    return python


def _install(packages: str, pins: Sequence[Path], folder: Path, lock: TextIO) -> None:
    """Without the stamp the folder's content is unknown, so it is made anew. The installer's cache is then deleted."""
    shutil.rmtree(folder, ignore_errors=True)
    cache = _installer_cache(packages, folder)
    log = folder.parent / f"{folder.name}.log"
    log.write_bytes(b"")
    common = ["--cache-dir", str(cache)]
    sync = [str(UV), "pip", "sync", *common, "--python", str(folder / "bin" / "python"), "--require-hashes"]
    venv = [str(UV), "venv", *common, "--python", sys.executable, str(folder)]
    steps = {f"making the environment of {packages}": venv}
    if BOOTSTRAP in pins:
        steps["installing the tools that build packages"] = [*sync, str(BOOTSTRAP)]
    how = BUILDING if BOOTSTRAP in pins else BUILT
    steps[f"installing the packages of {packages}"] = [*sync, *how, *map(str, pins)]
    try:
        for what, command in steps.items():
            run_step(what, command, lock, log, index_settings(sys.executable))
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    stamp_of(folder).touch()


def _installer_cache(packages: str, folder: Path) -> Path:
    """Use one cache per folder, like the lock: its user deletes it. Pinning has filled a version's cache."""
    return versions.installer_cache(packages) if jvm.is_version(packages) else folder.with_name(f".{folder.name}-cache")


def _classes(manifest: EngineManifest, classpath: Sequence[Path], say: Say) -> Path:
    sources = [source_of(manifest, name) for name in manifest.java]
    for source in sources:
        _refuse_unreadable(source, manifest)
    return compiled(manifest.id, _whose(manifest), sources, classpath, say)


def compiled(name: str, whose: str, sources: Sequence[Path], classpath: Sequence[Path], say: Say) -> Path:
    """Return the jar of these sources, which is compiled on first use. Errors say `whose` sources they are."""
    javac = _javac(whose)
    digest = hashlib.sha256(str(javac.resolve()).encode())
    for source in sources:
        digest.update(source.read_bytes())
    digest.update("\n".join(path.name for path in classpath).encode())
    jar = cache_folder() / "classes" / f"{name}-{digest.hexdigest()[:16]}.jar"
    if jar.is_file():
        return jar
    with jvm.only_one(jar, say):
        if not jar.is_file():
            _compile(whose, javac, sources, classpath, jar)
    return jar


def source_of(manifest: EngineManifest, name: str) -> Path:
    """Return the path beside the manifest; sources of a shipped engine, also an extended one, lie beside its job."""
    own = Path(manifest.home) / name
    beside_job = jobs_folder(manifest.workload) / name
    inherited = manifest.extends and not own.is_file() and beside_job.is_file()
    return beside_job if manifest.shipped or inherited else own


def _refuse_unreadable(source: Path, manifest: EngineManifest) -> None:
    try:
        source.read_bytes()
    except OSError as error:
        raise HarnessError(
            f"The Java source {source} of the engine {manifest.id} can't be read: {error.strerror}. Its manifest names "
            "it under java."
        ) from error


def _compile(whose: str, javac: Path, sources: Sequence[Path], classpath: Sequence[Path], jar: Path) -> None:
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix=".compiling-") as place:
        classes = Path(place) / "classes"
        command = [str(javac), *(f"-J{option}" for option in jvm.ENGLISH), "-nowarn", "-d", str(classes)]
        command += ["-cp", ":".join(map(str, classpath)), *map(str, sources)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_DEADLINE_S, check=False)
        except subprocess.TimeoutExpired:
            raise HarnessError(
                f"{javac} did not compile the Java sources of {whose} within {COMPILE_DEADLINE_S} s. "
                "The machine may be busy. Start the same command again."
            ) from None
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error:" in line][:3]
            raise HarnessError(f"The Java sources of {whose} do not compile with {javac}: {'; '.join(errors)}.")
        part = Path(place) / "classes.jar"
        with zipfile.ZipFile(part, "w") as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.write(path, path.relative_to(classes))
        part.replace(jar)


def _has_jdk() -> bool:
    try:
        return _beside(jvm.java()).is_file()
    except HarnessError:  # there is no Java at all
        return False


def _beside(java: Path) -> Path:
    """Return the path of this Java's compiler, which may not exist."""
    return java.resolve().with_name("javac")


def _whose(manifest: EngineManifest) -> str:
    return f"the engine {manifest.id}"


def _javac(whose: str) -> Path:
    javac = _beside(jvm.java())
    if not javac.is_file():
        raise HarnessError(
            f"{whose[0].upper()}{whose[1:]} has Java sources, and {jvm.java()} is a runtime without a compiler. "
            f"{HOW_TO_GET_A_JDK}"
        )
    return javac
