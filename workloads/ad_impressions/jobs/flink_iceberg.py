"""The Flink job whose counts go to an Iceberg table, in two ways.

    python flink_iceberg.py CONFIG.json

`append` appends a row for each view, and readers add them up. `append-final` appends the total of each window once, when the
window has closed. Iceberg commits once a checkpoint.
"""

from __future__ import annotations

import sys

from pyflink.table import TableEnvironment

from workloads.ad_impressions.jobs.flink_query import quoted
from workloads.ad_impressions.jobs.flink_tables import COLUMNS, TABLE, Query, each_view, final_totals, main
from workloads.jobs.run_config import Config

NAME = f"lake.counts.{TABLE}"


def create(tables: TableEnvironment, config: Config) -> str:
    warehouse = quoted(config["folder"])
    tables.execute_sql(
        f"CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = {warehouse})"
    )
    tables.execute_sql("CREATE DATABASE IF NOT EXISTS lake.counts")
    tables.execute_sql(f"CREATE TABLE IF NOT EXISTS {NAME} ({COLUMNS})")
    return NAME


SINKS: dict[str, Query] = {"append": each_view, "append-final": final_totals}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
