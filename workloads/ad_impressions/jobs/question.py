"""The events that a job counts, and the key: those of the benchmark, unless its run config names others.

The option `streamgauge.more` selects an addition of a later version of a job, for upgrades: its plan differs and its
answer is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from workloads.jobs.run_config import OWN_OPTION, Config

COUNTS_OPTION, BY_OPTION = OWN_OPTION + "counts", OWN_OPTION + "by"
MORE_OPTION = OWN_OPTION + "more"
VIEW, CAMPAIGN, AD = "view", "campaign", "ad"
AD_KEY = "ad:"  # prefix of an ad's id as a key of results
NOTHING = "nothing"
FIELD = "field"  # each cell also stores the newest time of its events


def counted(config: Config) -> tuple[str, ...]:
    """Return the types of events to count."""
    return tuple(config["options"].get(COUNTS_OPTION, VIEW).split("+"))


def asked_key(config: Config) -> str:
    """Return the name of the key: campaign or ad."""
    return str(config["options"].get(BY_OPTION, CAMPAIGN))


def chosen_more(config: Config, known: Sequence[str]) -> str:
    more: str = config["options"].get(MORE_OPTION, NOTHING)
    if more not in (NOTHING, *known):
        sys.exit(f"{MORE_OPTION} is {more!r}; give one of {', '.join((NOTHING, *known))}.")
    return more
