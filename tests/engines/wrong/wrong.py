"""Strangers' jobs with a bug: the reference job, but ...

python wrong.py drops|invents|mute CONFIG.json
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

    def _add_value(self, value):
        self.seen = getattr(self, "seen", 0) + 1
        self.due |= self.seen % ONE_IN == 0
        event = reference.parse(value)
        if self.due and event and event.event_type == "view":
            self.due = False
            return
        super()._add_value(value)


class Invents(reference.Counts):
    """... it counts the 5,000th record once more, in a window of its own."""

    def _add_value(self, value):
        super()._add_value(value)
        self.seen = getattr(self, "seen", 0) + 1
        if self.seen == 5_000:
            campaign, window = max(self.totals)
            self.totals[campaign, window + HOUR_MS] += 1
            self.changed.add((campaign, window + HOUR_MS))


def main(kind: str, config: str) -> None:
    if kind == "mute":
        signal.pause()
    setattr(reference, "Counts", {"drops": Drops, "invents": Invents}[kind])  # noqa: B010  (the planted bug)
    reference.main(config)


if __name__ == "__main__":
    main(*sys.argv[1:])
