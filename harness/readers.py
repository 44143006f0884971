"""A long log is read back by as many processes as there are cores: parsing is Python, and Python has one core.

The other readers are children with some of the partitions each; what they read lies in a file when they end in order.
Such a child is this module run as a program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import feather

from generators.tape import population_of
from harness import recount
from harness.engines.config import write_privately
from harness.model import HarnessError, KafkaAddress, TapeSpec
from harness.recount import Columns
from harness.services.children import Child, spawn
from harness.wait import wait_until

# A process with its imports costs as much as half a million records.
WORTH_IT = 2_000_000
# A reader that gets nothing for a minute gives up by itself, and says so.
DEADLINE_S = 3600.0
ROOT = Path(__file__).resolve().parent.parent


class Share(msgspec.Struct):
    """What one reader is asked for."""

    address: dict[str, Any]
    topic: str
    ends: dict[int, int]
    tape: TapeSpec


def read(address: KafkaAddress, topic: str, ends: Mapping[int, int], tape: TapeSpec, folder: Path) -> Columns:
    """As `recount.read`. `folder` is private: the address may hold secrets."""
    own, *others = shares(ends, (os.cpu_count() or 1) if sum(ends.values()) >= WORTH_IT else 1)
    readers = [
        _Reader(Share(msgspec.to_builtins(address), topic, share, tape), folder / f"reader-{number}")
        for number, share in enumerate(others)
    ]
    parts = [recount.read(address, topic, own, population_of(tape)), *(reader.columns() for reader in readers)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["partition"], kind="stable")  # within a partition they are in order
    return {name: column[order] for name, column in joined.items()}


def shares(ends: Mapping[int, int], readers: int) -> list[dict[int, int]]:
    """Whole partitions, the longest first, each to whoever has least; always one share, and none that is empty."""
    found: list[dict[int, int]] = [{} for _ in range(max(1, min(readers, len(ends))))]
    for partition, end in sorted(ends.items(), key=lambda place: -place[1]):
        least = min(found, key=lambda share: sum(share.values()))
        least[partition] = end
    return found


class _Reader:
    """Another process that reads its share."""

    def __init__(self, share: Share, place: Path) -> None:
        self._columns = place.with_suffix(".arrow")
        asked = place.with_suffix(".json")
        write_privately(asked, msgspec.json.encode(share).decode())
        argv = [sys.executable, "-m", "harness.readers", str(asked), str(self._columns)]
        self._child: Child = spawn(argv, name=place.name, log=place.with_suffix(".log"), cwd=ROOT)

    def columns(self) -> Columns:
        wait_until(
            lambda: not self._child.alive(),
            deadline_s=DEADLINE_S,
            what=f"{self._child.name} to have read its part of the log",
            state=self._child.last_words,
        )
        code, said = self._child.returncode(), self._child.last_words()
        self._child.kill_group()
        if code != 0:
            raise HarnessError(f"{self._child.name} ended with {code} and has not read its part of the log. {said}")
        table = feather.read_table(self._columns)
        self._columns.unlink()
        return {name: np.asarray(table.column(name).to_numpy()) for name in table.column_names}


def main(asked: str, into: str) -> None:
    share = msgspec.json.decode(Path(asked).read_bytes(), type=Share)
    address = msgspec.convert(share.address, KafkaAddress)
    columns = recount.read(address, share.topic, share.ends, population_of(share.tape))
    feather.write_feather(pa.table(columns), into, compression="uncompressed")


if __name__ == "__main__":
    main(*sys.argv[1:])
