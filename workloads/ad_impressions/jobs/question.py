"""What a job counts, and by what: the benchmark's question, unless its orders name another one."""

from __future__ import annotations

from workloads.jobs.orders import OWN_OPTION, Config

COUNTS_OPTION, BY_OPTION = OWN_OPTION + "counts", OWN_OPTION + "by"
VIEW, CAMPAIGN, AD = "view", "campaign", "ad"
AD_KEY = "ad:"  # results of an ad lie under its id with this before it


def counted(config: Config) -> tuple[str, ...]:
    """The types of events."""
    return tuple(config["options"].get(COUNTS_OPTION, VIEW).split("+"))


def asked_key(config: Config) -> str:
    """By which events are counted."""
    return str(config["options"].get(BY_OPTION, CAMPAIGN))
