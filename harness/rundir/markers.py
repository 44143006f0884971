"""Recognise a folder as a run, as an experiment, or as foreign.

One marker file decides. Another program may have a file of that name; its folder is neither read nor removed.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.model import UsageError
from harness.util.suggest import is_file
from harness.util.texts import quoted

RUN, EXPERIMENT = "owner.json", "experiment.json"  # the marker files
CALLED = {RUN: "a run", EXPERIMENT: "an experiment"}
ADVICE = "`streamgauge ls` lists what is here."


def is_one(folder: Path, marker: str) -> bool:
    """Return True if the marker file has a schema.

    A torn or unreadable marker has none, but may be ours, so it counts too.
    """
    if not is_file(folder / marker):
        return False
    try:
        head = msgspec.json.decode((folder / marker).read_bytes())
    except (OSError, ValueError, RecursionError):
        return True
    return isinstance(head, dict) and "schema" in head


def refusal(path: Path, *wanted: str) -> UsageError:
    """Return the error for a folder that is none of the wanted kinds."""
    name = quoted(str(path))
    asked = " or ".join(CALLED[marker] for marker in wanted)
    others = [marker for marker in CALLED if marker not in wanted and is_one(path, marker)]
    foreign = [marker for marker in wanted if is_file(path / marker)]
    if not path.exists():
        return UsageError(f"{name} does not exist: the folder of {asked} is expected. {ADVICE}")
    if not path.is_dir():
        return UsageError(f"{name} is a file, and the folder of {asked} is expected. {ADVICE}")
    if others:
        inside = f" `streamgauge ls {path}` lists its runs." if EXPERIMENT in others else ""
        return UsageError(f"{name} is not {asked}: it is {CALLED[others[0]]}.{inside}")
    if foreign:
        return UsageError(f"{name} is not {asked} of streamgauge: its {foreign[0]} has no schema number. {ADVICE}")
    return UsageError(f"{name} is not {asked} of streamgauge: it has no {' or '.join(wanted)}. {ADVICE}")
