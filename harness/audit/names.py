"""What the name of a folder says of the load: `rate=1000`, `producers=10`, `duration=600`, in any part of the path."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from harness.audit.left import Offered

SAID = re.compile(
    r"(?:^|[/_,; -])(rate|load|producers|duration|campaigns)[=-](\d+)(k|m|s)?(?=$|[/_,; -])", re.IGNORECASE
)
TIMES = {"": 1, "k": 1000, "m": 1_000_000, "s": 1}
FIELDS = {"load": "rate_per_s", "rate": "rate_per_s", "duration": "duration_s"}


def said(path: Path, flags: Offered, given: frozenset[str]) -> Offered:
    """Flags that were given win; of two names the inner one."""
    found = {}
    for name, number, unit in SAID.findall(path.as_posix()):
        field = FIELDS.get(name.lower(), name.lower())
        value = int(number) * TIMES[(unit or "").lower()]
        if field not in given and value > 0:
            found[field] = value
    return replace(flags, **found)
