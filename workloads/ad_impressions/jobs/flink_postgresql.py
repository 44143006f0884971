"""The Flink job whose counts go to a table in PostgreSQL by Flink's JDBC connector, in three ways.

    python flink_postgresql.py CONFIG.json

`append` inserts a row for each view, and readers add them up. `upsert-totals` writes the total of each window, by its
primary key, with each change. `upsert-final` writes it once, when the window has closed.
"""

from __future__ import annotations

import sys

from pyflink.java_gateway import get_gateway
from pyflink.table import TableEnvironment

from workloads.ad_impressions.jobs.flink_tables import (
    CAMPAIGN,
    COLUMNS,
    OPENS,
    TABLE,
    Query,
    each_view,
    final_totals,
    main,
    totals,
)
from workloads.jobs.flink_sql import quoted
from workloads.jobs.run_config import Config

APPEND = "append"


def create(tables: TableEnvironment, config: Config) -> str:
    """The connector writes to a table that exists. With a primary key it replaces rows, without one it inserts them."""
    key = "" if config["sink"] == APPEND else f", PRIMARY KEY ({CAMPAIGN}, {OPENS})"
    execute(config, f"CREATE TABLE IF NOT EXISTS {TABLE} ({CAMPAIGN} text, {OPENS} timestamp, views bigint{key})")
    place = f"'connector' = 'jdbc', 'url' = {quoted(config['sql']['jdbc'])}, 'table-name' = '{TABLE}'"
    tables.execute_sql(f"CREATE TEMPORARY TABLE {TABLE} ({COLUMNS}{key and key + ' NOT ENFORCED'}) WITH ({place})")
    return TABLE


def execute(config: Config, statement: str) -> None:
    """Execute a statement by the driver that Flink's connector uses."""
    jvm = get_gateway().jvm
    driver = jvm.Thread.currentThread().getContextClassLoader().loadClass("org.postgresql.Driver")
    connection = driver.newInstance().connect(config["sql"]["jdbc"], jvm.java.util.Properties())
    try:
        connection.createStatement().execute(statement)
    finally:
        connection.close()


def upsert_final(config: Config) -> str:
    """Flink does not see that a window's start is enough of a key, and asks what to do with two rows of one key."""
    return f"{final_totals(config)} ON CONFLICT DO DEDUPLICATE"


SINKS: dict[str, Query] = {APPEND: each_view, "upsert-totals": totals, "upsert-final": upsert_final}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
