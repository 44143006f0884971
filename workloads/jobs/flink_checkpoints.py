"""Reads Flink's checkpoints: the newest complete one, and its offsets in the topic.

Each start is a separate job to Flink, with a folder of its own; the numbers of checkpoints continue from start to
start. A savepoint also has such a number. It contains no absolute paths, so that it can be moved to the checkpoints.
Flink would also commit offsets to Kafka, but when no events come that takes ten seconds or more.
"""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from pathlib import Path

METADATA = "_metadata"  # Flink writes it last
NUMBER = struct.Struct(">iiq")  # its head: a magic number, the version of the format, the number of the checkpoint
SAVEPOINTS = "savepoints"
NO_END = struct.pack(">q", -(2**63))  # of a partition without an end


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete folder `<job>/chk-<number>`."""
    complete = [metadata.parent for metadata in folder.glob(f"*/chk-*/{METADATA}")]
    return max(complete, key=number_of, default=None)


def number_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("chk-"))


def kept(savepoint: Path) -> Path:
    """Move a savepoint to where `newest_checkpoint` finds it."""
    content = (savepoint / METADATA).read_bytes()
    *_, number = NUMBER.unpack_from(content)
    place = savepoint.with_name(SAVEPOINTS)
    place.mkdir(exist_ok=True)
    return savepoint.rename(place / f"chk-{number}")


def offsets_in(checkpoint: Path, topic: str) -> dict[int, int]:
    """Return the first offset of each partition that is not in the checkpoint. Empty if it was deleted, which happens
    when a newer one exists.

    A reader's state of a partition is its topic, its number, the next offset and the stopping offset, which is small
    enough to be stored within the metadata itself. Other places with the topic's name have no such stopping offset.
    """
    name = topic.encode()
    state = re.compile(re.escape(struct.pack(">H", len(name)) + name) + b"(.{4})(.{8})" + re.escape(NO_END), re.DOTALL)
    content = b""
    with suppress(FileNotFoundError):
        content = (checkpoint / METADATA).read_bytes()
    found = ((*struct.unpack(">i", part), *struct.unpack(">q", offset)) for part, offset in state.findall(content))
    return {partition: offset for partition, offset in found if offset >= 0}  # negative: the start is not yet known
