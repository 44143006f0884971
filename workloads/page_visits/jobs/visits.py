"""Constants of all jobs of page visits: lengths of windows, and names of results."""

from __future__ import annotations

LENGTH_MS, STEP_MS = 10_000, 2_000  # length of a window, and the step of sliding windows
GAP_MS = 2_000  # longest gap within a session
VISITS, VISITORS = "visits", "visitors"
PAGES, DIFFERENT = "pages", "different"
