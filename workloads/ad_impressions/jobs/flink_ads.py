"""The table of ads for the function `campaign_of` in Java."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from workloads.ad_impressions.jobs.ads import read_ads
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config


def prepare_ads(config: Config) -> None:
    """Write the table, before any JVM starts."""
    ads = Path(tempfile.gettempdir()) / "ads.csv"
    table = read_ads(connect(config))
    ads.write_text("".join(f"{ad},{campaign}\n" for ad, campaign in table.items()), encoding="utf-8")
    os.environ["STREAMGAUGE_ADS"] = str(ads)  # read by CampaignOf.java
