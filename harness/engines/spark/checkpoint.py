"""Reads a Spark checkpoint: the batch of each event, and the events that the batch had to drop as late.

The checkpoint is the only evidence that survives crashes (progress events are asynchronous and get lost). These rules
were found by reading the batch of every single event in runs with and without crashes:

- `offsets/N` is written before batch N, `commits/N` after its sink is done. An event belongs to the smallest N whose
  end (exclusive) is greater than its offset. Batches without data exist too, and move the watermark.
- Batch N drops an event iff its window's end <= `batchWatermarkMs` of `offsets/(N-1)` (0 for batch 0), as long as
  spark.sql.streaming.statefulOperator.allowMultiple is true, its default; of `offsets/N` itself when it is false.
- Spark purges old files, so copies are taken while it runs.
- A file source records in offsets/N its newest log entry, and in sources/K/ENTRY the files of each entry. If files are
  finished before Kafka begins, the newest plan is rewritten: it then holds Kafka's offsets, and the entries are moved
  to sources/files (workloads/jobs/spark_history.py).
- In Real-Time Mode `offsets/N` is written when batch N is over, just before `commits/N`; the rule is the same. A batch
  cut off by a crash leaves no plan, and a plan without its commit is discarded: the batch begins again where the last
  one ended, and ends somewhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.model import Batch, BatchLog, EarlierRun

TAKEN = "sources/files"  # of a query that has switched from files to Kafka
FOLDERS = ("offsets", "commits", "sources/0", "sources/1", TAKEN)
LOT = "logOffset"
FAR = 1 << 62  # beyond every offset
ALLOW_MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"


@dataclass(frozen=True)
class Planned:
    """The parsed content of offsets/N."""

    ends: dict[int, int]  # Kafka's end offsets
    watermark_ms: int
    at_ms: int | None = None  # current_timestamp() of the batch, also in a replay
    files: dict[int, int] = field(default_factory=dict)  # end offsets of the files
    begins: dict[int, int] = field(default_factory=dict)  # start offsets in Kafka of a query that reads both

    @property
    def done(self) -> dict[int, int]:
        """Return the processed ends. A query that reads both finishes the files before Kafka's part."""
        if not self.files or not self.ends:
            return self.ends or self.files
        behind = {p for p, begin in self.begins.items() if self.files.get(p, 0) < begin}
        return {p: self.files.get(p, 0) if p in behind else end for p, end in self.ends.items()}


def collect(checkpoint: Path, into: Path) -> None:
    """Copy every complete file that is new or rewritten. Torn, hidden and temporary files are skipped."""
    for source in _files(checkpoint):
        target = into / source.relative_to(checkpoint)
        try:
            written_ns = source.stat().st_mtime_ns
            if not target.exists() or target.stat().st_mtime_ns != written_ns:
                _copy(source.read_bytes(), target, written_ns)
        except FileNotFoundError:
            continue  # purged meanwhile: an earlier call has copied it, or the reader reports it missing


def planned(checkpoint: Path, batch: int) -> bytes | None:
    """Return the plan of a batch, byte for byte: a replay has to use the same one."""
    try:
        return (checkpoint / "offsets" / str(batch)).read_bytes()
    except OSError:
        return None


def committed(checkpoint: Path, batch: int) -> bool:
    return (checkpoint / "commits" / str(batch)).exists()


def newest_commit(checkpoint: Path) -> int:
    """Return the newest commit by listing the folder; -1 for none."""
    return max(numbers(checkpoint / "commits"), default=-1)


def newest_committed(checkpoint: Path, since: int = -1) -> tuple[int, dict[int, int]] | None:
    """Return the last batch that is durably done, and its end offsets; None if there is none or it can't be read.

    The search starts from a known commit: a run calls this many times a second, and the folders grow.
    """
    newest = since
    while committed(checkpoint, newest + 1):
        newest += 1
    try:
        return (newest, parse(checkpoint / "offsets" / str(newest)).done) if newest >= 0 else None
    except (OSError, ValueError):
        return None


def restart_offsets(checkpoint: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ends of the newest commit and of the newest plan, by partition; empty if they can't be read."""
    newest, plans = newest_commit(checkpoint), numbers(checkpoint / "offsets")
    try:
        restored, written = (parse(checkpoint / "offsets" / str(batch)).done for batch in (newest, plans[-1]))
    except (OSError, ValueError, IndexError):
        return (), ()
    return in_order(restored), in_order(written)


def in_order(ends: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(ends.get(partition, 0) for partition in range(max(ends, default=-1) + 1))


def open_batches(checkpoint: Path) -> set[int]:
    """Return planned and uncommitted batches, which a restart has to replay. Spark's order allows at most one."""
    offsets = numbers(checkpoint / "offsets")
    return {batch for batch in offsets[-1:] if not committed(checkpoint, batch)}


def cut_off(checkpoint: Path, start: int, partitions: int) -> EarlierRun:
    """Return the batch of Real-Time Mode that a restart repeats: it may have read any event after the last commit."""
    newest = newest_commit(checkpoint)
    try:
        last = parse(checkpoint / "offsets" / str(newest))
    except (OSError, ValueError):  # there is none yet, or a fault removed it
        last = Planned({}, 0)
    starts = dict.fromkeys(range(partitions), 0) | last.ends
    return EarlierRun(
        start, newest + 1, starts, dict.fromkeys(starts, FAR), drop_watermark_ms=last.watermark_ms, committed=False
    )


def read(
    checkpoint: Path, *, drops_late: bool, allow_multiple: bool = True, replayed: frozenset[int] = frozenset()
) -> BatchLog:
    """Return all batches of a checkpoint or a copy. `complete` is False if something is missing, which `note` names."""
    unusable: dict[str, list[int]] = {}  # what is wrong -> batches
    plans: dict[int, Planned] = {}
    for batch in numbers(checkpoint / "offsets"):
        try:
            plans[batch] = parse(checkpoint / "offsets" / str(batch))
        except (ValueError, OSError) as error:
            unusable.setdefault(str(error), []).append(batch)
    notes = [f"offsets/{_short(which)} can't be used: {error}." for error, which in unusable.items()]
    if plans or not unusable:
        notes += _gaps(plans, set(numbers(checkpoint / "commits")))
    batches = tuple(
        Batch(
            batch=number,
            ends=plan.ends,
            drop_watermark_ms=_drop_watermark_ms(plans, number if not allow_multiple else number - 1, drops_late),
            committed=committed(checkpoint, number),
            replayed=number in replayed,
            at_ms=plan.at_ms,
            files=plan.files,
        )
        for number, plan in sorted(plans.items())
    )
    return BatchLog(batches, drops_late, complete=not notes, note=" ".join(notes))


def _files(checkpoint: Path) -> Iterator[Path]:
    metadata = checkpoint / "metadata"
    if metadata.is_file():
        yield metadata
    for folder in FOLDERS:
        for number in numbers(checkpoint / folder):
            yield checkpoint / folder / str(number)


def numbers(folder: Path) -> list[int]:
    """List batch files, which have plain numbers as names; other files are hidden, temporary or not ours."""
    try:
        return sorted(int(each.name) for each in folder.iterdir() if each.name.isascii() and each.name.isdecimal())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _copy(content: bytes, target: Path, written_ns: int) -> None:
    if not _is_complete(content):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    half_done = target.with_name(f".{target.name}.tmp")
    half_done.write_bytes(content)
    os.utime(half_done, ns=(written_ns, written_ns))
    half_done.replace(target)


def _is_complete(content: bytes) -> bool:
    """Detect a torn file: every one of these files ends with a JSON object."""
    last_line = content.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        return isinstance(json.loads(last_line), dict)
    except ValueError:
        return False


def parse(path: Path) -> Planned:
    """Parse a file of offsets/. ValueError says what is wrong with it."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    if lines[0] != "v1":
        raise ValueError(f"its version is {lines[0][:20]!r}, and only 'v1' is known")
    if len(lines) < 3:
        raise ValueError("it has 0 sources")
    metadata, *told = map(json.loads, lines[1:])
    files = {number: source[LOT] for number, source in enumerate(told) if isinstance(source, dict) and LOT in source}
    topics = {number: source for number, source in enumerate(told) if number not in files}
    if len(files) > 1 or len(topics) > 1:
        raise ValueError(f"it has {len(told)} sources, but only one topic and one source of files are supported")
    sources = path.parent.parent / "sources"
    try:
        return Planned(
            _offsets(*topics.values()) if topics else {},
            int(metadata["batchWatermarkMs"]),
            metadata.get("batchTimestampMs"),
            files=_reach(sources, files),
            begins=_offsets(_last_line(sources / str(*topics) / "0")) if files and topics else {},
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it does not hold one topic's offsets and a batchWatermarkMs ({error!r})") from error


def gone_over(before: bytes, now: bytes) -> bool:
    """Return whether a plan has switched from files to Kafka and is otherwise unchanged."""
    *head, files = before.rstrip(b"\n").split(b"\n")
    *others, topic = now.rstrip(b"\n").split(b"\n")
    return head == others and LOT.encode() in files and LOT.encode() not in topic


def _offsets(source: Mapping[str, Mapping[str, int]]) -> dict[int, int]:
    [partitions] = source.values()
    return {int(partition): int(end) for partition, end in partitions.items()}


def _last_line(path: Path) -> Mapping[str, Mapping[str, int]]:
    *_, last = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    found: Mapping[str, Mapping[str, int]] = json.loads(last)
    return found


def _reach(sources: Path, lot: Mapping[int, int]) -> dict[int, int]:
    """Return the end offsets of a source's files up to this log entry; after a switch to Kafka, of all. File names are
    PARTITION-FIRST-END."""
    taken = sources / Path(TAKEN).name
    lots = numbers(taken)
    for number, newest in lot.items():
        taken, lots = taken if lots else sources / str(number), list(range(newest + 1))
    ends: dict[int, int] = {}
    for each in lots:
        _, *lines = (taken / str(each)).read_text(encoding="utf-8").split("\n")
        for line in filter(None, lines):
            partition, _, end = map(int, Path(json.loads(line)["path"]).name.partition(".")[0].split("-"))
            ends[partition] = max(ends.get(partition, 0), end)
    return ends


def _gaps(plans: dict[int, Planned], commits: set[int]) -> list[str]:
    if not plans:
        return ["There is no batch in it." if not commits else "All offsets are missing."]
    last = max(plans)
    notes = []
    if missing := [batch for batch in range(last) if batch not in plans]:
        notes.append(f"Missing offsets: {_short(missing)}.")
    # Only the newest batch may be open, since Spark plans a batch only after it committed the last one.
    if missing := [batch for batch in range(last) if batch not in commits]:
        notes.append(f"Missing commits: {_short(missing)}.")
    if beyond := sorted(commit for commit in commits if commit > last):
        notes.append(f"Commits without offsets: {_short(beyond)}.")
    return notes


def _short(batches: list[int]) -> str:
    shown = ", ".join(map(str, batches[:5]))
    return shown if len(batches) <= 5 else f"{shown} and {len(batches) - 5} more"


def _drop_watermark_ms(plans: dict[int, Planned], rule_batch: int, drops_late: bool) -> int:
    """0 drops nothing, as in batch 0 and in queries that keep all. `_gaps` reports a missing plan."""
    return plans[rule_batch].watermark_ms if drops_late and rule_batch in plans else 0
