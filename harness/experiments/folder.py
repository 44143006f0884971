"""The directory of an experiment, which is many runs with one question. It holds the arguments, the results so far and
the runs, so that an interrupted experiment can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness import __version__
from harness.host import disk_space
from harness.model import HIDDEN, READABLE_SCHEMAS, SCHEMA_VERSION, WITH_SECRETS, Outcome, UsageError
from harness.rundir import markers
from harness.rundir.store import READABLE, Store, made_ms, new_folder
from harness.services import live_page
from harness.services.owners import owner_mark
from harness.terminal import console
from harness.terminal.command_end import UnderWay, under_way

T = TypeVar("T")
FILE = markers.EXPERIMENT
BEGUN, FINISHED = "begun", "finished"


@dataclass(frozen=True)
class Folder:
    """The directory of one experiment."""

    path: Path

    @classmethod
    def create(cls, base: Path, name: str) -> Folder:
        return cls(new_folder(base, name))

    @classmethod
    def open(cls, path: Path, *kinds: str) -> Folder:
        """Open an existing experiment. Refuse one of another kind than `kinds` (none: any), or of a newer program."""
        if not markers.is_one(path, FILE):
            raise markers.refusal(path, FILE)
        folder = cls(path)
        try:
            head = msgspec.json.decode((path / FILE).read_bytes())
        except msgspec.DecodeError as error:
            raise UsageError(f"{path / FILE} is torn ({error}); the experiment can't be resumed.") from None
        if head["schema"] not in READABLE_SCHEMAS:
            raise UsageError(
                f"{path} was written in schema {head['schema']}, this program reads {READABLE}. "
                "Use the version of streamgauge that made it."
            )
        if kinds and head.get("kind") not in kinds:
            raise UsageError(f"{path} is a {head.get('kind')}, but a {' or a '.join(kinds)} is expected.")
        return folder

    def refuse_hidden(self, keys: Mapping[str, Any]) -> None:
        """Refuse to resume if the address of a server was not stored completely."""
        hidden = [key for key in WITH_SECRETS if HIDDEN in keys.get(key, "")]
        if hidden:
            raise UsageError(
                f"{self.path} can't be resumed, because the password and the options in `{hidden[0]}` are not stored. "
                f"Start a new experiment; where each of them is written as ${{env:NAME}}, the address is kept."
            )

    def refuse_other_settings(self, stored: Mapping[str, Any], kind: type[Any]) -> None:
        """Refuse settings of another version: today's default would replace a missing one."""
        unlike = {each.name for each in fields(kind)} ^ set(stored)
        if unlike:
            raise UsageError(
                f"{self.path} was made by another version of streamgauge, whose settings differ in "
                f"{', '.join(sorted(unlike))}. Use the version that made it, or start a new experiment."
            )

    def refuse_other_version(self, apart: str, new: str) -> None:
        """Refuse to resume what another version began. `apart` says why results of both do not mix."""
        machine: dict[str, Any] = self.load("environment", dict[str, Any])
        made = machine.get("streamgauge")
        if made != __version__:
            raise UsageError(
                f"{self.path} was started with version {made} of streamgauge, and this is {__version__}. {apart} "
                f"Resume it with version {made}, or start a new {new}."
            )

    @property
    def begun(self) -> str:
        """The begin of the experiment; "" if its history does not have it."""
        begun_ms = made_ms(self.path)
        return "" if begun_ms is None else f"{datetime.fromtimestamp(begun_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"

    @property
    def kind(self) -> str:
        return self.load("kind", str)

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    def without_runs(self) -> str:
        """Return that there is no run yet; "" if there is one."""
        return "" if any(self.runs.glob("*")) else "no run had begun, so there is nothing to judge"

    def save(self, kind: str, **content: Any) -> None:
        """Store everything atomically: a kill leaves the old file or the new one."""
        part = self.path / f".{FILE}.part"
        value = {"schema": SCHEMA_VERSION, "kind": kind, **content}
        encoded = msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
        with disk_space.writing(self.path / FILE, len(encoded)):
            part.write_bytes(encoded)
            part.replace(self.path / FILE)

    @property
    def history(self) -> Store:
        """The history of the experiment, which has its begin and its end as that of a run does."""
        return Store(self.path)

    def finished(self, outcome: Outcome, sentence: str) -> None:
        self.history.tell(FINISHED, outcome=outcome, sentence=sentence)

    @contextmanager
    def going_on(self, next_step: str, instead: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Record the begin, or the resumption, and an early end. All runs within share one screen.

        `instead` returns another sentence if the next step would find nothing by then.
        """
        self.history.tell(BEGUN, owner=owner_mark())
        if url := live_page.watch(self.path):
            console.say(f"Live page: {url}")
        work = UnderWay(self.path, self.path, next_step, instead)
        with under_way(work, self.history.tell), console.progress():
            yield

    def holds(self, key: str) -> bool:
        return key in msgspec.json.decode((self.path / FILE).read_bytes())

    def load(self, key: str, kind: type[T] | Any) -> T:
        return msgspec.convert(msgspec.json.decode((self.path / FILE).read_bytes())[key], kind)

    def part(self, key: str, kind: type[T]) -> T:
        """Load a key of any experiment. A UsageError names a key that is missing or invalid."""
        try:
            return self.load(key, kind)
        except KeyError:
            raise UsageError(f"{self.path / FILE} holds no {key}; its page can't be made.") from None
        except msgspec.ValidationError as error:
            raise UsageError(f"{self.path / FILE} is invalid in its {key}: {error}.") from None
