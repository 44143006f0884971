"""The Flink job whose counts go to an Iceberg table, in three ways.

    python flink_iceberg.py CONFIG.json

`append` appends a row for each view, and readers add them up. `append-final` appends the total of each window once,
when the window has closed. `upsert-totals` writes the total of each window, by its primary key, with each change.
Iceberg commits once a checkpoint.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
from workloads.jobs.run_config import Config, read_config

NAME = f"lake.counts.{TABLE}"
UPSERT = "upsert-totals"


def create(tables: TableEnvironment, config: Config) -> str:
    warehouse = quoted(config["folder"])
    tables.execute_sql(
        f"CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = {warehouse})"
    )
    tables.execute_sql("CREATE DATABASE IF NOT EXISTS lake.counts")
    by_key = config["sink"] == UPSERT
    columns = f"{COLUMNS}, PRIMARY KEY ({CAMPAIGN}, {OPENS}) NOT ENFORCED" if by_key else COLUMNS
    options = f"'format-version' = '2', 'write.upsert.enabled' = '{str(by_key).lower()}'"
    tables.execute_sql(f"CREATE TABLE IF NOT EXISTS {NAME} ({columns}) WITH ({options})")
    return NAME


SINKS: dict[str, Query] = {"append": each_view, "append-final": final_totals, UPSERT: totals}

if __name__ == "__main__":
    # Iceberg's catalogs look for Hadoop beside Flink's own classes.
    hadoop = [jar for jar in read_config(sys.argv[1])["jars"] if "hadoop" in Path(jar).name]
    os.environ["HADOOP_CLASSPATH"] = os.pathsep.join(hadoop)
    sys.exit(main(sys.argv[1], SINKS, create))
