"""The checker with one mistake each. A mutant that no planted bug distinguishes from the real checker shows that a part
of the checker is not needed, or not tested. Each must be killed by a planted bug whose outcome differs from the
expected one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from harness.evidence import checksums
from harness.evidence.checksums import Checksum
from harness.evidence.ledger import Difference, Expectation, Ledger
from harness.judging import checks, lateness
from harness.judging.checks import (
    early,
    masked,
    non_monotonic,
    phantom,
    readable,
    shifted,
    stale,
    state,
    stopped,
    unaccounted,
    unread,
)
from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, Outcome
from harness.selftest.by_hand import CODES

differences = Expectation.differences
Differences = list[Difference]


@dataclass(frozen=True)
class Mutant:
    """A mistake, and the context in which the checker has it."""

    name: str
    planted: Callable[[], AbstractContextManager[Any]]


def mutants() -> Iterator[Mutant]:
    for mistake in COMPARISONS:
        yield _mutant(mistake.__name__.replace("_", " "), Expectation, "differences", mistake)
    for name, check in checks.CHECKS.items():
        yield Mutant(f"check {name} always passes", _check(name, _content(name)))
        if name != shifted.NAME:  # others always fail, too: it only comes first, which a test of headlines checks
            yield Mutant(f"check {name} takes FAIL for UNKNOWN", _check(name, _turned(check)))
    yield _mutant(
        "the late rule drops nothing", lateness, "dropped", lambda log, *_: np.zeros(len(log), dtype=np.bool_)
    )
    yield _mutant("what nothing has closed is late", RunFacts, "_closed", lambda _, ledger: ledger)
    yield _mutant("UNKNOWN hides a failure", Outcome, "worst", staticmethod(_worst_is_unknown))
    yield _mutant("a ledger without multiplicity", Ledger, "count", lambda ledger, cell: int(cell in ledger))
    yield _mutant("S1 is not looked at", Checksum, "__ne__", lambda one, other: one.s2 != other.s2)
    yield _mutant("S2 is not looked at", Checksum, "__ne__", lambda one, other: one.s1 != other.s1)
    yield _mutant("a cell without sums is right", masked, "_counted_right", _with_sums_only)
    yield _mutant("a dropped event is summed", masked, "_expected", _sums_of_all)
    yield _mutant("a kill explains a step back", non_monotonic, "TAKES_BACK", non_monotonic.TAKES_BACK | {"kill"})
    yield _mutant("nothing explains a step back", non_monotonic, "TAKES_BACK", frozenset())
    yield _mutant("a fault explains what was before it", non_monotonic, "_explains", lambda *_: True)
    yield _mutant("only what vanished went back", non_monotonic, "_dips", _vanished(non_monotonic._dips))
    yield _mutant("a kill explains a text", readable, "PLANTS", readable.PLANTS | {"kill"})
    yield _mutant("nothing explains a text", readable, "PLANTS", frozenset())
    yield _mutant("a fault explains a text before it", readable, "_explains", lambda *_: True)
    yield _mutant("what was there for a while is no phantom", phantom, "_visitors", lambda _: [])
    yield _mutant("a stop makes no stranger", stopped, "_strays", lambda *_: [])
    yield _mutant("a stop makes no second value", stopped, "_odd", lambda *_: set())
    yield _mutant("nothing is right only when stopped", stopped, "_right_only_now", lambda *_: [])
    yield _mutant("a minute early is not early", early, "TOLERANCE_US", 60_000_000)
    yield _mutant("every event is sent from the start", early, "_sent_by", _sent_always)
    yield _mutant("a minute late is not stale", stale, "ALLOWED_MS", 60_000)
    yield _mutant("two seconds late is stale", stale, "ALLOWED_MS", 2_000)
    yield _mutant("a clock that was set back excuses everything", stale, "_steps", _set_back_by(1 << 40))
    yield _mutant("a clock that was set back excuses nothing", stale, "_steps", _set_back_by(0))
    yield _mutant("a restarted engine knows its watermark", stale, "_shaken", lambda *_: frozenset())
    yield _mutant("a window need not be closed", stale, "_closed_ms", lambda *_: 0)
    yield _mutant("a state keeps what is over", state, "_held", lambda case, taken, _: taken & ~case.dropped)
    yield _mutant("no state is an old one", state, "_is_of_earlier", lambda *_: False)
    yield _mutant("a log that could not be read is empty", unread, "missing", lambda *_: None)
    yield _mutant("what could not be read was read", RunFacts, "not_read", "")
    yield _mutant("the log is not in the books", unaccounted, "_expected_is_what_the_log_holds", lambda _: [])


def expected_cells_only(expected: Expectation, seen: Ledger) -> Differences:
    """Compare expected windows only: a mistake of this program's predecessor."""
    return [d for d in differences(expected, seen) if d.may]


def no_surplus(expected: Expectation, seen: Ledger) -> Differences:
    return [d for d in differences(expected, seen) if d.surplus < 0]


def no_deficit(expected: Expectation, seen: Ledger) -> Differences:
    return [d for d in differences(expected, seen) if d.surplus > 0]


def off_by_one(expected: Expectation, seen: Ledger) -> Differences:
    return [d for d in differences(expected, seen) if abs(d.surplus) > 1]


def totals_only(expected: Expectation, seen: Ledger) -> Differences:
    return differences(expected, seen) if seen.total != expected.may.total else []


def a_set_instead_of_a_multiset(expected: Expectation, seen: Ledger) -> Differences:
    return [d for d in differences(expected, seen) if not (d.may and d.seen)]


def written_cells_only(expected: Expectation, seen: Ledger) -> Differences:
    return [d for d in differences(expected, seen) if d.seen]


def all_but_the_last_window(expected: Expectation, seen: Ledger) -> Differences:
    last = max(map(CODES.field, expected.may), default=0)
    return [d for d in differences(expected, seen) if CODES.field(d.cell) != last]


def all_but_the_first_window(expected: Expectation, seen: Ledger) -> Differences:
    first = min(map(CODES.field, expected.may), default=0)
    return [d for d in differences(expected, seen) if CODES.field(d.cell) != first]


def first_difference_only(expected: Expectation, seen: Ledger) -> Differences:
    return differences(expected, seen)[:1]


COMPARISONS: tuple[Callable[[Expectation, Ledger], Differences], ...] = (
    expected_cells_only,
    no_surplus,
    no_deficit,
    off_by_one,
    totals_only,
    a_set_instead_of_a_multiset,
    written_cells_only,
    all_but_the_last_window,
    all_but_the_first_window,
    first_difference_only,
)


def _mutant(name: str, holder: Any, attribute: str, value: object) -> Mutant:
    return Mutant(name, lambda: mock.patch.object(holder, attribute, value))


def _check(name: str, instead: Callable[[RunFacts], CheckResult]) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.dict(checks.CHECKS, {name: instead})


def _content(name: str) -> Callable[[RunFacts], CheckResult]:
    return lambda _: CheckResult(name, Outcome.PASS, "all is well")


def _turned(check: Callable[[RunFacts], CheckResult]) -> Callable[[RunFacts], CheckResult]:
    other = {Outcome.PASS: Outcome.PASS, Outcome.FAIL: Outcome.UNKNOWN, Outcome.UNKNOWN: Outcome.FAIL}

    def turned(case: RunFacts) -> CheckResult:
        result = check(case)
        return replace(result, outcome=other[result.outcome])

    return turned


def _worst_is_unknown(outcomes: list[Outcome]) -> Outcome:
    order = [Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN]
    return max(outcomes, key=order.index, default=Outcome.UNKNOWN)


_counted_right = masked._counted_right


def _with_sums_only(case: RunFacts) -> Any:
    return [cell for cell in _counted_right(case) if cell in case.observed.sums]


def _sums_of_all(case: RunFacts) -> Any:
    sums = checksums.by_cell(case.events.cell, case.events.id)
    return {cell: sums.get(cell, Checksum()) for cell in case.expectation.may}


def _set_back_by(ms: int) -> Callable[[RunFacts], Any]:
    """Assume that the engine's clock was set back by this much, whatever was recorded."""
    steps = stale._steps
    return lambda case: steps(replace(case, behind_ms=ms))


def _vanished(dips: Callable[..., list[non_monotonic.Dip]]) -> Callable[..., list[non_monotonic.Dip]]:
    return lambda seen: [dip for dip in dips(seen) if dip.after == 0]


def _sent_always(_case: RunFacts, code: Any, _at_us: Any) -> Any:
    return np.full(len(code), np.iinfo(np.int64).max)
