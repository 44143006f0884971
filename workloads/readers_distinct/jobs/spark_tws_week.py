"""The Spark job of windows of a week, with a state written by hand.

python spark_tws_week.py CONFIG.json
"""

from __future__ import annotations

import sys
from functools import partial

from workloads.jobs import spark_stream
from workloads.jobs.reads import WEEK
from workloads.readers_distinct.jobs.spark_tws import start_query

if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], partial(start_query, windows=WEEK)))
