"""The events that a job counts, and the key: those of the benchmark, unless its run config names others."""

from __future__ import annotations

from workloads.jobs.run_config import OWN_OPTION, Config

COUNTS_OPTION, BY_OPTION = OWN_OPTION + "counts", OWN_OPTION + "by"
VIEW, CAMPAIGN, AD = "view", "campaign", "ad"
AD_KEY = "ad:"  # prefix of an ad's id as a key of results


def counted(config: Config) -> tuple[str, ...]:
    """Return the types of events to count."""
    return tuple(config["options"].get(COUNTS_OPTION, VIEW).split("+"))


def asked_key(config: Config) -> str:
    """Return the name of the key: campaign or ad."""
    return str(config["options"].get(BY_OPTION, CAMPAIGN))
