"""Lengths of time as a plan writes them. Also who only judges a run reads them."""

from __future__ import annotations

import re

TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)")


class NotUnderstoodError(ValueError):
    """Why, as the middle of a sentence."""


def seconds(text: str, name: str) -> float:
    number = TIME.fullmatch(text)
    if not number:
        raise NotUnderstoodError(f"{name} = {text!r} is not a time such as 500ms, 5s or 1m")
    return float(number[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[number[2]]
