"""Lies in real tables, read by their own readers while they come, and judged: each is found under its right name.

`selftest` plants its bugs without a store. What a table can hold beside counts, only a table can show.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from harness.evidence.observed import Glitch, Watched
from harness.judging.judge import conclude
from harness.model import KafkaAddress, SqlAddress
from harness.results.base import ResultLocation
from harness.results.redis_scan import interpret
from harness.results.registry import open_results
from harness.results.sampler import PlainObserver
from harness.selftest.by_hand import CODES, EPOCH_MS, FIRST, HONEST, SPEC, WINDOW_MS, case
from harness.selftest.report import words_of
from harness.services import postgresql
from harness.services.postgresql import EmbeddedPostgres
from harness.util.clock import Clock
from harness.util.wait import wait_until
from tests.quick.cases import ANY
from tests.services.made_tables import Made, MadeDelta, MadeIceberg, MadeParquet, MadeSql, readers_of
from workloads.registry import results_of

pytestmark = pytest.mark.thorough
KEYS = results_of(SPEC.tape).keys
STANDS_S = 0.5
LATER_MS = 40_000  # after the load start: all events were sent


@dataclass
class Watching:
    """A table that a real observer polls. Its clock says that the load has just ended."""

    table: Made
    sums: bool = True

    @property
    def keeps_history(self) -> bool:
        return isinstance(self.table, MadeDelta | MadeIceberg)

    def start(self) -> None:
        zero_ns = (EPOCH_MS + LATER_MS) * 1_000_000 - time.monotonic_ns()
        address = getattr(self.table, "address", None)
        manifest = replace(ANY, results=self.table.results)
        place = ResultLocation(
            None, KafkaAddress(""), "", KEYS, {}, WINDOW_MS, WINDOW_MS, 0, manifest, Path(), Path(), Clock(zero_ns)
        )
        self.place = replace(place, folder=self.table.folder, sql=address, manifest=replace(manifest, sums=self.sums))
        observer = open_results(self.place).observer(SPEC.tape)
        assert isinstance(observer, PlainObserver)
        self.observer = observer
        observer.start()

    def polled(self) -> None:
        """Wait until a poll that begins now is over."""
        polls = self.observer._recorder._looks_us
        before = len(polls)
        wait_until(lambda: len(polls) > before + 1, deadline_s=60, what="two polls")

    def verdict(self) -> tuple[str, list[str]]:
        """Judge the table, and return the words with the details of their witnesses."""
        sampled = self.observer.stop()
        store = open_results(self.place)
        held = interpret(store.rows(), {key: number for number, key in enumerate(KEYS)}, CODES, ())
        store.close()
        columns = {name: column.astype("int64") for name, column in sampled.columns.items()}
        glitches = [
            Glitch(name, text, from_us, until_us or None)
            for kind, _, name, text, from_us, until_us in zip(*sampled.glitches.values(), strict=True)
            if kind == "unreadable"
        ]
        watched = Watched(
            columns["at_us"],
            CODES.of(columns["campaign"], columns["window_ms"]),
            columns["count"],
            longest_gap_ms=sampled.looks.period_max_ms,
            unreadable=tuple(glitches),
            versions=dict(zip(sampled.versions["at_us"], sampled.versions["version"], strict=True)),
        )
        assert sampled.looks.errors == 0, sampled.looks.first_error
        verdict = conclude(case(observed=held, watched=watched, told=()))
        bad = [check for check in verdict.checks if check.outcome.value != "PASS"]
        return words_of(verdict), [witness.detail for check in bad for witness in check.witnesses]


@pytest.fixture(scope="module", autouse=True)
def readers():
    with readers_of("spark-delta", "spark-iceberg", "spark-postgresql", "spark-parquet"):
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory, readers):
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgresql"), "public")
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=[MadeDelta, MadeIceberg, MadeParquet, MadeSql], ids=lambda made: made.results.partition(":")[0])
def watching(request, tmp_path) -> Iterator[Watching]:
    found = Watching(request.param(tmp_path))
    if isinstance(found.table, MadeSql):
        found.table.address = SqlAddress(request.getfixturevalue("server").address.url, "streamgauge_lies")
        postgresql.make_schema(found.table.address)
    yield found
    if isinstance(found.table, MadeSql):
        assert postgresql.drop_schema(found.table.address) == ""


def right(count_type: pa.DataType | None = None) -> pa.Table:
    """Return the rows of an honest job."""
    counts = HONEST.log_ledger
    rows = {
        "campaign": [KEYS[CODES.key(cell)] for cell in counts],
        "opens": [CODES.field(cell) for cell in counts],
        "count": [*counts.values()],
    }
    table = pa.table(rows)
    return table if count_type is None else table.set_column(2, "count", table["count"].cast(count_type))


def one(count: object, campaign: str | None = KEYS[CODES.key(FIRST)], as_type: pa.DataType | None = None) -> pa.Table:
    columns = {
        "campaign": pa.array([campaign], pa.string()),
        "opens": pa.array([CODES.field(FIRST)], pa.int64()),
        "count": pa.array([count], as_type or pa.int64()),
    }
    return pa.table(columns)


def for_a_while(rows: pa.Table) -> Callable[[Watching], None]:
    def lie(watching: Watching) -> None:
        watching.table.add(right())
        watching.polled()
        watching.table.add(rows)
        time.sleep(STANDS_S)
        if not watching.keeps_history:
            watching.polled()  # which takes longer than that on a busy machine
        watching.table.take_back()

    return lie


def at_once(*parts: pa.Table) -> Callable[[Watching], None]:
    def lie(watching: Watching) -> None:
        for each in parts:
            watching.table.add(each)

    return lie


DECIMAL = pa.decimal128(20, 1)
FIRST_ROWS = HONEST.log_ledger.count(FIRST)
LIES = {
    "honest": (at_once(right()), "PASS"),
    "a row twice": (at_once(right(), right().slice(0, 1)), "FAIL duplicated"),
    "a row gone": (at_once(right().slice(1)), "FAIL lost"),
    "too many for half a second": (for_a_while(one(500)), "FAIL early"),
    "too few for half a second": (for_a_while(one(-5)), "FAIL non-monotonic"),
    "NULL for half a second": (for_a_while(one(None)), "FAIL unreadable"),
    "an unknown campaign for half a second": (for_a_while(one(1, "nobody")), "PASS"),  # shorter than a rename may take
    "another job's rows": (at_once(right(), one(3), one(3, "nobody")), "FAIL duplicated, phantom"),
    "a column of another type": (at_once(right(pa.float64())), "FAIL lost, unreadable"),
    "a count that is NULL": (at_once(right(), one(None)), "FAIL lost, unreadable"),
    "a campaign that is NULL": (at_once(right(), one(3, None)), "FAIL unreadable"),
    "a decimal that is no whole number": (
        at_once(right(DECIMAL), one(Decimal("1.5"), as_type=DECIMAL)),
        "FAIL lost, unreadable",
    ),
    "decimals that are whole numbers": (at_once(right(DECIMAL)), "PASS"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_a_table_is_found_under_its_name(watching, lie):
    tell, expected = LIES[lie]
    watching.start()
    watching.polled()
    tell(watching)
    words, details = watching.verdict()

    assert words == expected
    if watching.keeps_history and lie.endswith("half a second") and words != "PASS":
        assert any("(version " in detail or "(snapshot " in detail for detail in details)


def test_a_row_that_is_there_twice_without_sums_is_ambiguous(watching):
    watching.sums = False
    watching.start()
    at_once(right(), right().slice(0, 1))(watching)

    assert watching.verdict()[0] == "FAIL ambiguous"
