"""Strangers' jobs with a bug: the reference job, but ...

python wrong.py drops|invents|forgets-an-ad|clicks|hour-off|mute CONFIG.json
"""

from __future__ import annotations

import signal
import sys

from workloads.ad_impressions.jobs import reference

ONE_IN = 100_000
HOUR_MS = 3_600_000


class Drops(reference.Counts):
    """... it loses one view after every 100,000 records."""

    due = False

    def add(self, value):
        self.seen = getattr(self, "seen", 0) + 1
        self.due |= self.seen % ONE_IN == 0
        event = reference.parse(value)
        if self.due and event and event.event_type == "view":
            self.due = False
            return
        super().add(value)


class Invents(reference.Counts):
    """... it counts the 5,000th record once more, in a window of its own."""

    def add(self, value):
        super().add(value)
        self.seen = getattr(self, "seen", 0) + 1
        if self.seen == 5_000:
            campaign, window = max(self.totals)
            self.totals[campaign, window + HOUR_MS] += 1
            self.changed.add((campaign, window + HOUR_MS))


class ForgetsAnAd(reference.Counts):
    """... it never saw one of the ads."""

    def __init__(self, ads, window_ms, checksum=False):
        super().__init__({ad: campaign for ad, campaign in ads.items() if ad != min(ads)}, window_ms, checksum)


class Clicks(reference.Counts):
    """... for a while it takes clicks for views."""

    records = 0

    def add(self, value):
        self.records += 1
        if 5_000 <= self.records < 20_000:
            value = value.replace(b'"event_type": "click"', b'"event_type": "view"')
        super().add(value)


class HourOff(reference.Counts):
    """... after a while its clock is an hour ahead, for a quarter of the ads."""

    records = 0

    def add(self, value):
        self.records += 1
        event = reference.parse(value)
        if event and event.ad_id[0] in "0123" and self.records > 5_000 and reference.is_time(event.event_time):
            value = value.replace(event.event_time.encode(), str(int(event.event_time) + HOUR_MS).encode())
        super().add(value)


BUGS = {"drops": Drops, "invents": Invents, "forgets-an-ad": ForgetsAnAd, "clicks": Clicks, "hour-off": HourOff}


def main(kind: str, config: str) -> None:
    if kind == "mute":
        signal.pause()
    setattr(reference, "Counts", BUGS[kind])  # noqa: B010  (the planted bug)
    reference.main(config)


if __name__ == "__main__":
    main(*sys.argv[1:])
