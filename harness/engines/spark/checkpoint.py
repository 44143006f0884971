"""Reads a Spark checkpoint: which event was in which batch, and which events that batch had to drop as late.

The checkpoint is the only witness that survives crashes (progress events are asynchronous and get lost). Its rules,
found by reading the membership of every single event in runs with and without crashes:

- `offsets/N` is written before batch N, `commits/N` after its sink is done. An event belongs to the smallest N whose
  end (exclusive) is greater than its offset. Batches without data are there too, and move the watermark.
- Batch N drops an event iff its window's end <= `batchWatermarkMs` of `offsets/(N-1)` (0 for batch 0), as long as
  spark.sql.streaming.statefulOperator.allowMultiple is true, its default; of `offsets/N` itself when it is false.
- Spark purges old files, so that copies are taken while it runs.
- A source of files tells in offsets/N which of its own lots it has taken, and in sources/K/LOT which files each was.
  Where files are done before Kafka begins, the newest plan is rewritten: it then tells of Kafka, and the lots lie in
  sources/files (workloads/jobs/spark_history.py).
- In Real-Time Mode `offsets/N` is written when batch N is over, just before `commits/N`; the rule is the same. What a
  crash cuts off leaves no plan, and a plan without its commit is thrown away: the batch begins again where the last one
  ended, and ends somewhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.model import Batch, BatchLog, EarlierRun

TAKEN = "sources/files"  # of a query that has gone over to Kafka
FOLDERS = ("offsets", "commits", "sources/0", "sources/1", TAKEN)
LOT = "logOffset"
FAR = 1 << 62  # beyond every offset
ALLOW_MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"


@dataclass(frozen=True)
class Planned:
    """What offsets/N says."""

    ends: dict[int, int]  # of Kafka
    watermark_ms: int
    at_ms: int | None = None  # what current_timestamp() is in it, also when it is run again
    files: dict[int, int] = field(default_factory=dict)  # the same of files
    begins: dict[int, int] = field(default_factory=dict)  # of a query that reads both: where it begins in Kafka

    @property
    def done(self) -> dict[int, int]:
        """All below is done. Who reads both at once has not done Kafka's part before that of the files."""
        if not self.files or not self.ends:
            return self.ends or self.files
        behind = {p for p, begin in self.begins.items() if self.files.get(p, 0) < begin}
        return {p: self.files.get(p, 0) if p in behind else end for p, end in self.ends.items()}


def collect(checkpoint: Path, into: Path) -> None:
    """Copy every whole file that is new or was written anew. Torn, hidden and temporary ones wait or stay away."""
    for source in _files(checkpoint):
        target = into / source.relative_to(checkpoint)
        try:
            written_ns = source.stat().st_mtime_ns
            if not target.exists() or target.stat().st_mtime_ns != written_ns:
                _copy(source.read_bytes(), target, written_ns)
        except FileNotFoundError:
            continue  # purged while we looked: an earlier look has it, or the reader will say that it is missing


def planned(checkpoint: Path, batch: int) -> bytes | None:
    """The plan of a batch, byte for byte: a replay has to use the same one."""
    try:
        return (checkpoint / "offsets" / str(batch)).read_bytes()
    except OSError:
        return None


def committed(checkpoint: Path, batch: int) -> bool:
    return (checkpoint / "commits" / str(batch)).exists()


def newest_commit(checkpoint: Path) -> int:
    """By a look at the whole folder; -1 for none."""
    return max(numbers(checkpoint / "commits"), default=-1)


def newest_committed(checkpoint: Path, since: int = -1) -> tuple[int, dict[int, int]] | None:
    """The last batch that is durably done, and up to where it went; None while there is none or it can't be read.

    Looked for from a batch that is known to be done: a run asks many times a second, and the folders grow.
    """
    newest = since
    while committed(checkpoint, newest + 1):
        newest += 1
    try:
        return (newest, parse(checkpoint / "offsets" / str(newest)).done) if newest >= 0 else None
    except (OSError, ValueError):
        return None


def seam(checkpoint: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Up to where its newest commit went, and its newest plan, by partition; both empty where that can't be read."""
    newest, plans = newest_commit(checkpoint), numbers(checkpoint / "offsets")
    try:
        restored, written = (parse(checkpoint / "offsets" / str(batch)).done for batch in (newest, plans[-1]))
    except (OSError, ValueError, IndexError):
        return (), ()
    return in_order(restored), in_order(written)


def in_order(ends: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(ends.get(partition, 0) for partition in range(max(ends, default=-1) + 1))


def open_batches(checkpoint: Path) -> set[int]:
    """Planned and not committed: what a restart has to replay. At most one, by Spark's order of doing things."""
    offsets = numbers(checkpoint / "offsets")
    return {batch for batch in offsets[-1:] if not committed(checkpoint, batch)}


def cut_off(checkpoint: Path, start: int, partitions: int) -> EarlierRun:
    """The batch of Real-Time Mode that a restart begins anew: it may have had any event behind the last commit."""
    newest = newest_commit(checkpoint)
    try:
        last = parse(checkpoint / "offsets" / str(newest))
    except (OSError, ValueError):  # there is none yet, or a fault took it away
        last = Planned({}, 0)
    starts = dict.fromkeys(range(partitions), 0) | last.ends
    return EarlierRun(
        start, newest + 1, starts, dict.fromkeys(starts, FAR), drop_watermark_ms=last.watermark_ms, committed=False
    )


def read(
    checkpoint: Path, *, drops_late: bool, allow_multiple: bool = True, replayed: frozenset[int] = frozenset()
) -> BatchLog:
    """All batches of a checkpoint or of a copy of it. Where something is missing, `complete` is False and says what."""
    notes: list[str] = []
    plans: dict[int, Planned] = {}
    for batch in numbers(checkpoint / "offsets"):
        try:
            plans[batch] = parse(checkpoint / "offsets" / str(batch))
        except (ValueError, OSError) as error:
            notes.append(f"offsets/{batch} can't be used: {error}.")
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
    """Spark's batch files are named by plain numbers; all else there is hidden, temporary or not ours to read."""
    try:
        return sorted(int(each.name) for each in folder.iterdir() if each.name.isascii() and each.name.isdecimal())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _copy(content: bytes, target: Path, written_ns: int) -> None:
    if not _whole(content):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    half_done = target.with_name(f".{target.name}.tmp")
    half_done.write_bytes(content)
    os.utime(half_done, ns=(written_ns, written_ns))
    half_done.replace(target)


def _whole(content: bytes) -> bool:
    """Every one of these files ends with a JSON object, so that a torn one shows."""
    last_line = content.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        return isinstance(json.loads(last_line), dict)
    except ValueError:
        return False


def parse(path: Path) -> Planned:
    """A file of offsets/. ValueError says what is wrong with it."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    if lines[0] != "v1":
        raise ValueError(f"its version is {lines[0][:20]!r}, and only 'v1' is known")
    if len(lines) < 3:
        raise ValueError("it has 0 sources")
    metadata, *told = map(json.loads, lines[1:])
    files = {number: source[LOT] for number, source in enumerate(told) if isinstance(source, dict) and LOT in source}
    topics = {number: source for number, source in enumerate(told) if number not in files}
    if len(files) > 1 or len(topics) > 1:
        raise ValueError(f"it has {len(told)} sources, and one of files and one topic are known how to read")
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
    """Whether a plan tells of Kafka that told of files, and is the same in all else."""
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
    """How far the files of a source reach, up to this lot of them; all of them, of a query that has gone over to Kafka.
    Each is named PARTITION-FIRST-END."""
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
    # The newest batch may be open. No other one can, since Spark plans a batch only after it committed the last one.
    if missing := [batch for batch in range(last) if batch not in commits]:
        notes.append(f"Missing commits: {_short(missing)}.")
    if beyond := sorted(commit for commit in commits if commit > last):
        notes.append(f"Commits without offsets: {_short(beyond)}.")
    return notes


def _short(batches: list[int]) -> str:
    shown = ", ".join(map(str, batches[:5]))
    return shown if len(batches) <= 5 else f"{shown} and {len(batches) - 5} more"


def _drop_watermark_ms(plans: dict[int, Planned], rule_batch: int, drops_late: bool) -> int:
    """0 drops nothing: right for batch 0 and for queries that keep all. A missing plan has been noted by `_gaps`."""
    return plans[rule_batch].watermark_ms if drops_late and rule_batch in plans else 0
