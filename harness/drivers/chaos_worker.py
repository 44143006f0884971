"""One case of a chaos in a process of its own, so that others can run beside it.

    python -m harness.drivers.chaos_worker EXPERIMENT NUMBER BASELINE STATE FOLDER

NUMBER is the index of the case in the experiment, BASELINE the directory of its baseline run (or empty), FOLDER the
current folder of the command. The worker writes its progress, and finally its result, to the file STATE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from harness.drivers import chaos
from harness.drivers.parallel_cases import Told
from harness.experiments.chaos import ChaosCase
from harness.experiments.folder import Folder
from harness.model import Exit, UsageError
from harness.runner.run import JUDGE
from harness.services.kafka import FRUGAL
from harness.terminal.command_end import deafen, ended
from harness.terminal.screens import PlainScreen
from harness.util.replace_file import replace_file

EVERY_S = 1.0  # the command shows the newest line of each worker


class Teller(PlainScreen):
    """The screen of a worker: a file that another process may read at any time, so it is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        super().__init__(lambda line: self.say(line=line), EVERY_S)
        self._path, self._told = path, Told()

    def say(self, **news: Any) -> None:
        self._told = msgspec.structs.replace(self._told, **news)
        replace_file(self._path, msgspec.json.encode(self._told))

    def phase(self, name: str, waits_for: str = "") -> None:
        self._told = msgspec.structs.replace(self._told, closed=self._told.closed or name == JUDGE)
        super().phase(name, waits_for)

    @contextmanager
    def screens(self) -> Iterator[Teller]:
        yield self


def work(experiment: str, number: str, twin: str, told: str) -> int:
    opened, teller = Folder(Path(experiment)), Teller(Path(told))
    wanted: list[ChaosCase] = opened.load("wanted", list[ChaosCase])
    settings: dict[str, Any] = opened.load("settings", dict[str, Any])
    try:
        found = chaos.made(
            opened,
            settings,
            wanted[int(number)],
            Path(twin) if twin else None,
            screens=teller.screens,
            every_option=FRUGAL,
        )
        teller.say(ran=found)
    except UsageError as error:
        teller.say(refused=str(error))
        return Exit.USAGE
    return Exit.PASS


def main() -> None:
    *what, folder = sys.argv[1:]
    os.chdir(folder)
    code = ended([], lambda: work(*what))
    deafen()
    sys.exit(code)


if __name__ == "__main__":
    main()
