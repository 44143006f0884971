"""The checkpoint family: the engine is down, its checkpoint is edited, and it is started again.

The content of a batch is known from the copies that the run keeps (harness/engines/spark/forgotten.py); the proof of an
edit is the folder's state before the restart. An engine that stops loudly because of an edit gets its checkpoint back.
"""

from __future__ import annotations

import json
import shutil
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness.engines.spark.checkpoint import newest_commit, numbers, parse
from harness.faults.base import PROGRESS, Context, Fault, Kind
from harness.faults.downtime import QUIET, SLOW_MS, Downtime, down
from harness.faults.run_at_poll import Moment, done
from harness.faults.strike import CannotStrikeError, Idle, Strike, length_ms, need_more_to_do, struck_by
from harness.model import FaultSpec
from harness.services import small_disk

STATE_FILES = (".zip", ".changelog", ".delta", ".snapshot")
KEPT, OLD = ".kept", ".older"  # copies beside a checkpoint during a fault
TOLD = 4  # file names listed in a proof
BORNE = 3  # batches after which damaged state was surely read: RocksDB reads a block only on demand


class Edit(Downtime):
    """One edit of a checkpoint. `edit` makes it and returns a proof, which is checked against the folder."""

    def __init__(self, spec: FaultSpec, context: Context) -> None:
        super().__init__(spec, context)
        self._sink = context.claim.name
        self._proof = ""
        self._plan: bytes | None = None

    @abstractmethod
    def edit(self, folder: Path) -> str:
        """Make the edit and return the proof; "" if the folder does not look as it should."""

    def check(self, now: Moment) -> None:
        folder = now.engine.checkpoint
        if folder is None or not (folder / "offsets").is_dir():
            raise CannotStrikeError("there is no checkpoint on this machine")
        if newest_commit(folder) < 1:
            raise CannotStrikeError("the engine has not committed two batches yet")

    def deed(self, now: Moment) -> None:
        folder = _folder(now)
        copy(folder, _beside(folder, KEPT))
        self._proof = self.edit(folder)

    def proof(self, now: Moment) -> str:  # noqa: ARG002
        """Return the proof taken before the restart: later the engine may have written deleted files again."""
        return self._proof

    def undo(self, now: Moment) -> str:
        copy(_beside(_folder(now), KEPT), _folder(now))
        return "its old checkpoint was restored"

    def healed(self, now: Moment) -> str:
        words = super().healed(now)
        for copied in (KEPT, OLD) if words else ():
            shutil.rmtree(_beside(_folder(now), copied), ignore_errors=True)
        return words

    def effect(self, now: Moment) -> str:
        if self.batch is None:
            return ""
        plan = now.engine.planned(self.batch)
        self.replayed = True if plan == self._plan else None
        same = "by the very same plan" if self.replayed else f"with a new plan, {_grown(self._plan, plan)}"
        return f"batch {self.batch} was run again, {same}"

    def _is_about(self, folder: Path, batch: int) -> None:
        """Remember the batch that will run again."""
        self.batch, self._plan = batch, (folder / "offsets" / str(batch)).read_bytes()


class DeleteCommit(Edit):
    """Deletes the commit of the last batch with data, and all later plans, whose output is not written yet. Batches
    without data often follow it; without this rule the replay would often consist of these alone."""

    def edit(self, folder: Path) -> str:
        batch = last_data_batch(folder, newest_commit(folder))
        self._is_about(folder, batch)
        return remove(folder, _from("offsets", folder, batch + 1) + _from("commits", folder, batch))


class DeleteOffsets(Edit):
    """Deletes plan and commit of a batch: at a crash point the current one, else the last committed one with data."""

    def edit(self, folder: Path) -> str:
        written = self.reached is not None and self.reached.point != QUIET
        batch = self.reached.batch if self.reached and written else last_data_batch(folder, newest_commit(folder))
        self._is_about(folder, batch)
        return remove(folder, _from("offsets", folder, batch) + _from("commits", folder, batch))


class Gap(Edit):
    def edit(self, folder: Path) -> str:
        return remove(folder, [folder / "offsets" / str(numbers(folder / "offsets")[-2])])


class DeleteMetadata(Edit):
    def edit(self, folder: Path) -> str:
        return remove(folder, [folder / "metadata"])


class DeleteAll(Edit):
    def edit(self, folder: Path) -> str:
        files = sum(path.is_file() for path in folder.rglob("*"))
        for each in folder.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        left = [*folder.iterdir()]
        return "" if left else f"all {files} files of its checkpoint are gone"


class DamageState(Edit):
    """Damages one state file that the engine must load at its start, and deletes its checksum."""

    def __init__(
        self,
        spec: FaultSpec,
        context: Context,
        find: Callable[[Path, int], Path | None],
        change: Callable[[bytes], bytes],
    ) -> None:
        super().__init__(spec, context)
        self._find, self._change = find, change
        self._newest = -1

    def check(self, now: Moment) -> None:
        super().check(now)
        if not _state_files(_folder(now)):
            raise CannotStrikeError(f"sink {self._sink} keeps no state in its checkpoint")

    def borne(self, now: Moment) -> bool:
        """Require several good batches: one batch may not have read the damaged part of the state."""
        reached = now.progress.batch if now.progress else -1
        return self.went_on(now) and (reached >= self._newest + BORNE or done(now) >= now.total)

    def edit(self, folder: Path) -> str:
        self._newest = newest_commit(folder)
        if (path := self._find(folder, self._newest + 1)) is None:
            return ""
        before = path.read_bytes()
        path.write_bytes(self._change(before))
        _crc_of(path).unlink(missing_ok=True)
        return told_change(path.relative_to(folder), before, path.read_bytes())


class RestoreOlder(Edit):
    """Copies the checkpoint while the engine is held at a point, and puts the copy back some batches later."""

    def __init__(self, spec: FaultSpec, context: Context, batches: int) -> None:
        super().__init__(spec, context)
        self.land_within_ms += batches * SLOW_MS
        self._batches = batches
        self._copied = False

    def landed(self, now: Moment) -> str:
        reached = now.engine.reached()
        if self._copied or not reached:
            return super().landed(now)
        folder = _folder(now)
        copy(folder, _beside(folder, OLD))
        self._copied = True
        now.engine.disarm()
        now.engine.arm(QUIET, reached.batch + self._batches)
        return ""

    def edit(self, folder: Path) -> str:
        before = newest_commit(folder)
        copy(_beside(folder, OLD), folder)
        after = newest_commit(folder)
        self._is_about(folder, numbers(folder / "offsets")[-1])
        return f"its checkpoint had committed batch {before}; the restored copy ends at batch {after}"


class DiskFull(Strike):
    """Puts the checkpoint on a separate small disk, which is full for a while."""

    def __init__(self, context: Context, hold_ms: float) -> None:
        self.hold_ms = hold_ms
        self.heal_within_ms = context.manifest.ready_s * 1000 + 2 * SLOW_MS
        self._before = self._starts = 0

    def inject(self, now: Moment) -> str:
        if now.field is None or now.field.disk is None:
            raise CannotStrikeError("its checkpoint is not on a separate disk")
        need_more_to_do(now)
        self._starts = now.engine.starts
        return f"{now.field.disk.fill():,} bytes of ballast were written to the disk of its checkpoint"

    def landed(self, now: Moment) -> str:
        self._disk(now).fill()
        refusal = self._disk(now).refusal()
        return f"a write to it fails: {refusal}" if refusal else ""

    def holds(self, now: Moment, landed_ms: int) -> bool:
        """Fill again: files that the engine deletes would make space for its writes."""
        self._disk(now).fill()
        return super().holds(now, landed_ms)

    def heal(self, now: Moment) -> None:
        self._before = done(now)  # a batch in progress when the disk filled up may have been committed
        self._disk(now).free()

    def healed(self, now: Moment) -> str:
        went_on = done(now) > self._before or done(now) >= now.total
        if self._disk(now).refusal() or not now.engine.alive() or not went_on:
            return ""
        free = f"{self._disk(now).free_bytes():,} bytes are free again"
        times = now.engine.starts - self._starts
        stopped = f"the engine stopped and was restarted ({times} times)" if times else "the engine did not stop"
        return f"{free}; {stopped}; it went on from {self._before:,} to {done(now):,} records"

    def _disk(self, now: Moment) -> small_disk.SmallDisk:
        assert now.field is not None
        assert now.field.disk is not None
        return now.field.disk


def last_data_batch(folder: Path, newest: int) -> int:
    """Return the newest batch up to `newest` that read records."""
    for batch in range(newest, 0, -1):
        with suppress(OSError, ValueError):
            if parse(folder / "offsets" / str(batch)).done != parse(folder / "offsets" / str(batch - 1)).done:
                return batch
    return newest


def remove(folder: Path, paths: list[Path]) -> str:
    """Delete files with their hidden checksums, and return the names that are gone as the proof."""
    for path in paths:
        path.unlink(missing_ok=True)
        _crc_of(path).unlink(missing_ok=True)
    gone = [str(path.relative_to(folder)) for path in paths if not path.exists() and not _crc_of(path).exists()]
    if len(gone) < len(paths):
        return ""
    shown = ", ".join(gone[:TOLD]) + (f" and {len(gone) - TOLD} more" if len(gone) > TOLD else "")
    return f"gone, each with its .crc: {shown}; {_ends(folder, 'offsets')}, {_ends(folder, 'commits')}"


def version_file(folder: Path, version: int) -> Path | None:
    """Return the largest state file of that version, or of the nearest earlier one."""
    found = [(int(path.stem), path.stat().st_size, path) for path in _state_files(folder) if int(path.stem) <= version]
    return max(found)[2] if found else None


def data_file(folder: Path, version: int) -> Path | None:
    """Return the file with the state's values: for RocksDB its newest table."""
    newest = version_file(folder, version)
    if newest is None:
        return None
    tables = [path for path in newest.parent.glob("SSTs/*.sst") if path.stat().st_mtime <= newest.stat().st_mtime]
    return max(tables, key=lambda path: path.stat().st_mtime, default=newest)


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    """Flip one bit of the middle byte."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def told_change(name: Path, before: bytes, after: bytes) -> str:
    """Describe the change of a file; "" if nothing changed."""
    if len(after) < len(before):
        return f"{name} has {len(after):,} of its {len(before):,} bytes; its .crc is deleted"
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    if not changed:
        return ""
    at = changed[0]
    return (
        f"byte {at:,} of {len(after):,} in {name} is {after[at]:#04x} instead of {before[at]:#04x}; its .crc is deleted"
    )


def copy(source: Path, target: Path) -> None:
    """Copy a folder as it is, without files that are purged meanwhile."""
    shutil.rmtree(target, ignore_errors=True)
    for path in (source, *source.rglob("*")):
        place = target / path.relative_to(source)
        with suppress(FileNotFoundError):
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)


def _folder(now: Moment) -> Path:
    folder = now.engine.checkpoint
    assert folder is not None  # `check` has verified it
    return folder


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(folder.name + ending)


def _from(name: str, folder: Path, batch: int) -> list[Path]:
    return [folder / name / str(number) for number in numbers(folder / name) if number >= batch]


def _ends(folder: Path, name: str) -> str:
    there = numbers(folder / name)
    return f"{name}/ ends at {there[-1]}" if there else f"{name}/ is empty"


def _crc_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _state_files(folder: Path) -> list[Path]:
    found = (folder / "state").rglob("*")
    return [path for path in found if path.suffix in STATE_FILES and path.stem.isdecimal()]


def _grown(before: bytes | None, after: bytes | None) -> str:
    """Compare the record counts of two plans, if both can be parsed."""
    with suppress(ValueError, AttributeError, IndexError):
        old, new = (sum(_ends_of(plan)) for plan in (before or b"", after or b""))
        return f"up to {new:,} records instead of {old:,}"
    return "which can't be parsed"


def _ends_of(plan: bytes) -> list[int]:
    [partitions] = json.loads(plan.rstrip(b"\n").rpartition(b"\n")[2]).values()
    return [int(end) for end in partitions.values()]


def _edited(make: Callable[[FaultSpec, Context], Edit]) -> Callable[[FaultSpec, Context], Fault]:
    def fault(spec: FaultSpec, context: Context) -> Fault:
        missing = _no_files(context)
        return Idle(spec, missing) if missing else down(spec, make(spec, context), context)

    return fault


def _no_files(context: Context) -> tuple[str, ...]:
    manifest = context.manifest
    if manifest.evidence == "none" or manifest.simulated:
        return (f"{manifest.id} has no checkpoint in a format that this fault can edit",)
    return ()


def restore_older(spec: FaultSpec, context: Context) -> Fault:
    missing = _no_files(context)
    if QUIET not in context.claim.crash_points:
        missing = (*missing, f"sink {context.claim.name} can't be held at {QUIET}")
    strike = RestoreOlder(spec, context, int(spec.options["batches"]))
    return Idle(spec, missing) if missing else down(spec, strike, context)


def disk_full(spec: FaultSpec, context: Context) -> Fault:
    missing = list(_no_files(context))
    if context.spec.checkpoint:
        missing.append(f"its checkpoint is at {context.spec.checkpoint}, whose disk a run must not fill")
    if why := small_disk.impossible():
        missing.append(f"no small disk can be mounted here: {why}")
    strike = DiskFull(context, length_ms(spec))  # refuses wrong options even if the run can't have the fault
    return Idle(spec, tuple(missing)) if missing else struck_by(lambda *_: strike)(spec, context)


NEEDS = "a local checkpoint of Spark, and an engine that resumes"
LOUD = "stops loudly, and goes on when the checkpoint is restored"

KINDS = (
    Kind(
        "checkpoint-delete-commit",
        "while the engine is down, commits/N and its .crc are deleted; N is the last batch with data",
        "replays batch N with the same plan; no count changes",
        _edited(DeleteCommit),
        needs=NEEDS,
        moments=PROGRESS,
    ),
    Kind(
        "checkpoint-delete-offsets",
        "while the engine is down, offsets/N, commits/N and their .crc are deleted: batch N gets a new and larger plan",
        "detects it and stops loudly, or counts right nevertheless",
        _edited(DeleteOffsets),
        needs=NEEDS,
    ),
    Kind(
        "checkpoint-gap",
        "while the engine is down, the second newest file of offsets/ is deleted",
        LOUD,
        _edited(Gap),
        needs=NEEDS,
    ),
    Kind(
        "checkpoint-delete-metadata",
        "while the engine is down, the file with the id of its query is deleted",
        LOUD,
        _edited(DeleteMetadata),
        needs=NEEDS,
    ),
    Kind(
        "checkpoint-delete-all",
        "while the engine is down, its whole checkpoint is deleted: it starts from the beginning",
        "counts right only if it does not add to its earlier results",
        _edited(DeleteAll),
        needs=NEEDS,
    ),
    Kind(
        "checkpoint-truncate-state",
        "while the engine is down, the state file that it must load is truncated to half, and its .crc is deleted",
        LOUD,
        _edited(lambda spec, context: DamageState(spec, context, version_file, half)),
        needs=f"{NEEDS}; a sink with state",
    ),
    Kind(
        "checkpoint-flip-state",
        "while the engine is down, one bit of the values in the state that it must load is flipped, and its .crc is "
        "deleted",
        LOUD,
        _edited(lambda spec, context: DamageState(spec, context, data_file, flipped)),
        needs=f"{NEEDS}; a sink with state",
    ),
    Kind(
        "checkpoint-restore-older",
        "its checkpoint is copied; some batches later the copy is restored while the engine is down",
        "detects it, or replays the batches since then; no count changes",
        restore_older,
        needs=f"{NEEDS}; crash point c1",
        options={"batches": "3"},
        moments=PROGRESS,
    ),
    Kind(
        "checkpoint-disk-full",
        "its checkpoint is on a small separate disk, which is full for a while",
        "waits or stops loudly, and goes on when there is space again; no count changes",
        disk_full,
        needs="a local checkpoint of Spark, and the right to mount a tmpfs",
        options={"for": "5s"},
        own_disk="checkpoint",
    ),
)
