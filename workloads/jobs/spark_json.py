"""The shared part of all PySpark jobs whose events are JSON."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)


def whole_events(records: DataFrame, fields: str, *beside: Column | str) -> DataFrame:
    """Parse records, and keep the columns `beside` of them. A record that lacks one of all these is left out.

    It goes through a generator, so that the optimizer does not parse a record once for each condition.
    """
    event = F.from_json(F.col("value").cast("string"), fields)
    found = records.select(*beside, F.inline(F.array(event)))
    return found.where(reduce(and_, (F.col(name).isNotNull() for name in found.columns)))


def number_of_key() -> Column:
    """Return the key of a record, which is a number in hexadecimal digits."""
    return F.conv(F.col("key").cast("string"), 16, 10).cast("bigint")
