"""The reference job: one plain process that holds each read until the watermark has passed the end of its second.

    python reference.py CONFIG.json

The watermark is the newest time among all reads minus the allowed lateness, when everything that was in the log a
moment ago was read. A read whose second is over by then is late: it is dropped, counts nowhere, and is named in
late.jsonl. Each output names its record, so that after a crash the output topic shows what was emitted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from workloads.jobs.late_names import add_names, late_path
from workloads.jobs.run_config import Config
from workloads.jobs.waiting_process import Place, run
from workloads.readers_join.jobs.joined import Joined, Read, ends_of


class Event(msgspec.Struct):
    """The fields of an event that the question needs. A record without them is unusable."""

    reader: str
    article: str
    read_at: int


decode_event = msgspec.json.Decoder(Event).decode


class Waiting:
    """The reads of this start, those that left before it, and those that were dropped as late."""

    def __init__(self, out: set[Place], watermark_ms: int, late: Path) -> None:
        self._out, self._allowed_ms, self._late = out, watermark_ms, late
        self._late.touch()
        self._dropped = {tuple(json.loads(line)) for line in late.read_text(encoding="utf-8").split("\n") if line}
        self._joined = Joined()
        self._read: list[Read] = []  # since the last answers
        self._newest_ms = 0
        self.unusable = 0

    def add(self, place: Place, key: bytes | None, value: bytes | None) -> None:
        try:
            event, number = decode_event(value or b""), int(key or b"", 16)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            self.unusable += 1
            return
        self._read.append(Read(event.reader, event.article, event.read_at, number, place))
        self._newest_ms = max(self._newest_ms, event.read_at)

    def answered(self, *, idle: bool) -> list[bytes]:  # noqa: ARG002  (a pause of the load moves no watermark)
        """Return the outputs that are due, in order of event time."""
        self._accept()
        outputs = []
        for read, articles in self._joined.advance(self._newest_ms - self._allowed_ms):
            output = {
                "campaign": read.reader,
                "window": read.event,
                "output": {"articles": articles},
                "of": read.place,
            }
            outputs.append(json.dumps(output).encode())
        return outputs

    def done(self, read: Mapping[int, int]) -> dict[int, int]:
        """Return the offsets that were read: a waiting read comes again after a crash."""
        return dict(read)

    def _accept(self) -> None:
        """Count the reads that are not late, and drop the others. After a crash all reads come at once: those that left
        show how far the watermark had been.
        """
        for read in self._read:
            if read.place in self._out:
                self._joined.watermark_ms = max(self._joined.watermark_ms, ends_of(read.read_at))
        late = []
        for read in self._read:
            if read.place in self._out:
                self._out.remove(read.place)
                self._joined.add(read, waits=False)
            elif read.place in self._dropped:
                continue
            elif self._joined.is_over(read.read_at):
                late.append(read.place)
            else:
                self._joined.add(read)
        self._read.clear()
        add_names(self._late, late)


def made(out: set[Place], config: Config) -> Waiting:
    return Waiting(out, config["watermark_ms"], late_path(config))


if __name__ == "__main__":
    run(sys.argv[1], made)
