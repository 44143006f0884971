"""The limits of judging a declared question, with reasons. They follow from the declaration alone."""

from __future__ import annotations

from collections.abc import Iterator

from workloads.declared.oracle import COUNT, MATCH, MONOTONE, PER_EVENT, RANKED, SUM, Question


def unjudged(question: Question, *, closing: bool) -> Iterator[str]:
    """Yield a sentence for each limit. `closing`: some cells close, so that events may be late for them."""
    yield (
        "A mistake in the SQL itself: what is planned and what was sent are folded by the same queries. So compare the "
        "rows with what you expect."
    )
    if sums := _named(question, SUM):
        yield (
            f"Early, stale or falling values of {sums}: a sum of signed numbers may fall, so that no value on its way "
            "can be called wrong. Its last one is judged."
        )
    if ranked := _named(question, RANKED):
        yield f"Early or stale values of {ranked}: a place may come and go while events come. Its last one is judged."
    if others := _named(question, SUM, MONOTONE, PER_EVENT, MATCH, RANKED):
        yield (
            f"How many events a wrong {others} has lost or counted twice: a difference there is no number of events. "
            "The cell is named, and so are its events."
        )
    if closing and (question.merge or sums):
        what = "cells that merge" if question.merge else f"{sums}, which may fall"
        yield (
            f"Late events of {what}, by bounds: leaving an event out makes neither smaller for sure. The engine has "
            "to keep late events, or to leave exact evidence of those that it dropped."
        )
    if closing and (others := _named(question, MATCH, RANKED)):
        yield (
            f"Late events of {others}, by bounds: leaving an event out may take a match or a place away, and give "
            "another one. The engine has to keep late events, or to leave exact evidence of those that it dropped."
        )
    if not closing:
        yield "Late events: no cell ever closes, so none may be missing."
    if not _named(question, COUNT, PER_EVENT, MATCH):
        rest = "How long a cell takes to its last value is measured."
        yield (
            "The latency of single events: only counts and one value for each event show when an event was seen. "
            f"{rest if _named(question, MONOTONE) else 'Add a count, such as count(*), to measure it.'}"
        )


def _named(question: Question, *kinds: str) -> str:
    return " or ".join(name for name, kind in question.values.items() if kind in kinds)
