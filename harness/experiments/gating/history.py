"""The history of gates that a user keeps: a line of JSON for each gate, in a file that only grows, or in a folder with
a file for each gate.

Lines that cannot be read are skipped and reported. A gate only adds a line and changes no other.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from io import RawIOBase
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harness.experiments.gating.gate import Answer
from harness.host import disk_space
from harness.judging.stored_run import StoredRun
from harness.model import HarnessError, Outcome, UsageError
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store, append
from harness.util.texts import printable, shown

SCHEMA = 1
PATTERN = "*.jsonl"
SHOWN = 60  # characters shown of a line that is no gate
COMMIT_LETTERS = 12
A_COMMIT = "a commit"
SEED = "seed"  # another seed makes other events of the same kind
FRAMEWORKS = ("pyspark", "apache-flink", "quixstreams")  # unknown for engines on a Python of the user's
# Figures also depend on these, so that a change of one begins a new series. A new kernel or patch version of Python is
# reported but begins none: hosted runners get one each week, and it affects base and head alike.
DECIDING = ("cpu", "cores", "java", "python", "streamgauge", "kafka")


@dataclass(frozen=True)
class Figure:
    """One metric of a gate: the head relative to the base, and the value of each."""

    metric: str
    unit: str
    ratio: float
    low: float
    high: float
    level: float
    error: float  # of the ratio's logarithm
    detectable: float
    answer: Answer
    base: float | None = None
    head: float | None = None
    declined: str = ""  # why it is withheld, whatever was measured


@dataclass(frozen=True)
class Stood:
    """The base or the head of a gate, and the verdict on its counts."""

    named: str
    verdict: Outcome
    commit: str = ""  # with "-dirty" if its files differed from that commit
    versions: Mapping[str, str] = field(default_factory=dict)  # of the frameworks it is built on, such as pyspark


@dataclass(frozen=True)
class Entry:
    """One gate."""

    at: Annotated[datetime, msgspec.Meta(tz=True)]
    engine: str  # the head's engine without its version, and its sink
    base: Stood
    head: Stood
    answer: Answer
    sentence: str
    threshold: float
    rounds: int
    burst_events: int  # 0: as many as fit
    round_events: int  # the real number
    flags: Mapping[str, Any]
    environment: Mapping[str, str]
    metrics: tuple[Figure, ...] = ()  # empty if a side counted wrong

    def figure(self, metric: str) -> Figure | None:
        return next((each for each in self.metrics if each.metric == metric), None)

    @property
    def commit(self) -> str:
        """The head's commit in short form."""
        commit, dirty, _ = self.head.commit.partition("-dirty")
        return commit[:COMMIT_LETTERS] + dirty

    @property
    def what(self) -> Mapping[str, str]:
        """All properties that have to be equal for two gates to belong to one series."""
        burst = f"{self.burst_events:,} events" if self.burst_events else "as it fits"
        own = {"engine": self.engine, "base": self._base, "burst": burst}
        own |= {name: str(value) for name, value in sorted(self.flags.items()) if name != SEED}
        own |= {name: self._environment(name) for name in DECIDING}
        own |= {f"{name} of the base": version for name, version in sorted(self.base.versions.items())}
        return own | dict(sorted(self.head.versions.items()))

    @property
    def _base(self) -> str:
        """The base's name. A commit hash differs in every gate, so it is replaced by "a commit"."""
        commit, named = self.base.commit, self.base.named
        return A_COMMIT if len(named) >= 7 and commit.startswith(named.lower()) else named

    def _environment(self, name: str) -> str:
        told = self.environment.get(name, "")
        return ".".join(told.split(".")[:2]) if name == "python" else told


@dataclass(frozen=True)
class PassedOver:
    """A line or a file that could not be read."""

    file: Path
    line: int  # 0: the whole file
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.file}, line {self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


@dataclass(frozen=True)
class Change:
    """A property that changed between two series."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before or 'unknown'} -> {self.after or 'unknown'}"


@dataclass(frozen=True)
class Series:
    """Gates that can be compared with each other, oldest first."""

    number: int  # from 1, in the order in which they began
    what: Mapping[str, str]
    entries: tuple[Entry, ...]
    changes: tuple[Change, ...]  # from the most similar earlier series


class NoHistoryError(UsageError):
    """An error about files without a single gate; `why` gives the reason for each file."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}. What `streamgauge gate --history FILE` writes is expected: one line of JSON per gate."
        )
        self.why = why


@dataclass(frozen=True)
class History:
    """All gates that could be read, oldest first."""

    entries: tuple[Entry, ...]
    passed_over: tuple[PassedOver, ...] = ()

    @cached_property
    def series(self) -> tuple[Series, ...]:
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(repr(entry.what), []).append(entry)
        made: list[Series] = []
        for number, entries in enumerate(found.values(), 1):
            what = entries[0].what
            made.append(Series(number, what, tuple(entries), _changes(what, made)))
        return tuple(made)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics, in the order of the newest gate that has them."""
        return tuple(dict.fromkeys(each.metric for entry in reversed(self.entries) for each in entry.metrics))


def _changes(what: Mapping[str, str], before: Iterable[Series]) -> tuple[Change, ...]:
    """Return the changes from the most similar earlier series; of several, from the newest."""
    differences = [_difference(each.what, what) for each in before]
    return min(reversed(differences), key=len, default=())


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    names = dict.fromkeys((*after, *before))
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple(Change(*pair) for pair in pairs if pair[1] != pair[2])


# ---------------------------------------------------------------- Facts about a gate


def environment_of(told: Mapping[str, Any]) -> dict[str, str]:
    """Describe a machine and its versions, by the names in DECIDING and some more."""
    granted = told.get("granted", {})
    quota = granted.get("quota", "none")
    cores = f"{granted.get('cores', '')}" + ("" if quota == "none" else f", quota {quota}")
    names = ("machine", "cpu", "kernel", "java", "python", "streamgauge")
    known = {name: str(told.get(name, "")) for name in names}
    return {**known, "cores": cores, "kafka": str(told.get("embedded kafka", ""))}


def versions_of(run: Store) -> dict[str, str]:
    """Return the versions of the frameworks that the engine of a side is built on."""
    try:
        environment: dict[str, Any] = run.read_json("environment.json")
        ours = StoredRun(run).manifest.command[:1] == ("{python}",)
    except MissingEvidence:
        return {}
    packages = environment.get("packages of the engine") or (environment.get("packages", {}) if ours else {})
    return {name: packages[name] for name in FRAMEWORKS if name in packages}


# ---------------------------------------------------------------- Writing


def is_folder(location: str) -> bool:
    """Return True for an existing folder, or a path that ends with a slash."""
    return location.endswith("/") or Path(location).is_dir()


def refuse_unwritable(option: str, location: str) -> None:
    path = Path(location).absolute()
    there = next(each for each in (path, *path.parents) if each.exists())
    if not os.access(there, os.W_OK) or (there != path and not there.is_dir()):
        raise UsageError(f"{option} {location} can't be written: {there} is no folder or file that you may write to.")


def refuse_unusable(location: str) -> None:
    """Refuse a path before a gate runs, if it can't be written or holds something other than a history."""
    refuse_unwritable("--history", location)
    path = Path(location)
    if path.exists() and (list(path.glob(PATTERN)) if path.is_dir() else path.stat().st_size):
        read(path)


def add(location: str, entry: Entry) -> Path:
    """Append one line, whole or not at all, and safe with concurrent writers.

    The content before it stays as it is; if that ends in half a line, this one begins on a line of its own.
    """
    path = Path(location)
    if is_folder(location):
        path /= f"{entry.at:%Y%m%d-%H%M%S}-{entry.head.commit[:COMMIT_LETTERS] or 'gate'}.jsonl"
    line = encoded(entry)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with disk_space.writing(path, len(line)), path.open("ab+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            append(file, line if _ends_whole(file) else b"\n" + line)
            os.fsync(file.fileno())
    except OSError as error:
        raise HarnessError(f"--history: {path} could not be written: {error.strerror}.") from error
    return path


def encoded(entry: Entry) -> bytes:
    """Encode a line. Foreign text, such as the name of a branch, is made safe to print on a terminal."""
    return msgspec.json.encode({"schema": SCHEMA, **_readable(msgspec.to_builtins(entry))}) + b"\n"


def _ends_whole(file: RawIOBase) -> bool:
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_readable(name): _readable(each) for name, each in value.items()}
    return [_readable(each) for each in value] if isinstance(value, list) else value


# ---------------------------------------------------------------- Reading


def read(path: Path) -> History:
    """Read a file, or all such files of a folder. The same gate in two files counts once."""
    files = sorted(path.glob(PATTERN)) if path.is_dir() else [path]
    if not files:
        raise UsageError(
            f"{path} holds no history: none of its files ends with .jsonl. `streamgauge gate --history {path}/` "
            "puts one there."
        )
    entries: dict[bytes, Entry] = {}
    passed_over: list[PassedOver] = []
    for file in files:
        found, wrong = _of(file)
        entries |= found
        passed_over += wrong if found else [PassedOver(file, 0, _no_history(wrong))]
    if not entries:
        raise NoHistoryError("; ".join(each.sentence for each in passed_over))
    return History(tuple(sorted(entries.values(), key=lambda each: each.at)), tuple(passed_over))


def _no_history(wrong: list[PassedOver]) -> str:
    """Return why a file has no gate."""
    return f"no line of it is a gate; line {wrong[0].line}: {wrong[0].why}" if wrong else "it is empty"


def _of(file: Path) -> tuple[dict[bytes, Entry], list[PassedOver]]:
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise UsageError(f"There is no {file}: `streamgauge gate --history {file}` makes it.") from None
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}.") from None
    found: dict[bytes, Entry] = {}
    wrong: list[PassedOver] = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                found[line.strip()] = _entry(line, f"{file}, line {number}")
        except (ValueError, RecursionError) as error:
            half = number == len(lines) and isinstance(error, msgspec.DecodeError)
            half = half and not isinstance(error, msgspec.ValidationError)  # a whole line, but no gate
            why = "it is cut off; the gate may have been killed" if half else _why(line, error)
            wrong.append(PassedOver(file, number, why))
    return found, wrong


def _entry(line: bytes, where: str) -> Entry:
    told = msgspec.json.decode(line, type=dict[str, Any])
    schema = told.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise UsageError(
            f"{where} was written in schema {schema}, this program reads {SCHEMA}. Use the streamgauge that wrote it, "
            "or a newer one."
        )
    if schema != SCHEMA:
        raise ValueError(f"it has schema {schema}, not {SCHEMA}")
    return msgspec.convert(_readable(told), Entry)


def _why(line: bytes, error: Exception) -> str:
    return f"{printable(str(error))}: {printable(shown(line.decode(errors='replace'), SHOWN))}"
