"""`command`: a program of the user prints `campaign,window,count` lines, so that a table or a database can be judged.

It runs once per poll, which is too slow to measure latency.
"""

from __future__ import annotations

import os
import shutil
from tempfile import TemporaryFile
from typing import IO

from harness.engines import complaint
from harness.engines.process import argv_of
from harness.results.base import ResultLocation, ResultStore, window_start
from harness.results.redis_scan import HASH, NO_RESULT, Row, UnreadableError
from harness.services import program
from harness.services.children import KILL_DEADLINE_S
from harness.services.owners import OWNER_VARIABLE, owner_mark
from harness.util.wait import DeadlinePassed, wait_until

DEADLINE_S = 120.0


class Command(ResultStore):
    form = "command"
    looks_for = "lines of campaign,window,count"
    prints = "the command printed lines such as"
    when_empty = "the command that reads the results printed no line"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._argv = argv_of(location.manifest, location.manifest.read, location.config)
        self._command = " ".join(self._argv)

    def rows(self) -> list[Row]:
        return [row_of(number, line, self._location) for number, line in enumerate(self._lines(), 1) if line.strip()]

    def snapshot(self) -> object:
        return self._lines()

    def _lines(self) -> list[str]:
        code, out, errors = self._run()
        self._location.log.write_text(errors)
        if code:
            said = "; ".join(complaint.reason(errors.splitlines())) or "it printed nothing"
            raise UnreadableError(f"`{self._command}` must print the results, but ended with exit code {code}: {said}")
        return out.split("\n")

    def _run(self) -> tuple[int, str, str]:
        """Run the command under a supervisor of its own, which ends all its processes with it.

        Output goes to files, because a process that it leaves behind may keep a pipe open.
        """
        environment = {**os.environ, **self._location.manifest.env, OWNER_VARIABLE: owner_mark()}
        path = shutil.which(self._argv[0], path=environment.get("PATH"))
        if path is None:
            raise UnreadableError(
                f"`{self._command}` must print the results, but that program does not exist. Correct "
                "the command in the manifest."
            )
        with TemporaryFile() as out, TemporaryFile() as errors:
            child = program.start(
                path, self._argv, stdout=out, stderr=errors, cwd=self._location.manifest.home, env=environment
            )
            try:
                wait_until(lambda: child.poll() is not None, deadline_s=DEADLINE_S, what="its end", every_s=0.01)
            except DeadlinePassed:
                raise UnreadableError(
                    f"`{self._command}` must print the results, but did not end within {DEADLINE_S:.0f} s."
                ) from None
            finally:
                child.end_all()
                wait_until(child.gone, deadline_s=KILL_DEADLINE_S, what=f"`{self._command}` to be gone", every_s=0.01)
            return child.poll() or 0, _text(out), _text(errors)


def row_of(number: int, line: str, location: ResultLocation) -> Row:
    """Parse a line. A line that is no cell becomes a row of its own. Spaces around a comma belong to no value."""
    words = [word.strip(" \t\r") for word in line.split(",")]
    if len(words) != 3:
        return Row(f"line {number}", "", line, NO_RESULT)
    return Row(words[0], window_start(words[1], location), words[2], HASH)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="backslashreplace").replace("\r\n", "\n").replace("\r", "\n")
