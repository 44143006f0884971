"""`command`: a program of yours prints `campaign,window,count` lines, so that a table or a database can be judged.

It is run whenever somebody looks, which is too dear for latency: there is none for such an engine.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from harness.engines import complaint
from harness.engines.process import argv_of
from harness.observe import HASH, NO_RESULT, Row, UnreadableError
from harness.results.base import Place, Results, window_start
from harness.services.owners import OWNER_VARIABLE, owner_mark

DEADLINE_S = 120.0


class Command(Results):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._argv = argv_of(place.manifest, place.manifest.read, place.config)
        self._command = " ".join(self._argv)

    def rows(self) -> list[Row]:
        return [row_of(number, line, self._place) for number, line in enumerate(self._lines(), 1) if line.strip()]

    def snapshot(self) -> object:
        return self._lines()

    def _lines(self) -> list[str]:
        code, out, errors = self._run()
        self._place.log.write_text(errors)
        if code:
            said = "; ".join(complaint.reason(errors.splitlines())) or "it said nothing"
            raise UnreadableError(f"`{self._command}` was to print the results and ended with exit code {code}: {said}")
        return out.split("\n")

    def _run(self) -> tuple[int, str, str]:
        """In a session of its own, so that what it starts ends with it."""
        try:
            child = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._place.manifest.home,
                env={**os.environ, **self._place.manifest.env, OWNER_VARIABLE: owner_mark()},
                start_new_session=True,
                encoding="utf-8",
                errors="backslashreplace",
            )
        except OSError as error:
            raise UnreadableError(
                f"`{self._command}` was to print the results and can't be started: {error.strerror}."
            ) from None
        with child:
            try:
                out, errors = child.communicate(timeout=DEADLINE_S)
            except subprocess.TimeoutExpired:
                raise UnreadableError(
                    f"`{self._command}` was to print the results and did not end within {DEADLINE_S:.0f} s."
                ) from None
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
        return child.returncode, out, errors


def row_of(number: int, line: str, place: Place) -> Row:
    """A line that is no cell keeps its own name. Spaces around a comma are part of no value."""
    words = [word.strip(" \t\r") for word in line.split(",")]
    if len(words) != 3:
        return Row(f"line {number}", "", line, NO_RESULT)
    return Row(words[0], window_start(words[1], place), words[2], HASH)
