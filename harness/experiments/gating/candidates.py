"""The candidates of a gate, as engines that can be started: an id, a path, or a commit of the user's repository.

A commit is checked out into a separate folder, which shares the objects of the user's repository but writes nothing
into it, so that there is nothing to clean up there, however the gate ends.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.engines import fake, shipped
from harness.engines import manifest as manifests
from harness.engines.process import argv_of
from harness.model import UsageError
from harness.services import owners

BUILD_DEADLINE_S = 1800
LAST_LINES = 15


@dataclass(frozen=True)
class Candidate:
    """The base or the head of a gate."""

    named: str  # as it was typed
    engine: str  # an id, or the path of a manifest or a job; for a commit: the path in its repository
    sink: str = ""  # "": the first one of the engine
    commit: str = ""  # "": no commit was named
    top: Path = Path()  # the top folder of the commit's repository


def look_up(text: str, engine: str, workload: str) -> Candidate:
    """Find the candidate that a text names. `engine` is the path of the manifest in a commit. `workload` decides the
    sinks that may be named.
    """
    if _is_engine(text):
        return Candidate(text, text)
    name, _, sink = text.rpartition("/")
    if _is_engine(name) and sink in {each.name for each in manifests.load(name, workload).sinks}:
        return Candidate(text, name, sink)
    top = _git(Path.cwd(), "rev-parse", "--show-toplevel")
    commit = top and _git(Path(top), "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}")
    if not top or not commit:
        where = f"no commit of the repository {top}" if top else "no commit: this folder is in no repository"
        raise UsageError(
            f"{text!r} is neither an engine ({', '.join(shipped.IDS)}; {', '.join(shipped.IN_VERSIONS)}, "
            f"spark/SINK) nor the path of a manifest or a job, and {where}. A branch must be fetched first: CI "
            f"needs fetch-depth: 0."
        )
    if not engine:
        raise UsageError(f"{text!r} is a commit: give the path of the job's manifest in {top} with --engine PATH.")
    inside = _inside(Path(top), engine)
    if not _git(Path(top), "ls-tree", "--name-only", commit, str(inside)):
        raise UsageError(f"{text} has no {inside}: was it moved? --engine is a path in {top}.")
    return Candidate(text, str(inside), commit=commit, top=Path(top))


def commit_of(candidate: Candidate) -> str:
    """Return the commit of a candidate; for a path, the one that is checked out, with "-dirty" if files differ from it.

    "" stands for a candidate outside of any repository, such as a shipped engine.
    """
    if candidate.commit or _is_known(candidate.engine):
        return candidate.commit
    path = Path(candidate.engine).expanduser()
    folder = path if path.is_dir() else path.parent
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    is_dirty = commit and _git(folder, "--no-optional-locks", "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if is_dirty else commit


@contextmanager
def made(candidate: Candidate, logs: Path, say: Callable[[str], None]) -> Iterator[str]:
    """Yield an engine that can be started. A commit is checked out and built for that."""
    if not candidate.commit:
        yield candidate.engine
        return
    with _checked_out(candidate.top, candidate.commit) as folder:
        path = folder / candidate.engine
        _build(path, candidate.named, logs, say)
        yield str(path)


def _is_engine(text: str) -> bool:
    path = Path(text).expanduser()
    return _is_known(text) or path.is_file() or (path / shipped.FILE).is_file()


def _is_known(text: str) -> bool:
    return text == fake.FAKE or ("/" not in text and text.partition("@")[0] in shipped.SHIPPED)


@contextmanager
def _checked_out(top: Path, commit: str) -> Iterator[Path]:
    checkout = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-gate-")))
    folder = checkout / top.name
    try:
        _must("git", "clone", "--quiet", "--shared", "--no-checkout", str(top), str(folder))
        _must("git", "-C", str(folder), "checkout", "--quiet", "--detach", commit)
        yield folder
    finally:
        owners.release_folder(checkout)


def _inside(top: Path, engine: str) -> Path:
    """Convert a path to one in the repository. It may be relative to the top folder or to the current one."""
    given = Path(engine).expanduser().resolve()
    return given.relative_to(top.resolve()) if given.exists() and given.is_relative_to(top.resolve()) else Path(engine)


def _build(path: Path, text: str, logs: Path, say: Callable[[str], None]) -> None:
    """Build with the command of the manifest, if it has one."""
    manifest = manifests.load(str(path))
    if not manifest.build:
        return
    argv = argv_of(manifest, manifest.build, path)
    say(f"building {text}: {' '.join(argv)}")
    log = logs / f"build-{len(list(logs.glob('build-*.log'))) + 1}.log"
    with log.open("wb") as out:
        code = subprocess.run(
            argv, cwd=manifest.home, stdout=out, stderr=subprocess.STDOUT, timeout=BUILD_DEADLINE_S, check=False
        ).returncode
    if code:
        last = "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
        raise UsageError(f"{text} does not build: {' '.join(argv)} ended with {code}. The end of {log}:\n{last}")


def _git(folder: Path, *words: str) -> str:
    """Return the output of git; "" if it fails or is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _must(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
