"""The patterns of keys that a manifest may give for its results: text with {campaign} and {window} in it."""

from __future__ import annotations

import re

NAMES = ("campaign", "window")
# A campaign is a UUID, whose dashes and digits belong to it whatever stands beside it; others may be made up.
CAMPAIGN = r"(?P<campaign>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|.+?)"
NUMBER, ANYTHING = r"(?P<window>-?[0-9]+)", r"(?P<window>.*)"


def pattern(text: str, window: str = NUMBER) -> re.Pattern[str]:
    """As an expression; what stands between the names is taken letter by letter."""
    expressions = {"campaign": CAMPAIGN, "window": window}
    parts = re.split(r"\{(\w+)\}", text)
    whole = "".join(expressions[part] if n % 2 else re.escape(part) for n, part in enumerate(parts))
    return re.compile(whole, re.DOTALL)


def mistake(key: str, field: str) -> str:
    """What is wrong with a template; "" for nothing."""
    used = re.findall(r"\{(\w*)\}", key + field)
    for name in used:
        if name not in NAMES:
            return f"{{{name}}} stands for nothing: {{campaign}} and {{window}} are what there is"
    for name in NAMES:
        if used.count(name) != 1:
            return f"{{{name}}} has to stand there once, and does {used.count(name)} times"
    return ""
