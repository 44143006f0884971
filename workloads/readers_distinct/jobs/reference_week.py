"""The reference job of windows of a week.

python reference_week.py CONFIG.json
"""

from __future__ import annotations

import sys

from workloads.jobs.reads import WEEK
from workloads.readers_distinct.jobs.reference import main

if __name__ == "__main__":
    main(sys.argv[1], WEEK)
