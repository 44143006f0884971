"""`command`: a program of yours prints `campaign,window,count` lines, so that a table or a database can be judged.

It is run whenever somebody looks, which is too dear for latency: there is none for such an engine.
"""

from __future__ import annotations

import subprocess

from harness.engines.process import argv_of
from harness.model import HarnessError
from harness.observe import Row
from harness.results.base import HASH, Place, Results, window_start

DEADLINE_S = 120.0
SHOWN = 300


class Command(Results):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._argv = argv_of(place.manifest, place.manifest.read, place.config)

    def rows(self) -> list[Row]:
        return [self._row(number, line) for number, line in enumerate(self._lines(), 1) if line.strip()]

    def snapshot(self) -> object:
        return self._lines()

    def _lines(self) -> list[str]:
        command = " ".join(self._argv)
        try:
            done = subprocess.run(
                self._argv,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=DEADLINE_S,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd=self._place.manifest.home,
            )
        except subprocess.TimeoutExpired:
            raise HarnessError(
                f"`{command}` was to print the results and did not end within {DEADLINE_S:.0f} s."
            ) from None
        self._place.log.write_text(done.stderr)
        if done.returncode:
            raise HarnessError(
                f"`{command}` was to print the results and ended with exit code {done.returncode}: "
                f"{done.stderr.strip()[-SHOWN:] or 'it said nothing'}"
            )
        return done.stdout.splitlines()

    def _row(self, number: int, line: str) -> Row:
        """A line that is no cell keeps its own name."""
        words = [word.strip() for word in line.split(",")]
        if len(words) != 3:
            return Row(f"line {number}", "", line[:80], "line")
        return Row(words[0], window_start(words[1], self._place), words[2], HASH)
