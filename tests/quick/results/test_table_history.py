"""The history of a table: versions with their own times, between two polls, and what they say of their writers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.judging.judge import conclude
from harness.model import Disorder, HarnessError, Segment, TapeSpec
from harness.results import delta, iceberg
from harness.results.redis_scan import UnreadableError
from harness.results.sampler import PlainObserver, Polled, Recorder
from harness.results.table_files import TableFile, words_of
from harness.results.table_history import CommitFile, TableWithHistory, appeared_us
from harness.selftest.by_hand import EPOCH_MS, FIRST, HONEST, seen
from harness.util.clock import Clock
from tests.quick.results.test_tables import location, written

TAPE = TapeSpec(1, (Segment(1000, 10.0, 10.0),), 1, 20, 2, campaigns=2, ads_per_campaign=1, disorder=Disorder())
SECOND_US = 1_000_000


class Folders(TableWithHistory):
    """A version is a file with a list of files."""

    form = "test:TABLE"

    def __init__(self, folder: Path) -> None:
        super().__init__(location(folder))
        self.now = 0

    def commits(self, after: int | None) -> Sequence[CommitFile] | None:
        found = sorted(CommitFile(int(path.stem), path) for path in self.path.glob("*.list"))
        if after is not None and after not in [each.number for each in found]:
            return None
        return [each for each in found if after is None or each.number > after]

    def load(self, commit: CommitFile) -> None:
        self.now = commit.number

    def version(self):
        found = self.commits(None)
        if not found:
            return None
        self.now = found[-1].number
        return self.now

    def files(self):
        for name in json.loads((self.path / f"{self.now}.list").read_text()):
            yield TableFile(str(self.path / name))

    def described(self, commit: CommitFile) -> tuple[str, str]:
        return f"version {commit.number}", "somebody"

    def commit(self, number: int, *names: str) -> None:
        self.path.mkdir(exist_ok=True)
        (self.path / f"{number}.list").write_text(json.dumps(names))


@pytest.fixture
def table(tmp_path) -> Folders:
    for number in (1, 2, 3):
        written(tmp_path, f"{number}.parquet", id=["a"], since=[0], views=[number])
    return Folders(tmp_path)


def values(table: Folders) -> list[str]:
    return [row.value for each in table.versions() for row in each.rows]


def test_each_version_since_the_poll_before_comes_once_and_the_present_rows_last(table):
    assert values(table) == []
    table.commit(0, "1.parquet")
    table.commit(1, "2.parquet")
    assert values(table) == ["1", "2", "2"]
    assert values(table) == ["2"]
    table.commit(2, "3.parquet")

    assert [each[1:] for each in table.versions()][-1] == (None, "", "")


def test_the_first_poll_takes_what_is_there_and_no_history(table):
    table.commit(0, "1.parquet")
    table.commit(1, "2.parquet")

    assert [(each.at_us, len(each.rows)) for each in table.versions()] == [(None, 1)]


def test_a_version_that_can_t_be_read_is_passed_over_once(table):
    assert values(table) == []
    for number, name in enumerate(("1.parquet", "gone.parquet", "3.parquet")):
        table.commit(number, name)
    found = table.versions()
    assert next(found).rows[0].value == "1"
    with pytest.raises(UnreadableError, match=r"gone\.parquet"):
        next(found)

    assert values(table) == ["3", "3"]


def test_the_newest_version_is_refused_as_long_as_it_can_t_be_read(table):
    assert values(table) == []
    table.commit(0, "gone.parquet")
    for _ in range(3):
        with pytest.raises(UnreadableError):
            values(table)


def test_a_version_is_dated_between_the_two_polls_whatever_the_file_system_says(table, monkeypatch):
    clock = table._location.clock
    assert values(table) == []
    for number, appeared in enumerate((0, clock.now_us() + 10 * SECOND_US)):
        table.commit(number, "1.parquet")
        monkeypatch.setattr(
            "harness.results.table_history.appeared_us",
            lambda _, to: min(appeared, to.now_us()),  # noqa: B023
        )
        begun_us = table._listed_us
        (version, _) = table.versions()
        assert begun_us <= (version.at_us or 0) <= clock.now_us()


def test_a_file_appears_by_the_runs_clock_and_never_in_the_future(tmp_path):
    (tmp_path / "x").touch()
    an_hour_ahead = Clock(Clock().zero_ns + 3600 * 10**9)
    apart_us = an_hour_ahead.now_us() - appeared_us(tmp_path / "x", an_hour_ahead)

    assert 0 <= apart_us < 3600 * SECOND_US
    assert appeared_us(tmp_path / "gone", an_hour_ahead) > appeared_us(tmp_path / "x", an_hour_ahead)


def test_a_version_is_no_poll_and_its_changes_have_its_time():
    recorder = Recorder((0,))
    recorder.record(5, [[]], began_us=4)
    recorder.version(10, [["0", "30"]], "version 1", "A")
    recorder.version(12, [["0", "3"]], "version 2", "")
    recorder.record(20, [["0", "3"]], began_us=19)
    found = recorder.sampled(1, 0.0)

    assert found.columns["at_us"].tolist() == found.columns["since_us"].tolist() == [10, 12]
    assert found.columns["count"].tolist() == [30, 3]
    assert (found.looks.scans, found.looks.period_max_ms) == (2, 0.015)
    assert found.versions == {"at_us": [10, 12], "version": ["version 1", "version 2"], "writer": ["A", ""]}


def test_what_was_read_before_an_error_stays(tmp_path):
    def poll(_):
        yield Polled([["0", "1"], []], set(), 7, "version 0")
        raise HarnessError("gone")

    observer = PlainObserver(poll, lambda: None, ["a", "b"], TAPE, Clock())
    with pytest.raises(HarnessError):
        observer._poll(full=True)

    assert observer._recorder.sampled(2, 0.0).columns["at_us"].tolist() == [7]
    assert observer.changed() is None


def test_witnesses_name_the_version_and_its_writer():
    at_us = EPOCH_MS * 1000 + 25 * SECOND_US
    watched = HONEST.watched
    assert watched
    late = replace(
        watched,
        at_us=np.append(watched.at_us, at_us),
        cell=np.append(watched.cell, FIRST),
        count=np.append(watched.count, HONEST.log_ledger.count(FIRST) + 1),
        versions={at_us: "version 7: WRITE by Spark, batch 3 of counts"},
    )
    verdict = conclude(seen({FIRST: 1}, watched=late))
    details = [witness.detail for check in verdict.checks if check.word == "duplicated" for witness in check.witnesses]

    assert details
    assert details[0].endswith("; too many from 25.0 s into the load (version 7: WRITE by Spark, batch 3 of counts)")


def test_a_commit_of_delta_says_who_wrote_it(tmp_path):
    commit = tmp_path / "0.json"
    lines: list[object] = [
        {"commitInfo": {"operation": "STREAMING UPDATE", "engineInfo": "Apache-Spark/4.2.0"}},
        {"txn": {"appId": "query", "version": 7}},
        {"add": {"path": "x"}},
    ]
    for kept, words in (
        (lines, "STREAMING UPDATE by Apache-Spark/4.2.0, batch 7 of query"),
        (lines[1:], "batch 7 of query"),
        (lines[2:], ""),
    ):
        commit.write_text("\n".join(map(json.dumps, kept)) + "\n")
        assert delta.writer_of(commit) == words


def test_a_snapshot_of_iceberg_says_who_wrote_it():
    batch = {"spark.sql.streaming.epochId": "7", "spark.sql.streaming.queryId": "query"}
    spark = {"engine-name": "spark", "engine-version": "4.1.3"}

    assert iceberg.writer_of("append", {**spark, **batch}) == "append by spark 4.1.3, batch 7 of query"
    assert iceberg.writer_of("overwrite", {}) == "overwrite"


def test_an_error_is_told_without_a_stack_an_input_or_an_address():
    stack = ValueError("Json error: bad\n   0: <unknown>\n   1: start_thread")
    pydantic = ValueError("1 error for X\n  Invalid JSON [type=json, input_value='secret']\n  For further information")

    assert words_of(stack) == "ValueError: Json error: bad"
    assert words_of(pydantic) == "ValueError: 1 error for X Invalid JSON"
    assert words_of(EOFError()) == "EOFError"
