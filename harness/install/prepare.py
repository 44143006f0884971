"""Makes the program's environment on first use and hands over to the command line inside it.

It is .venv in a checkout. An installed program, and a checkout that we can't write to, has it in the user's cache.

The launcher of a checkout, and the command of a wheel (`client/__main__.py`), run this with any Python of the right
version and nothing installed, hence standard library only. A stamp inside the environment holds the digests of the
installed lock files. As long as they match, a use costs a few milliseconds and no network. The stamp is deleted before
any change and written last, so an interrupted preparation is repeated, with what it had fetched; one process prepares
at a time and the others wait for it.

.venv has no pip: the one that comes with Python fetches uv, uv fetches and builds the packages, and meanwhile the Ivy
among them fetches the JVM artifacts.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, TextIO

from harness import __version__
from harness.install import jvm
from harness.install.installer import (
    BOOTSTRAP,
    BUILDING,
    ROOM_NEEDED,
    Step,
    StepError,
    bundled_pip,
    index_settings,
    pip_command,
    run_side_by_side,
    run_step,
)
from harness.install.origin import IS_CHECKOUT, ROOT
from harness.install.progress import Amount, Part, Progress, tell
from harness.model import Exit, HarnessError, UsageError
from harness.terminal.command_end import COMPLETING, cache_folder, command_of, ended, own_words
from harness.util.file_tree import size_below

STAMP_NAME = "streamgauge.json"

RUN, TEST = (ROOT / "requirements" / f"{name}.lock" for name in ("run", "test"))

# These start a broker or Spark, unless one of the options makes them list, explain or use another service.
JAVA_COMMANDS = frozenset({"run", "up", "test", "bench", "chaos", "search", "compare", "gate"})
PERHAPS_WITHOUT_JAVA = frozenset({"--list", "--engine", "--kafka"})

NOTHING_LOST = "Incomplete files are not used: the next command installs them again."
INDENT = " " * 6
HELP = frozenset({"--help", "-h"})
QUESTIONS = HELP | {"--version", "-V"}
INSTALLED_LATER = "The first command creates a .venv. After that, --help lists more."

Stamp = dict[str, str]


# ---------------------------------------------------------------- The stamp, and the place of .venv


def wanted(stamp: Stamp, command: str) -> Stamp:
    """Return the stamp that this command requires. The tests' packages stay once they are installed."""
    sources = [jvm.source_folder(which) for which in jvm.DEFAULT_SETS]
    want = {
        "packages": digest([BOOTSTRAP, RUN], salt=str(ROOT)),  # a virtual environment cannot be moved
        "jars": digest([source / name for source in sources for name in ("ivy.xml", "jars.sha256")]),
    }
    if IS_CHECKOUT and (command == "test" or "test" in stamp):
        want["test"] = digest([TEST])
    return want


def digest(paths: Sequence[Path], salt: str = "") -> str:
    total = hashlib.sha256(salt.encode())
    for path in paths:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def stamp_in(venv: Path) -> Stamp:
    """Return the stamp of a finished preparation; empty if there is none or its Python has gone."""
    try:
        stamp = json.loads((venv / STAMP_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(stamp, dict) and all(os.access(venv / "bin" / name, os.X_OK) for name in ("python", "uv"))
    return stamp if whole else {}


def place_of_venv(root: Path) -> Path:
    """Return .venv in the checkout. For an installed program, and if we can't write there, as in /opt for all users,
    and it is not already complete, return a folder in our own cache."""
    own = root / ".venv"
    with suppress(OSError, HarnessError):  # an incomplete copy or no home folder: a later error names it
        is_ours = IS_CHECKOUT and os.access(own if own.exists() else root, os.W_OK)
        if not is_ours and not wanted({}, "").items() <= stamp_in(own).items():
            return cache_folder() / f"venv-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}"
    return own


VENV = place_of_venv(ROOT)
VENV_PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
STAMP = VENV / STAMP_NAME
FETCHED = VENV / "install-cache"  # on the same disk, so that files are linked and not copied
LOG = VENV.with_name(f"{VENV.name}.log")
JARS_LOG = VENV.with_name(f"{VENV.name}.jars.log")
LOCK = VENV.resolve().with_name(f"{VENV.name}.lock")  # resolved, since checkouts may share a .venv through links


def read_stamp() -> Stamp:
    return stamp_in(VENV)


# ---------------------------------------------------------------- The steps


def main(arguments: list[str]) -> int:
    return ended(arguments, lambda: _prepared(arguments), NOTHING_LOST)


def _prepared(arguments: list[str]) -> int:
    try:
        stamp = read_stamp()
        if is_question(arguments) and "packages" not in stamp:
            return answer_without_packages(arguments)
        if not is_question(arguments) and not is_ready(stamp, arguments):
            prepare(arguments)
        hand_over(arguments)
    except OSError as error:
        raise HarnessError(
            f"Preparing failed: {error}. Make sure that {VENV.parent} can be written and has "
            f"{ROOM_NEEDED / 1e9:.1f} GB free."
        ) from error


def hand_over(arguments: Sequence[str]) -> NoReturn:
    """Become the real program. -E and -P: neither PYTHONPATH nor the current folder may supply another `harness`."""
    os.execv(VENV_PYTHON, [str(VENV_PYTHON), "-E", "-P", "-m", "harness", *arguments])


# ---------------------------------------------------------------- Commands that need no installation


def is_question(arguments: Sequence[str]) -> bool:
    """Return whether the command is help, version or completion: these install nothing."""
    return COMPLETING in os.environ or not QUESTIONS.isdisjoint(own_words(arguments))


def answer_without_packages(arguments: Sequence[str]) -> int:
    """Answer help and version before the first installation."""
    if not HELP.isdisjoint(own_words(arguments)):
        print(first_help((ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")))
    elif COMPLETING not in os.environ:
        print(f"streamgauge {__version__}")
    return Exit.PASS


def first_help(reference: str) -> str:
    """List the commands from the tables of docs/reference/commands.md."""
    rows = [line.strip("| ").split(" | ", 1) for line in reference.splitlines() if line.startswith("| [`")]
    told = [f"  {_plain(command)}\n{_indented(_plain(does))}" for command, does in rows]
    return "\n".join(["Usage: streamgauge COMMAND [FLAGS]\n", *told, "", INSTALLED_LATER])


def _indented(text: str) -> str:
    return textwrap.fill(text, 79, initial_indent=INDENT, subsequent_indent=INDENT)


def _plain(markdown: str) -> str:
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "")


# ---------------------------------------------------------------- Is it ready


def write_stamp(stamp: Stamp) -> None:
    part = STAMP.with_suffix(".part")
    with part.open("w", encoding="utf-8") as stream:
        json.dump(stamp, stream)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(STAMP)


def is_ready(stamp: Stamp, arguments: Sequence[str]) -> bool:
    want = wanted(stamp, command_of(arguments))
    if not needs_java(arguments):
        del want["jars"]  # else even "ls" on a machine without Java would require them
    return all(stamp.get(part) == value for part, value in want.items())


def needs_java(arguments: Sequence[str]) -> bool:
    options = {argument.split("=", 1)[0] for argument in arguments}
    return command_of(arguments) in JAVA_COMMANDS and not options & (PERHAPS_WITHOUT_JAVA | QUESTIONS)


# ---------------------------------------------------------------- Preparing


def prepare(arguments: Sequence[str]) -> None:
    """Bring .venv and the jars to the required state."""
    command, java_matters = command_of(arguments), needs_java(arguments)
    if command == "test" and not os.access(ROOT, os.W_OK):
        raise UsageError(f"The tests write into {ROOT}, which is not yours to write. Take a copy that is yours.")
    if command == "doctor":
        tell_first_findings()
    no_java = why_no_java()
    if no_java and java_matters:  # fail now, not after a minute of installing
        raise HarnessError(no_java)
    with only_one() as lock:
        stamp = read_stamp()
        want = wanted(stamp, command)
        first_time = "packages" not in stamp
        jars_wanted = stamp.get("jars") != want["jars"] and (first_time or java_matters) and not no_java
        jars = [jars_step()] if jars_wanted else []
        if any(stamp.get(part) != want.get(part) for part in ("packages", "test")):
            failed = install(first_time, want, jars, lock)
            stamp = want | {"jars": stamp.get("jars", "none yet")}
            write_stamp(stamp)
        else:
            failed = fetch_jars(jars, lock)
        if jars and not failed:
            write_stamp(stamp | {"jars": want["jars"]})
    if failed and java_matters:
        raise failed[0]
    for error in failed:
        tell(f"Going on without the JVM artifacts, which this command does not need. {error}")


def tell_first_findings() -> None:
    """Report the checks that need no package; the command itself will report the rest."""
    from harness.install import doctor

    for finding in doctor.before_installation(VENV.parent):
        tell(doctor.as_line(finding))


def why_no_java() -> str:
    """Return "" if a usable Java exists, else the sentence that explains why not."""
    try:
        jvm.java()
    except HarnessError as error:
        return str(error)
    return ""


@contextmanager
def only_one() -> Iterator[TextIO]:
    """The kernel frees the lock with its last holder: this process or the installer that inherits it."""
    try:
        LOCK.parent.mkdir(parents=True, exist_ok=True)
        lock = LOCK.open("a", encoding="utf-8")
    except OSError as error:
        raise HarnessError(
            f"The first use makes a folder {VENV.name} in {VENV.parent}, but nothing can be written there: "
            f"{error.strerror}. Use a copy of the project that is yours, or set XDG_CACHE_HOME to a folder that is."
        ) from error
    with lock:
        if not _try_to_lock(lock):
            with Progress(f"another streamgauge is preparing {VENV.name}; waiting for it") as progress:
                while not _try_to_lock(lock):
                    progress.tick()
                    time.sleep(0.2)
        yield lock


def _try_to_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def install(anew: bool, want: Stamp, others: Sequence[Step], lock: TextIO) -> list[StepError]:
    """Make or update .venv, and run other steps beside its longest one; return their errors. Without a stamp the
    content of .venv is unknown, so it is made anew.
    """
    STAMP.unlink(missing_ok=True)
    LOG.write_text("")
    with _keeping_what_was_fetched():
        if anew:
            make_environment(lock)
        return run_side_by_side([packages_step(anew, "test" in want), *others], lock)


@contextmanager
def _keeping_what_was_fetched() -> Iterator[None]:
    """Delete the installers' cache at the end. It stays for the next try if this one was stopped, or did not reach the
    index. After another failure it goes, because it may hold the cause."""
    try:
        yield
    except StepError as error:
        if not error.passing:
            shutil.rmtree(FETCHED, ignore_errors=True)
        raise
    shutil.rmtree(FETCHED, ignore_errors=True)


def make_environment(lock: TextIO) -> None:
    """Make an environment with the installer, the build tools, and the path to the checkout."""
    if not IS_CHECKOUT:
        tell(f"The program gets an environment of its own, in {VENV}.")
    elif VENV.parent != ROOT:
        tell(f"{ROOT} is not yours to write, so its packages go to {VENV}.")
    needed, free = ROOM_NEEDED - size_below(FETCHED), shutil.disk_usage(VENV.parent).free
    if free < needed:
        raise HarnessError(
            f"The first installation needs {needed / 1e9:.1f} GB for a while on the disk of {VENV.parent}, and "
            f"{free / 1e9:.1f} GB are free. Free some space and start the same command again."
        )
    _clear(VENV)
    # The real interpreter: an environment or a link that leads to it today may change later.
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    version = ".".join(str(part) for part in sys.version_info[:3])
    without_pip = ["--without-pip"] if bundled_pip() else []
    command = [base, "-I", "-m", "venv", *without_pip, str(VENV)]
    run_step(f"making {VENV.name} with Python {version}", command, lock, LOG)
    pip = [*pip_command(VENV_PYTHON), "install", "--no-input", "--no-compile", "--retries", "3"]
    command = [*pip, "--cache-dir", str(FETCHED / "pip"), "--require-hashes", "--only-binary", ":all:"]
    run_step("fetching the installer", [*command, "-r", str(BOOTSTRAP)], lock, LOG)
    # Every Python of .venv finds the checkout, from any current folder and with any PYTHONPATH.
    for site in VENV.glob("lib/python*/site-packages"):
        (site / "streamgauge.pth").write_text(f"{ROOT}\n", encoding="utf-8")


def _clear(venv: Path) -> None:
    """Remove the content of an environment except what was fetched for it."""
    for path in list(venv.iterdir()) if venv.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            if path != FETCHED:
                shutil.rmtree(path)
        else:
            path.unlink()


def packages_step(anew: bool, with_tests: bool) -> Step:
    what = "installing the packages (Spark alone is 450 MB)" if anew else "bringing the packages up to date"
    command = [
        *(str(UV), "pip", "sync", "--python", str(VENV_PYTHON), "--cache-dir", str(FETCHED), "--require-hashes"),
        *BUILDING,
        *(str(path) for path in (BOOTSTRAP, RUN, *([TEST] if with_tests else []))),
    ]
    written = Part("packages", lambda: Amount(size_below(FETCHED), ROOM_NEEDED if anew else 0))
    return Step(what, command, LOG, index_settings(VENV_PYTHON), written)


def jars_step() -> Step:
    """Return the step that fetches the JVM artifacts. The Ivy that it needs comes with the packages, which may be
    installed at the same time."""
    JARS_LOG.write_text("")
    command = [str(VENV_PYTHON), "-E", "-P", "-m", "harness.install.jvm", f"--ivy-below={FETCHED}"]
    fetched = Part("jars", lambda: jvm.amount(jvm.DEFAULT_SETS))
    return Step("fetching the JVM artifacts", command, JARS_LOG, part=fetched)


def fetch_jars(steps: Sequence[Step], lock: TextIO) -> list[StepError]:
    """Fetch the JVM artifacts alone. Return the error of a failure, as `install` does."""
    try:
        return run_side_by_side(steps, lock) if steps else []
    except StepError as error:
        return [error]
