"""Every way of parsing that the Spark job may use gives exactly from_json's rows, whatever stands in a record."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.profiles import steady
from generators.tape import Tape
from harness.engines import environments
from harness.engines.manifest import load
from harness.model import TapeSpec
from tests.engines import parse_in_python
from tests.engines.odd import odd_records
from tests.engines.parse_in_python import make_session
from workloads.ad_impressions.codec import AdCodec
from workloads.ad_impressions.jobs import spark
from workloads.ad_impressions.jobs.spark_parse import BEST, PARSERS, textbook
from workloads.ad_impressions.jobs.spark_record import FIELDS, fields_of
from workloads.ad_impressions.schema import POISON_KINDS, Population, event_json

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("spark-parse")]  # one session for all of them

ROOT = Path(__file__).resolve().parents[2]

IN_PYTHON = "pandas"  # in the environment of the engine spark-pandas only
POPULATION = Population(1, 5, 10, carries_ids=False)
TIME_MS = 1_763_700_000_000
AD = POPULATION.ad_ids[0]
EVENT = event_json(
    user_id=POPULATION.user_ids[0],
    page_id=POPULATION.page_ids[0],
    ad_id=AD,
    ad_type="banner",
    event_type="view",
    event_time_ms=TIME_MS,
)
EXACT = sorted({*PARSERS} - {IN_PYTHON})


def changed(old: str, new: str | bytes) -> bytes:
    replacement = new.encode() if isinstance(new, str) else new
    assert old.encode() in EVENT, old
    return EVENT.replace(old.encode(), replacement)


VIEW, TIME = '"event_type": "view"', f'"event_time": "{TIME_MS}"'
CRAFTED: dict[str, bytes | None] = {
    "an escaped letter of the type": changed("view", "v\\u0069ew"),
    "a type of escapes only": changed("view", "\\u0076\\u0069\\u0065\\u0077"),
    "an escaped name": changed("event_type", "event\\u005ftype"),
    "an escaped ad": changed(AD, f"\\u{ord(AD[0]):04x}{AD[1:]}"),
    "an escaped slash": changed("1.2.3.4", "1.2.3.4\\/24"),
    "an escaped quote": changed("1.2.3.4", '\\", \\"event_type\\": \\"click'),
    "a wrong escape": changed("1.2.3.4", "\\x"),
    "a view that hides in another field": changed("view", "click").replace(b"banner", b"view"),
    "a field within a string": changed("1.2.3.4", "\\u0022, \\u0022ad_id\\u0022: \\u0022x"),
    "another order": b'{"event_time": "%d", "event_type": "view", "ad_id": "%s"}' % (TIME_MS, AD.encode()),
    "no spaces": EVENT.replace(b": ", b":").replace(b", ", b","),
    "many spaces": EVENT.replace(b": ", b" \t:\r\n  "),
    "a line's end behind it": EVENT + b"\n",
    "spaces around it": b"  " + EVENT + b"  ",
    "something behind it": EVENT + b" x",
    "two in one": EVENT + EVENT,
    "a mark of UTF-8 before it": b"\xef\xbb\xbf" + EVENT,
    "the ad twice": changed('"ad_type"', '"ad_id": "second", "ad_type"'),
    "the type twice, a view last": changed(VIEW, f'"event_type": "click", {VIEW}'),
    "the type twice, a view first": changed(VIEW, f'{VIEW}, "event_type": "click"'),
    "the time twice": changed(TIME, f'{TIME}, "event_time": "5"'),
    "a further field": changed("{", '{"more": {"event_type": "click", "ad_id": ["x"]}, '),
    "a further field at the end": changed("}", ', "event_type_": "click"}'),
    "the type within an object": changed(VIEW, f'"inner": {{{VIEW}}}'),
    "a type that is an object": changed('"view"', '{"view": "view"}'),
    "a type that is a list": changed('"view"', '["view"]'),
    "a type without quotes": changed('"view"', "view"),
    "single quotes": EVENT.replace(b'"', b"'"),
    "another case": changed("view", "View"),
    "another case of the name": changed("event_type", "Event_Type"),
    "a longer word": changed("view", "viewed"),
    "a time that is a number": changed(f'"{TIME_MS}"', str(TIME_MS)),
    "a time of null": changed(f'"{TIME_MS}"', "null"),
    "an ad of null": changed(f'"{AD}"', "null"),
    "a type of null": changed('"view"', "null"),
    "an empty ad": changed(AD, ""),
    "a control character": changed("1.2.3.4", "\x01"),
    "a line's end within": changed("banner", "ban\nner"),
    "a tabulator in the ad": changed(AD, "\t" + AD[1:]),
    "a null character": changed("banner", "\x00"),
    "umlauts": changed("banner", "Übergröße \U0001f600"),
    "umlauts in the ad": changed(AD, "Ä" + AD[1:]),
    "broken UTF-8 before the quote": changed("banner", b"\xe2\x82"),
    "broken UTF-8 in the ad": changed(AD, b"\xff" + AD[1:].encode()),
    "broken UTF-8 in the type": changed("view", b"view\xff"),
    "an unfinished quote": changed('1.2.3.4"', "1.2.3.4"),
    "a quote too many": changed("banner", 'ban"ner'),
    "nothing but the mark of a match": b'#%s"%d' % (AD.encode(), TIME_MS),
    "a match behind a brace": b'{#%s"%d' % (AD.encode(), TIME_MS),
    "a list of it": b"[" + EVENT + b"]",
    "an empty object": b"{}",
    "only spaces": b"   ",
    **{name: record for name, record, _ in odd_records(AD, TIME_MS)},
}


def storm() -> list[bytes | None]:
    """Every kind of poison, many times."""
    dials = replace(PRESETS["storm"], poison_share=0.1)
    tape = Tape(TapeSpec(1, steady(10_000, 2_000), 10, 10, 4, 5, 10, dials))
    kinds: set[int] = set()
    records: list[bytes | None] = []
    for block in tape.blocks():
        kinds |= {int(kind) for kind in block.poison}
        records += [message["value"] for message in Encoder(AdCodec(POPULATION, 5), TIME_MS).batch(block)]
    assert kinds == set(range(len(POISON_KINDS)))
    return records


def mutated(count: int) -> list[bytes | None]:
    """Events with a byte replaced, inserted or removed, mostly by one that means something in JSON."""
    draw = random.Random(11)
    telling = b"\"\\{}[]:, \x00\x1f\n\xff\xc3\xa4v#'/u"
    records: list[bytes | None] = []
    for _ in range(count):
        record = bytearray(EVENT)
        for _ in range(draw.choice((1, 1, 2, 3))):
            at, byte = draw.randrange(len(record)), draw.choice(telling)
            record[at : at + draw.choice((0, 1))] = bytes(draw.choice(([byte], [byte], [])))
        records.append(bytes(record))
    return records


@pytest.fixture(scope="module")
def session():
    session = make_session()
    gateway = SparkContext._gateway
    yield session
    session.stop()
    if gateway:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)


@pytest.fixture(scope="module")
def rows(session):
    """(parser, records) -> how often it gives each row."""

    def rows(parser, records) -> Counter[tuple[bytes | None, bytes | None]]:
        values = session.createDataFrame(pa.table({"value": pa.array(records, pa.binary())}))
        return counted(parser(values).toArrow())

    return rows


def counted(table) -> Counter[tuple[bytes | None, bytes | None]]:
    return Counter(zip(*(column.cast(pa.binary()).to_pylist() for column in table.columns), strict=True))


@pytest.fixture(scope="module")
def samples(rows):
    records = {"crafted": list(CRAFTED.values()), "storm": storm(), "mutated": mutated(5_000)}
    return {name: (some, rows(textbook, some)) for name, some in records.items()}


@pytest.mark.parametrize("name", [name for name in EXACT if PARSERS[name] is not textbook])
def test_exactly_the_rows_of_from_json(samples, rows, name):
    for records, expected in samples.values():
        found = rows(PARSERS[name], records)

        assert (found - expected, expected - found) == (Counter(), Counter())


@pytest.mark.thorough
def test_exactly_the_rows_of_from_json_when_parsed_in_python(samples, tmp_path):
    """In one go, since a Spark has to be started for it; an environment has to be made on first use."""
    python = environments.prepare(load("spark-pandas"), print).python
    every = [record for records, _ in samples.values() for record in records]
    expected: Counter[tuple[bytes | None, bytes | None]] = sum((rows for _, rows in samples.values()), Counter())
    given, found = tmp_path / "records.parquet", tmp_path / "rows.parquet"
    pq.write_table(pa.table({"value": pa.array(every, pa.binary())}), given)

    command = [str(python), parse_in_python.__file__, IN_PYTHON, str(given), str(found)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)}
    subprocess.run(command, env=env, check=True, timeout=200)

    rows = counted(pq.read_table(found))
    assert (rows - expected, expected - rows) == (Counter(), Counter())


@pytest.mark.parametrize("name", ["crafted", "storm", "mutated"])
def test_what_python_is_sure_of_is_what_spark_says(samples, name):
    records, expected = samples[name]
    found = [fields_of(record) for record in records if record is not None]
    views = [(ad, time) for ad, kind, time in found if kind == "view"]
    sure = Counter(tuple(each if each is None else each.encode() for each in view) for view in views)

    assert sure - expected == Counter()
    assert sure.total() > 10, "where it is never sure, nothing is parsed in Python"


def substring(records: DataFrame) -> DataFrame:
    """What stands between the field's name and the next quote: right for this workload's records only."""
    text = F.col("value").cast("string")
    parts = [F.substring_index(F.substring_index(text, f'"{name}": "', -1), '"', 1).alias(name) for name in FIELDS]
    return records.select(*parts).where(F.col("event_type") == "view").select("ad_id", "event_time")


def test_a_way_that_only_looks_right_is_found_out(samples, rows):
    records, expected = samples["crafted"]

    assert rows(substring, records) != expected


def test_the_crafted_records_hold_what_counts_and_what_does_not(samples):
    _, expected = samples["crafted"]

    assert expected[AD.encode(), b"%d" % TIME_MS] > 20
    assert expected.total() < len(CRAFTED)


def test_what_the_job_may_use_was_compared():
    assert {BEST, *PARSERS} <= {*EXACT, IN_PYTHON}


def test_an_unknown_parser_is_refused_by_name():
    with pytest.raises(SystemExit, match=r"streamgauge.parser is 'guess'; give one of from_json, "):
        spark.chosen_parser({"options": {"streamgauge.parser": "guess"}})
