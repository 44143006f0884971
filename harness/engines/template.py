"""The patterns of keys that a manifest may give for its results: text with {campaign} and {window} in it."""

from __future__ import annotations

import re

NAMES = ("campaign", "window")
EXPRESSIONS = {"campaign": r"(?P<campaign>.+?)", "window": r"(?P<window>-?\d+)"}


def pattern(text: str) -> re.Pattern[str]:
    """As an expression; what stands between the names is taken letter by letter."""
    parts = re.split(r"\{(\w+)\}", text)
    return re.compile("".join(EXPRESSIONS[part] if n % 2 else re.escape(part) for n, part in enumerate(parts)))


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
