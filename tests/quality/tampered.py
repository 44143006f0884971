"""Stored runs of the fake engine that are wrong in one way each, and what can befall a file of a run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.judging import verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import Outcome
from harness.rundir.store import Store
from harness.selftest import cheat, stored
from harness.selftest.runs import fake_run

# What is wrong with a run -> the words of its verdict.
WRONG: Mapping[str, tuple[stored.Change, str]] = {
    "one lost, one doubled": (stored.RESULTS["one lost and one doubled"], "masked"),
    "a count went back": (stored.SEEN_MEANWHILE["a count went back meanwhile"], "non-monotonic"),
    "a count came late": (stored.SEEN_MEANWHILE["a count came a minute after it was done"], "stale"),
    "a campaign too many": (stored.RESULTS["a campaign too many"], "phantom"),
}

Tamper = Callable[[Path], None]


def make(folder: Path) -> dict[str, Store]:
    """One run each, with digests as if it had left its files so."""
    _, honest = fake_run(folder, checksum=True, fault="kill@c3:batch=3")
    runs = {}
    for number, (name, (change, word)) in enumerate(WRONG.items()):
        runs[name] = copied(honest, folder / f"wrong-{number}")
        change(runs[name])
        with_digests(runs[name])
        verdict = judge(StoredRun(runs[name]))
        assert (verdict.outcome, verdict.words) == (Outcome.FAIL, (word,)), verdict.sentence
        verdict_file.keep(runs[name], verdict)
    return runs


def copied(store: Store, to: Path) -> Store:
    return Store(shutil.copytree(store.path, to))


def with_digests(store: Store) -> None:
    cheat.recompute_all(store)


def files_of(store: Store) -> list[str]:
    return sorted(path.name for path in store.path.iterdir() if path.is_file())


def tampers(path: Path) -> Iterator[tuple[str, Tamper]]:
    """What is tried on one file, each by its name."""
    yield "gone", Path.unlink
    yield "empty", partial(_write, b"")
    yield "half", partial(_write, path.read_bytes()[: path.stat().st_size // 2])
    yield "a folder", _into_folder
    for share in (0.0, 0.3, 0.6, 0.95):
        yield f"a byte flipped at {share:.0%}", partial(_flip, share)
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        yield "no rows", partial(_first, 0)
        yield "half of its rows", partial(_first, table.num_rows // 2)
        for name in table.column_names:
            yield f"without {name}", partial(_drop, name)
            for value in ("x", None, 7.5):
                yield f"{name} all {value!r}", partial(_fill, name, value)
    if path.suffix == ".json":
        for content in (b"null", b"[]", b"{}", b"7", b'"x"', b"[" * 100_000):
            yield f"only {content[:6]!r}", partial(_write, content)


def _write(content: bytes, file: Path) -> None:
    file.write_bytes(content)


def _into_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _flip(share: float, file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[int(share * (len(content) - 1))] ^= 0x55
    file.write_bytes(bytes(content))


def _first(rows: int, file: Path) -> None:
    pq.write_table(pq.read_table(file).slice(0, rows), file)


def _drop(name: str, file: Path) -> None:
    pq.write_table(pq.read_table(file).drop_columns(name), file)


def _fill(name: str, value: object, file: Path) -> None:
    table = pq.read_table(file)
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, pa.array([value] * table.num_rows)), file)
