"""The reference job of sliding windows.

python reference_sliding.py CONFIG.json
"""

from __future__ import annotations

import sys

from workloads.page_visits.jobs.reference import main
from workloads.page_visits.jobs.visits import STEP_MS

if __name__ == "__main__":
    main(sys.argv[1], STEP_MS)
