"""What a later version of a job has more than this one: its plan is another, and its answer is the same. For upgrades.

The option `streamgauge.more` chooses one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from workloads.jobs.orders import OWN_OPTION, Config

MORE_OPTION = OWN_OPTION + "more"
NOTHING = "nothing"
FIELD = "field"  # each cell keeps the newest time of its events beside its count


def chosen_more(config: Config, known: Sequence[str]) -> str:
    more: str = config["options"].get(MORE_OPTION, NOTHING)
    if more not in (NOTHING, *known):
        sys.exit(f"{MORE_OPTION} is {more!r}; give one of {', '.join((NOTHING, *known))}.")
    return more
