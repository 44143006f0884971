"""The Flink job of windows of a week, by SQL or by a process function.

python flink_week.py CONFIG.json
"""

from __future__ import annotations

import sys
from functools import partial

from workloads.jobs.flink_process import run_embedded
from workloads.jobs.reads import WEEK
from workloads.jobs.run_config import read_config
from workloads.readers_distinct.jobs.flink import start_query

if __name__ == "__main__":
    sys.exit(run_embedded(read_config(sys.argv[1]), partial(start_query, windows=WEEK)))
