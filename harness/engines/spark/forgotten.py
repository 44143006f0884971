"""Batches that a checkpoint has lost because it was edited while the engine was down.

Spark itself never takes a batch back: it only purges the oldest files. A job that has finished its files replaces them
by Kafka in the newest plan (workloads/jobs/spark_history.py), which loses no batch either. So any other file that is
missing or changed when the engine is restarted belongs to a batch that ran and is now unknown. Its results are still
written, so the copies of its plan are set apart, in a folder per start:

    forgotten/2/offsets/4    batch 4 was planned like this, and start 2 no longer had the plan
    forgotten/2/commits/4    and it had been committed
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.engines.spark.checkpoint import Planned, gone_over, numbers, parse
from harness.model import EarlierRun

FOLDER = "forgotten"


def set_apart(live: Path, copies: Path, start: int) -> None:
    """Call before start number `start`: a copied file that is gone no longer describes the checkpoint."""
    apart = copies / FOLDER / str(start)
    for folder in ("offsets", "commits"):
        there = numbers(live / folder)
        for batch in numbers(copies / folder):
            source, copy = live / folder / str(batch), copies / folder / str(batch)
            purged = bool(there) and batch < there[0]
            before, now = copy.read_bytes(), _content(source)
            if not (purged or now == before or (now and gone_over(before, now))):
                _keep_plan(copies, apart, batch)
                _move(copy, apart / folder / str(batch))
    if not (live / "metadata").exists():
        (copies / "metadata").unlink(missing_ok=True)


def earlier_runs(copies: Path, *, drops_late: bool, allow_multiple: bool) -> tuple[EarlierRun, ...]:
    """Return every run of a batch that a later start had lost, if its plan can be read."""
    return tuple(_earlier_runs(copies, drops_late, allow_multiple))


def _earlier_runs(copies: Path, drops_late: bool, allow_multiple: bool) -> Iterator[EarlierRun]:
    known = _Plans(copies)
    for start in known.starts:
        apart = copies / FOLDER / str(start)
        for batch in numbers(apart / "offsets"):
            plan, before = known.of(start, batch), known.of(start, batch - 1)
            rule = before if allow_multiple else plan
            if plan is None:
                continue
            yield EarlierRun(
                start,
                batch,
                starts=before.ends if before else {},
                ends=plan.ends,
                drop_watermark_ms=rule.watermark_ms if rule and drops_late else 0,
                committed=(apart / "commits" / str(batch)).exists(),
            )


class _Plans:
    """The plan of a batch before each start."""

    def __init__(self, copies: Path) -> None:
        self._copies = copies
        self.starts = numbers(copies / FOLDER)

    def of(self, start: int, batch: int) -> Planned | None:
        """A plan that was not set apart at that start was valid until a later one or to the end."""
        for path in self._places(start, batch):
            try:
                return parse(path)
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                return None
        return None

    def _places(self, start: int, batch: int) -> Iterator[Path]:
        for later in self.starts:
            if later >= start:
                yield self._copies / FOLDER / str(later) / "offsets" / str(batch)
        yield self._copies / "offsets" / str(batch)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _keep_plan(copies: Path, apart: Path, batch: int) -> None:
    """A batch that lost only its commit runs again by the same plan, but it also ran before."""
    plan, kept = _content(copies / "offsets" / str(batch)), apart / "offsets" / str(batch)
    if plan is not None and not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(plan)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
