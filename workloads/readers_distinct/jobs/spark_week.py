"""The Spark job of windows of a week, as a set, in two levels, or as a sketch.

python spark_week.py CONFIG.json
"""

from __future__ import annotations

import sys
from functools import partial

from workloads.jobs import spark_stream
from workloads.jobs.reads import WEEK
from workloads.readers_distinct.jobs.spark import start_query

if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], partial(start_query, windows=WEEK)))
