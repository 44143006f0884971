"""Other versions of a shipped engine: `spark@4.1.1` is the engine `spark` in that version.

The maintainers pin the shipped version. A version that a user names is resolved on its first use: the packages by uv,
the connector by Ivy. The list with its hashes and the checksums of the jars stay in the user's cache as pins: nothing
else is accepted later, even after `engines rm`. Other packages in such an environment have the same versions as in this
program, so that only the engine differs.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TextIO

from harness.engines.shipped import HERE, VERSIONS, lock_file
from harness.install import jvm
from harness.install.installer import BOOTSTRAP, index_settings, run_step
from harness.model import HarnessError, UsageError
from harness.terminal.command_end import cache_folder

UV = Path(sys.executable).with_name("uv")
PACKAGE = {"spark": "pyspark", "flink": "apache-flink"}
# Packages that the job imports and the engine lacks.
BESIDE = {"spark": ("redis", "hiredis", "numpy", "pyarrow"), "flink": ("redis", "hiredis")}
# Spark's connector has the version of Spark. Flink's has separate versions, and stays.
CONNECTOR = re.compile(r'(name="spark-sql-kafka-0-10_2\.13" rev=)"[^"]+"')

Say = Callable[[str], None]


def pinned(engine: str) -> bool:
    """The checksums of the jars are written last."""
    return (jvm.pins_folder(engine) / "jars.sha256").is_file()


def all_pinned() -> list[str]:
    return sorted(path.parent.name for path in jvm.pins_folder("").glob("*/jars.sha256"))


def installer_cache(engine: str) -> Path:
    """Return uv's cache, on the same disk as the environment, so that files are linked and not copied. It is deleted
    after an install. All checkouts of a user share a version's list, so only the Python distinguishes its environments.
    """
    digest = hashlib.sha256(sys.version.encode()).hexdigest()[:16]
    return cache_folder() / "engines" / f".{engine}-{digest}-cache"


def pin(engine: str, say: Say) -> None:
    """Resolve and pin a version once."""
    folder = jvm.pins_folder(engine)
    with jvm.only_one(folder, say) as lock:
        if pinned(engine):  # another process did it while this one waited
            return
        say(f"{engine} is new here. Its packages are resolved now and pinned in {folder}.")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _pin_packages(engine, folder, lock)
            (folder / "ivy.xml").write_text(ivy_of(engine), encoding="utf-8")
            jvm.pin_and_keep(engine, say)
        except BaseException:
            shutil.rmtree(folder)
            shutil.rmtree(installer_cache(engine), ignore_errors=True)
            raise


def ivy_of(engine: str) -> str:
    """Return the engine's ivy.xml with another version of the connector."""
    name, version = _parts(engine)
    return CONNECTOR.sub(rf'\1"{version}"', (HERE / name / "ivy.xml").read_text(encoding="utf-8"))


def requirements_of(engine: str) -> str:
    """Pin this program's packages for this Python. Other Pythons may lack those versions."""
    this = f"python_version == '{sys.version_info.major}.{sys.version_info.minor}'"
    name, _ = _parts(engine)
    here = [f"{beside}=={version_of(beside)} ; {this}" for beside in BESIDE[name]]
    others = [f"{beside} ; {this.replace('==', '!=')}" for beside in BESIDE[name]]
    return "\n".join([_wanted(engine), *here, *others, ""])


def _parts(engine: str) -> tuple[str, str]:
    name, _, version = engine.partition("@")
    return name, version


def _wanted(engine: str) -> str:
    name, version = _parts(engine)
    return f"{PACKAGE[name]}=={version}"


def _pin_packages(engine: str, folder: Path, lock: TextIO) -> None:
    wanted, log = folder / "requirements.in", folder.with_name(f"{engine}.log")
    wanted.write_text(requirements_of(engine), encoding="utf-8")
    log.write_bytes(b"")
    command = [
        *(str(UV), "pip", "compile", "--quiet", "--cache-dir", str(installer_cache(engine))),
        *("--universal", "--python-version", "3.11", "--python", sys.executable, "--no-build-isolation"),
        *("--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"),
        *("--constraints", str(BOOTSTRAP), "--output-file", str(lock_file(engine)), str(wanted)),
    ]
    try:
        run_step(f"resolving the packages of {engine}", command, lock, log, index_settings(sys.executable))
    except HarnessError as error:
        said = " ".join(log.read_text(encoding="utf-8", errors="replace").split())
        if f"no version of {_wanted(engine)}" in said:
            (name, version), package = _parts(engine), PACKAGE[_parts(engine)[0]]
            raise UsageError(
                f"There is no {VERSIONS[name].name} {version}: the package index has no {package} of that version. "
                f"`pip index versions {package}` lists the versions that it has."
            ) from error
        raise
