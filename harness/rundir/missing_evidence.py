"""The error of a file of a run that is missing or can't be read, and what readers make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from harness.model import HarnessError, UsageError

T = TypeVar("T")


class MissingEvidence(Exception):  # noqa: N818  (it is what happened)
    """A file of the run is missing or can't be read. The text names the file and the consequence."""


def unless_missing(read: Callable[[], T]) -> T | None:
    """Return None if a file is missing, for a figure that can do without it."""
    try:
        return read()
    except MissingEvidence:
        return None


def from_files(what: str, read: Callable[[], T]) -> T:
    """Make a value from the files of a run. If damaged files raise any other error, raise MissingEvidence instead."""
    try:
        return read()
    except (MissingEvidence, UsageError, HarnessError):
        raise
    except Exception as error:
        raise MissingEvidence(
            f"{what} can't be written, because these files contradict each other: {type(error).__name__}: {error}"
        ) from error
