"""A job as a batch: the topic from its beginning up to now, whenever it has grown."""

from __future__ import annotations

import json
import threading

from workloads.jobs import batches


def ran(folder, *lengths):
    """What was counted, of a topic that was so long at each look, and the numbers that the progress has."""
    told, looks, counted = threading.Event(), iter(lengths), []

    def ends_now():
        length = next(looks)
        if length == lengths[-1]:
            told.set()
        return {"0": length}

    batches.run(told, ends_now, lambda ends, batch: counted.append((batch, ends["0"])), str(folder / "progress.jsonl"))
    lines = (folder / "progress.jsonl").read_text(encoding="utf-8").splitlines()
    return counted, [(line["batch"], line["offsets"]["0"], line["rows"]) for line in map(json.loads, lines)]


def test_it_is_counted_when_it_has_grown_and_the_batch_that_has_begun_is_finished(tmp_path):
    counted, told = ran(tmp_path, 5, 5, 5, 8, 9)

    assert counted == [(0, 5), (1, 8), (2, 9)]
    assert told == [(0, 5, 5), (1, 8, 8), (2, 9, 9)]


def test_the_next_start_counts_all_anew_under_the_next_number(tmp_path):
    ran(tmp_path, 5)
    counted, told = ran(tmp_path, 5)

    assert counted == [(1, 5)]
    assert [number for number, *_ in told] == [0, 1]
