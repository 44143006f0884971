"""Planted mistakes in the results during a run; the final results are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evidence.observed import Glitch, Watched
from harness.judging.checks.case import RunFacts
from harness.model import FaultReport, FaultSpec, Progress, When
from harness.selftest.by_hand import BEYOND, EPOCH_MS, FIRST, HONEST, KILL, LANDED, LAST, SPEC, case, seen

ZOMBIE = FaultReport(FaultSpec("zombie@c1", "zombie", When("point", "c1")), True, True, "seen", at_ms=EPOCH_MS + 5_000)
WRONG_TYPE = FaultReport(
    FaultSpec("redis-wrong-type@t>=5s", "redis-wrong-type", When("time", seconds=5.0)),
    True,
    True,
    "seen",
    at_ms=EPOCH_MS + 5_000,
)


def planted() -> Iterator[tuple[str, RunFacts]]:
    yield "nobody looked", case(watched=None)
    yield "nobody could look", case(watched=None, blind="they are printed by a command")
    yield "a count went back", _dipped(at_s=12.0)
    yield "a count vanished for a while", _dipped(at_s=12.0, to=0)
    yield "a count went back after a kill", _dipped(at_s=12.0, faults=(LANDED,), spec=replace(SPEC, fault=KILL))
    yield "a count went back after a zombie", _dipped(at_s=12.0, faults=(ZOMBIE,))
    yield "a count went back before the zombie", _dipped(at_s=4.0, faults=(ZOMBIE,))
    yield "a zombie that never landed", _dipped(at_s=12.0, faults=(replace(ZOMBIE, landed=False),))
    yield "no number for a while", glitched(at_s=12.0)
    yield "no number for a while, after a kill", glitched(at_s=12.0, faults=(LANDED,))
    yield "no number for a while, after one was planted", glitched(at_s=12.0, faults=(WRONG_TYPE,))
    yield "no number for a while, before one was planted", glitched(at_s=4.0, faults=(WRONG_TYPE,))
    yield "no number, and the planting never landed", glitched(at_s=12.0, faults=(replace(WRONG_TYPE, landed=False),))
    yield "a stranger for a while", _visited(Glitch("nobody", "", EPOCH_MS * 1000, (EPOCH_MS + 3000) * 1000))
    yield "a stranger to the end", _visited(Glitch("nobody[1]", "", EPOCH_MS * 1000, None))
    yield "a window that nobody expects for a while", _inserted([(4.0, BEYOND, 1), (7.0, BEYOND, 0)])
    yield "a count of 0 that nobody expects for a while", _inserted([(4.0, BEYOND, 0)])
    yield "a count before its events were sent", _at_once(LAST, at_s=1.0)
    yield "500 too many for a while, in a window that is over", _spike(FIRST, by=500)
    yield "500 too many for a while, and then less than before", _spike(FIRST, by=500, back=-1)
    yield "one too many for a while", _one_too_many(LAST, at_s=25.0)
    yield "done, and shown much later", _held_back(35.0)
    yield "done, and shown a little later", _held_back(25.0)
    silent = (*HONEST.told[:22], replace(HONEST.told[-1], at_ms=EPOCH_MS + 34_900))
    yield "closed, silent, and shown much later", _held_back(35.0, told=silent)
    killed: Any = {"faults": (LANDED,), "spec": replace(SPEC, fault=KILL)}
    yield "closed, killed, silent, and shown with the next word", _held_back(35.0, told=silent, **killed)
    yield "killed, closed twice, and shown much later", _held_back(35.0, **killed)
    yield (
        "closed, and shown with the next word, which came much later",
        _held_back(35.0, told=silent, shows_a_step_later=True),
    )
    yield "closed, and shown much later than the next word", _held_back(35.0, shows_a_step_later=True)
    yield "shown late, but not called done", _held_back(35.0, told=())
    yield "shown late, and no window closed", _held_back(35.0, spec=replace(SPEC, watermark_ms=60_000))
    yield "done by moments in seconds", replace(HONEST, told=_dated(lambda ms: ms // 1000))
    yield "done by one moment beyond 64 bits, nearly", replace(HONEST, told=_dated(lambda ms: ms, (1 << 63) - 1))
    yield "done before it was sent", replace(HONEST, told=_dated(lambda ms: ms - 5_000))
    yield "done at no time", replace(HONEST, told=_dated(lambda _: 0))
    yield "shown late to eyes that were shut", _held_back(35.0, longest_gap_ms=30_000.0)
    yield "done before anyone polled, and shown soon after that", _held_back(35.0, begun_ms=EPOCH_MS + 30_000)
    yield "done, and shown much later, to polls from the start", _held_back(35.0, begun_ms=EPOCH_MS)
    yield "told late, and shown a little later", _clock_set(0)
    yield "the clock was set back by a minute", _clock_set(-60_000)
    yield "the clock was set back by a minute, and nobody noticed", replace(_clock_set(-60_000), behind_ms=0)
    yield "the clock was set ahead by a minute", _clock_set(60_000)
    yield "done, and shown much later, and the clock was set back by 3 s", _held_back(35.0, behind_ms=3_000)
    yield "one lost, and the clock was set back by 3 s", seen({FIRST: -1}, behind_ms=3_000)


def _dipped(at_s: float, to: int | None = None, **more: Any) -> RunFacts:
    """Make the first cell show a lower count at one poll, and the old count at the next one."""
    seen_so_far = _seen_until(FIRST, at_s)
    return _inserted([(at_s, FIRST, seen_so_far - 1 if to is None else to), (at_s + 0.05, FIRST, seen_so_far)], **more)


def glitched(at_s: float, **more: Any) -> RunFacts:
    """Make the count of a cell a text for three seconds."""
    from_us = round((EPOCH_MS + at_s * 1000) * 1000)
    glitch = Glitch("campaign-0[1]", "soon", from_us, from_us + 3_000_000)
    return case(watched=replace(_watched(HONEST), unreadable=(glitch,)), **more)


def _visited(glitch: Glitch) -> RunFacts:
    return case(watched=replace(_watched(HONEST), strangers=(glitch,)))


def _one_too_many(cell: int, at_s: float) -> RunFacts:
    """Make a cell show more than its final count at one poll, and the right count at the next one."""
    most = HONEST.log_ledger.count(cell) + 1
    return _inserted([(at_s, cell, most), (at_s + 0.05, cell, _seen_until(cell, at_s))])


def _spike(cell: int, by: int, back: int = 0) -> RunFacts:
    """Make a complete cell show a higher count at one poll, and the right or a lower one at the next."""
    right = HONEST.log_ledger.count(cell)
    return _inserted([(25.0, cell, right + by), (25.4, cell, right + back), (25.8, cell, right)])


def _seen_until(cell: int, at_s: float) -> int:
    looked = _watched(HONEST)
    mine = looked.cell == cell
    return int(looked.count[mine & (looked.at_us <= (EPOCH_MS + at_s * 1000) * 1000)].max(initial=0))


def _inserted(rows: list[tuple[float, int, int]], **more: Any) -> RunFacts:
    looked = _watched(HONEST)
    at_us = np.append(looked.at_us, [round((EPOCH_MS + at_s * 1000) * 1000) for at_s, _, _ in rows])
    order = np.argsort(at_us, kind="stable")
    columns = (
        np.append(looked.cell, [cell for _, cell, _ in rows]),
        np.append(looked.count, [count for _, _, count in rows]),
    )
    return case(watched=replace(looked, **_named(at_us[order], *(column[order] for column in columns))), **more)


def _dated(moment: Callable[[int], int], *first: int) -> tuple[Progress, ...]:
    """Return the engine's progress with other times: the first ones as given, the others computed."""
    given = [*first, *(moment(line.at_ms) for line in HONEST.told[len(first) :])]
    return tuple(replace(line, at_ms=at_ms) for line, at_ms in zip(HONEST.told, given, strict=True))


def _clock_set(by_ms: int) -> RunFacts:
    """Make the engine report progress ten seconds late and show a cell soon afterwards. Its clock is set to another
    time before the report.
    """
    return _held_back(35.0, told=_dated(lambda ms: ms + 10_000 + by_ms), behind_ms=max(0, -by_ms))


def _held_back(until_s: float, longest_gap_ms: float = 50.0, begun_ms: int = 0, **more: Any) -> RunFacts:
    looked = _at_once(FIRST, until_s).watched
    assert looked
    return case(watched=replace(looked, longest_gap_ms=longest_gap_ms, begun_ms=begun_ms), **more)


def _at_once(cell: int, at_s: float) -> RunFacts:
    """Make a cell visible only from then on, at once with its final count."""
    looked = _watched(HONEST)
    mine = looked.cell == cell
    last = mine & (looked.count == HONEST.log_ledger.count(cell))
    at_us = np.where(last, round((EPOCH_MS + at_s * 1000) * 1000), looked.at_us)
    kept = ~mine | last
    columns = (at_us[kept], looked.cell[kept], looked.count[kept])
    return case(watched=replace(looked, **_named(*columns)))


def _named(*columns: NDArray[np.int64]) -> dict[str, Any]:
    return dict(zip(("at_us", "cell", "count"), columns, strict=True))


def _watched(of: RunFacts) -> Watched:
    assert of.watched
    return of.watched
