"""Additions of a later version of a job, for upgrades: its plan differs and its answer is the same.

The option `streamgauge.more` selects one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from workloads.jobs.run_config import OWN_OPTION, Config

MORE_OPTION = OWN_OPTION + "more"
NOTHING = "nothing"
FIELD = "field"  # each cell also stores the newest time of its events


def chosen_more(config: Config, known: Sequence[str]) -> str:
    more: str = config["options"].get(MORE_OPTION, NOTHING)
    if more not in (NOTHING, *known):
        sys.exit(f"{MORE_OPTION} is {more!r}; give one of {', '.join((NOTHING, *known))}.")
    return more
