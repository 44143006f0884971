"""Durations as a fault plan writes them. Judging imports this module too."""

from __future__ import annotations

import re

TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)")


class NotUnderstoodError(ValueError):
    """A duration that can't be parsed. The message fits into the middle of a sentence."""


def seconds(text: str, name: str) -> float:
    number = TIME.fullmatch(text)
    if not number:
        raise NotUnderstoodError(f"{name} = {text!r} is not a time such as 500ms, 5s or 1m")
    return float(number[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[number[2]]
