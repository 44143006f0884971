"""What Flink's checkpoints tell: which is the newest complete one, and how much of the topic lies before it.

Each start is a job of its own to Flink, with a folder of its own; the numbers of checkpoints go on from start to start.
A savepoint has such a number too. It holds no absolute paths, so that it can be moved to where checkpoints lie.
Flink would also commit offsets to Kafka, but when no events come that takes ten seconds or more.
"""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from pathlib import Path

METADATA = "_metadata"  # Flink writes it last
NUMBER = struct.Struct(">iiq")  # its beginning: a mark, the version of its format, the number of the checkpoint
SAVEPOINTS = "savepoints"
NO_END = struct.pack(">q", -(2**63))  # of a partition that is read for ever


def newest_checkpoint(folder: Path) -> Path | None:
    """Of `<job>/chk-<number>`."""
    complete = [metadata.parent for metadata in folder.glob(f"*/chk-*/{METADATA}")]
    return max(complete, key=number_of, default=None)


def number_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("chk-"))


def kept(savepoint: Path) -> Path:
    """The savepoint where `newest_checkpoint` finds it."""
    content = (savepoint / METADATA).read_bytes()
    *_, number = NUMBER.unpack_from(content)
    place = savepoint.with_name(SAVEPOINTS)
    place.mkdir(exist_ok=True)
    return savepoint.rename(place / f"chk-{number}")


def offsets_in(checkpoint: Path, topic: str) -> dict[int, int]:
    """Partition -> the first offset that is not in it. Nothing once it was deleted, which is when a newer one is there.

    A reader's state of a partition is its topic, its number, the next offset and the one to end at, and as little as
    that stands within the metadata itself. What else names the topic there has no such end.
    """
    name = topic.encode()
    state = re.compile(re.escape(struct.pack(">H", len(name)) + name) + b"(.{4})(.{8})" + re.escape(NO_END), re.DOTALL)
    content = b""
    with suppress(FileNotFoundError):
        content = (checkpoint / METADATA).read_bytes()
    found = ((*struct.unpack(">i", part), *struct.unpack(">q", offset)) for part, offset in state.findall(content))
    return {partition: offset for partition, offset in found if offset >= 0}  # below: where to begin is not yet known
