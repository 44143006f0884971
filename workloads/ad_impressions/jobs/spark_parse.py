"""Parsers from Kafka's records to views: (ad_id, event_time) of every record whose event_type is "view".

All return exactly the rows of `textbook` for any records; docs/evidence/tuning.md has their costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)

from workloads.ad_impressions.jobs.id_sums import ID_DIGITS
from workloads.ad_impressions.jobs.spark_record import EVENT

ID = "id"

Parser = Callable[[DataFrame], DataFrame]


def textbook(records: DataFrame) -> DataFrame:
    """Parse in the usual way. The optimizer pushes the conditions on the fields below the parsing and repeats it in
    each of them: every record is parsed once, and every view five times.
    """
    return _views(records.select(F.from_json(_text(), EVENT).alias("event")).select("event.*"))


def once(records: DataFrame) -> DataFrame:
    """Parse through a generator. The optimizer does not push conditions through it: every record is parsed once."""
    return _views(records.select(F.inline(F.array(F.from_json(_text(), EVENT)))))


def prefilter(records: DataFrame) -> DataFrame:
    """Parse only possible views: JSON with "view" contains these letters, or a backslash that hides them."""
    return once(records.where(_text().contains("view") | _text().contains("\\")))


def pandas(records: DataFrame) -> DataFrame:
    """Filter as `prefilter`, but parse in Python. Spark parses records that Python might read differently."""
    try:
        from workloads.ad_impressions.jobs.spark_parse_pandas import parse
    except ModuleNotFoundError as error:
        sys.exit(f"The parser pandas needs pandas, and this Python has none ({error}); the engine spark-pandas has it.")
    some = records.where(_text().contains("view") | _text().contains("\\"))
    found = some.select("value", parse("value").alias("found"))
    sure = F.col("found.event_type").isNotNull()
    event = F.when(sure, F.col("found")).otherwise(F.from_json(_text(), EVENT))
    return _views(found.select(F.inline(F.array(event))))


def with_ids(records: DataFrame) -> DataFrame:
    """Parse as `prefilter`, and add the id of each view, which is at the end of its user id in checksum mode."""
    some = records.where(_text().contains("view") | _text().contains("\\"))
    events = some.select(F.inline(F.array(F.from_json(_text(), f"{EVENT}, user_id string"))))
    digits = F.substring("user_id", -ID_DIGITS, ID_DIGITS)
    number = F.conv(digits, 16, 10).cast("long").alias(ID)
    return events.where(F.col("event_type") == "view").select("ad_id", "event_time", number)


def of_types(types: Sequence[str]) -> Parser:
    """Return a parser like `once` for events of other types."""

    def parse(records: DataFrame) -> DataFrame:
        events = records.select(F.inline(F.array(F.from_json(_text(), EVENT))))
        return events.where(F.col("event_type").isin(*types)).select("ad_id", "event_time")

    return parse


def _text() -> Column:
    return F.col("value").cast("string")


def _views(events: DataFrame) -> DataFrame:
    return events.where(F.col("event_type") == "view").select("ad_id", "event_time")


PARSERS: Mapping[str, Parser] = {"from_json": textbook, "once": once, "prefilter": prefilter, "pandas": pandas}
BEST = "prefilter"
