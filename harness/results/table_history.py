"""Tables with a history of their own: a version appears with a file, and stays readable when newer ones have come.

A poll takes every version since the poll before, with the time at which it could be read first. So it misses nothing
that stood between two polls. The time is when the version's file got its name, by the file system (`ctime`, on the same
machine), and never outside of the two polls that it lies between.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.results.base import ResultLocation, Version
from harness.results.table_files import UNREAD, FileTable
from harness.util.clock import Clock


class CommitFile(NamedTuple):
    """A version, and the file whose appearance made it the newest one."""

    number: int
    path: Path


class TableWithHistory(FileTable):
    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._listed: object = UNREAD  # the newest version that a poll has listed; None: there was no table
        self._listed_us = self._newest_us = 0  # when that poll began; the time of that version
        self._pending: deque[tuple[CommitFile, int]] = deque()

    @abstractmethod
    def commits(self, after: int | None) -> Sequence[CommitFile] | None:
        """Return the versions after this one, or all, in order; None if the table has lost this one."""

    @abstractmethod
    def load(self, commit: CommitFile) -> None:
        """Let `files` return those of this version."""

    @abstractmethod
    def described(self, commit: CommitFile) -> tuple[str, str]:
        """Return the name of the loaded version, and which program wrote it."""

    def versions(self) -> Iterator[Version]:
        self._list()
        while self._pending:
            commit, at_us = self._pending.popleft()  # also if it can't be read: the next poll goes on with the next one
            yield self.reading(partial(self._version, commit, at_us))
        if self._listed in (UNREAD, None) or self._seen != self._listed:
            self.rows()
            self._listed = self._seen
        yield Version(self._rows)

    def _list(self) -> None:
        began_us = self._location.clock.now_us()
        if isinstance(self._listed, int | None):
            found = self.commits(self._listed)
            self._listed = UNREAD if found is None else self._listed
            for commit in found or ():
                self._pending.append((commit, self._dated(commit)))
                self._listed = commit.number
        self._listed_us = began_us

    def _dated(self, commit: CommitFile) -> int:
        """Return when a version could be read first: after the poll before had listed the table, and before now."""
        earliest_us = max(self._listed_us, self._newest_us + 1)
        self._newest_us = max(appeared_us(commit.path, self._location.clock), earliest_us)
        return self._newest_us

    def _version(self, commit: CommitFile, at_us: int) -> Version:
        self.load(commit)
        self.take(commit.number)
        return Version(self._rows, at_us, *self.described(commit))


def appeared_us(path: Path, clock: Clock) -> int:
    """Return when a file got its name, by the run's clock. If it is gone again, that was until now."""
    try:
        age_us = (time.time_ns() - path.stat().st_ctime_ns) // 1000
    except OSError:
        age_us = 0
    return clock.now_us() - max(0, age_us)
