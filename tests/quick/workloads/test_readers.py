"""Distinct articles in windows of 60 and 28 slides: all ways to the answer agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from redis.client import Pipeline

from harness.evidence.observed import folded
from harness.selftest import readers as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.declared import events, in_cells, of_question
from harness.util.seeded_draws import Lane, between
from harness.util.toml_reader import MistakeError
from tests.quick.workloads.test_page_visits import Planned, Redis
from workloads.declared.declaration import load
from workloads.declared.draws import content
from workloads.declared.fields import time_path
from workloads.declared.oracle import Oracle
from workloads.declared.sample import relation, sample
from workloads.jobs.reads import MINUTE, WEEK, Reads, Sliding
from workloads.readers_distinct.jobs.reference import Readers
from workloads.registry import codec_of, oracle_of, results_of
from workloads.shipped import folder_of, shipped

WINDOWS = {planted.READERS: MINUTE, planted.WEEK: WEEK}


def by_panes(
    windows: Sliding, reader: np.ndarray, article: np.ndarray, read_at: np.ndarray
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return reads and articles of each reader and window. An article enters the windows that hold none of its earlier
    panes, and leaves with its last one: no window is looked at by itself, and no set is made.
    """
    slides = windows.length_ms // windows.slide_ms
    pane = read_at // windows.slide_ms
    first = int(pane.min()) - slides + 1
    width = int(pane.max()) - first + 2
    reads, articles = (np.zeros((int(reader.max()) + 1, width), dtype=np.int64) for _ in range(2))
    np.add.at(reads, (reader, pane - slides + 1 - first), 1)
    np.add.at(reads, (reader, pane + 1 - first), -1)
    known = np.unique(np.column_stack((reader, article, pane)), axis=0)
    same = (known[1:, :2] == known[:-1, :2]).all(axis=1)
    after_last = np.where(np.append(False, same), np.append(0, known[:-1, 2] + 1), 0)
    np.add.at(articles, (known[:, 0], np.maximum(known[:, 2] - slides + 1, after_last) - first), 1)
    np.add.at(articles, (known[:, 0], known[:, 2] + 1 - first), -1)
    reads, articles = reads.cumsum(axis=1), articles.cumsum(axis=1)
    cells = zip(*np.nonzero(reads), strict=True)
    return {(int(r), (int(w) + first) * windows.slide_ms): (int(reads[r, w]), int(articles[r, w])) for r, w in cells}


def agree_on(workload: str, count: int, span_ms: int, seed: int) -> None:
    """Compare the oracle with `by_panes` on events out of order, some of them twice."""
    declared = load(folder_of(workload), shipped=True)
    ids = np.append(np.arange(count), np.arange(count // 100))
    late_ms = between(Lane.of(seed, "late").at(np.arange(len(ids))), 0, 5_000)
    times_ms = EPOCH_MS + ids * span_ms // count - late_ms
    drawn = {**content(declared.fields, seed, Lane.of(seed, "drawn").at(ids)), time_path(declared.fields): times_ms}
    answer = Oracle(declared.question).answer(relation(declared, seed, drawn, ids))

    numbers = {group: number for number, (group,) in enumerate(declared.groups(seed))}
    columns = (answer.column(name).to_pylist() for name in ("reader", "opens", "reads", "articles"))
    found = {(numbers[reader], opens): (n, m) for reader, opens, n, m in zip(*columns, strict=True)}
    assert found == by_panes(WINDOWS[workload], drawn["reader"], drawn["article"], times_ms)
    assert any(articles < reads for reads, articles in found.values())


@pytest.mark.parametrize("workload", WINDOWS)
@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_agrees_with_a_second_way(workload, seed):
    agree_on(workload, 4_000, 180_000, seed)


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("workload", WINDOWS)
def test_the_oracle_agrees_with_a_second_way_on_a_million_events(workload):
    agree_on(workload, 1_000_000, 180_000, 1)


@pytest.mark.parametrize("workload", WINDOWS)
@pytest.mark.parametrize("seed", range(2))
def test_the_reference_job_says_what_the_oracle_says(workload, seed):
    spec = of_question(workload, shipped(workload).declaration)
    tape = replace(spec.tape, seed=seed)
    oracle, keys = oracle_of(replace(spec, tape=tape)), results_of(tape).keys
    sent = events(tape)
    job, redis = Readers(WINDOWS[workload]), Redis()
    for value in codec_of(tape).write(Planned(sent), EPOCH_MS):
        job.add(value)
    job.write(cast(Pipeline, redis))

    right = folded(oracle, in_cells(sent, oracle))
    codes = oracle.codes
    assert redis.hashes == {(keys[codes.key(cell)], codes.field(cell)): count for cell, count in right.items()}
    assert job.unusable == 0


@pytest.mark.parametrize("windows", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("seed", range(20))
def test_windows_that_are_over_can_be_forgotten(windows, seed):
    """A state that forgets at each of some watermarks holds the open windows that one without a memory limit holds."""
    lane = Lane.of(seed, "reads")
    articles = between(lane.at(np.arange(400)), 0, 8)
    times_ms = np.arange(400) * 500 - between(lane.at(np.arange(400, 800)), 0, 30_000)
    whole, kept, watermark_ms = Reads(windows), Reads(windows), -(10**9)
    for number, (article, read_at) in enumerate(zip(articles.tolist(), times_ms.tolist(), strict=True)):
        if read_at + windows.length_ms > watermark_ms:
            whole.add(str(article), windows.pane_of(read_at))
            kept.add(str(article), windows.pane_of(read_at))
        if number % 37 == 36:
            watermark_ms = int(times_ms[: number + 1].max()) - 10_000
            kept.forget(watermark_ms)

    for own, of_all in ((kept.reads, whole.reads), (kept.articles, whole.articles)):
        is_open = Counter({opens: n for opens, n in of_all.items() if opens + windows.length_ms > watermark_ms})
        assert {opens: n for opens, n in own.items() if opens in is_open} == is_open
    assert all(pane + windows.length_ms > watermark_ms - 37 * 500 for panes in kept.panes.values() for pane in panes)


def test_records_that_are_no_reads_are_left_out():
    job = Readers(MINUTE)
    for value in (None, b"", b"not an event", b'{"r', b'{"reader": 7, "article": "a", "read_at": 1}'):
        job.add(value)

    assert (job.unusable, dict(job.of)) == (5, {})


@pytest.mark.parametrize("workload", WINDOWS)
@pytest.mark.parametrize("slide_ms", ["9000", "0", "-1000", "168000"])
def test_a_slide_that_does_not_divide_the_window_is_refused(tmp_path: Path, workload: str, slide_ms: str):
    windows = WINDOWS[workload]
    text = (folder_of(workload) / "workload.toml").read_text()
    text = text.replace(f"{windows.length_ms}, {windows.slide_ms})", f"{windows.length_ms}, {slide_ms})")
    (tmp_path / "workload.toml").write_text(text.replace(f'id = "{workload}"', 'id = "own"'))
    declared = load(tmp_path)
    _, given = sample(declared)

    with pytest.raises(
        MistakeError, match=f"windows of {windows.length_ms} ms that slide by {slide_ms} ms; expected is a slide"
    ):
        Oracle(declared.question).cells(given)
