"""A load that is decided while it runs: segments are appended to the tape until the load is complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from generators import journal
from harness.load.fleet import Load
from harness.model import HarnessError, Segment, TapeSpec


class GrowingLoad(Load):
    """A load that can grow. Call `append` early enough for the fleet to read and generate the segment in time."""

    grows = True

    def append(self, segments: Sequence[Segment]) -> None:
        self.tape = appended(self.tape, segments)
        journal.append(self._folder, segments)

    def complete(self) -> None:
        journal.close(self._folder)


def appended(tape: TapeSpec, segments: Sequence[Segment]) -> TapeSpec:
    """Append segments to a tape. They must end on slice and probe boundaries and hold a whole number of events, so that
    appending moves no event."""
    for segment in segments:
        events = segment.duration_ms * (segment.start_per_s + segment.end_per_s) / 2000
        if events != int(events):
            raise HarnessError(f"A segment of an adaptive load must contain a whole number of events, not {events}.")
    grown = replace(tape, profile=(*tape.profile, *segments))
    for length_ms, what in ((tape.slice_ms, "slices"), (tape.probe_every_ms if tape.probes else 1, "probes")):
        if grown.load_ms % length_ms:
            raise HarnessError(
                f"A segment of an adaptive load ends at {grown.load_ms} ms, and {what} at {length_ms} ms."
            )
    return grown
