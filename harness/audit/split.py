"""Divides lines among campaigns: the lines of a file are campaign after campaign, each from its newest window to its
oldest, without any names.

The evidence for a boundary: the newest window was still open when the files were written, so that its last update came
before its end; the newest and the oldest window hold less than whole ones. Of all divisions into lengths that differ by
a window or two, the one with the most evidence at its boundaries is chosen. It is accepted if nearly all boundaries
have evidence, and hardly any line within a campaign looks like a beginning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.audit.left import Ints
from harness.audit.scatter import is_low
from harness.util.texts import many

CLEARLY_MS, GAPS = 300, 10  # least time before the window's end, in ms and in mean gaps between two views of a cell
BELIEVED, INSIDE = 0.9, 0.1  # shares of the boundaries
RATHER = 3.0  # standard errors: enough for one of several signs
NONE = -(10**6)


@dataclass(frozen=True)
class Split:
    starts: Ints | None  # the first line of each campaign
    opens: NDArray[np.bool_]  # lines whose window was still open
    why: str = ""  # why there is no split
    cut: bool = False  # the lines end before the campaigns do


def split(count: Ints, delay: Ints | None, campaigns: int, window_ms: int) -> Split:
    opens = soonest = np.zeros(len(count), dtype=np.bool_)
    if delay is not None:
        usual = max(1.0, float(np.median(count)))
        opens = np.asarray(delay < window_ms - max(CLEARLY_MS, GAPS * window_ms / usual))
        soonest = np.asarray(delay <= np.sort(delay)[min(campaigns, len(delay)) - 1])
    if len(count) < 2 * campaigns:
        return Split(
            None,
            opens,
            f"{many(len(count), 'line is', 'lines are')} fewer than two windows of {many(campaigns, 'campaign')} need",
        )
    low = is_low(count, RATHER)
    before = np.concatenate([low[-1:], low[:-1]])
    score = 2 * (opens | soonest).astype(np.int64) + low + before
    starts = _best(score, campaigns)
    if starts is None:
        return _cut(opens, campaigns, len(count))
    with_evidence = float((score[starts] > 0).mean())
    inside = int(opens.sum() - opens[starts].sum())
    if with_evidence >= BELIEVED and inside <= INSIDE * campaigns:
        return Split(starts, opens | soonest)
    if delay is not None and (even := _even(delay, campaigns)) is not None:
        return Split(even, opens)
    cut = _cut(opens, campaigns, len(count))
    if cut.cut:
        return cut
    why = f"only {with_evidence * campaigns:.0f} of {campaigns:,} boundaries between campaigns can be detected"
    if inside > INSIDE * campaigns:
        why = f"{many(inside, 'line')} inside of a campaign look like its newest window"
    return Split(None, opens, why)


def _best(score: Ints, campaigns: int) -> Ints | None:
    """Dynamic programming over the boundaries: `best[i]` is the best score of those that lead to line `base + i`."""
    rows = len(score)
    least, most = max(1, rows // campaigns - 1), -(-rows // campaigns) + 1
    spread = most - least
    best, back = np.full(campaigns * spread + 1, NONE, dtype=np.int64), []
    best[0] = score[0]
    scores = np.concatenate([score, np.zeros(1 + campaigns * most - rows, dtype=np.int64)])
    for number in range(1, campaigns + 1):
        ways = np.full((spread + 1, len(best)), NONE, dtype=np.int64)
        for extra in range(spread + 1):
            ways[extra, extra:] = best[: len(best) - extra]
        chosen = ways.argmax(axis=0)
        back.append(chosen)
        base = number * least
        gain = scores[base : base + len(best)] if number < campaigns else np.int64(0)
        best = ways.max(axis=0) + gain
    end = rows - campaigns * least
    if not 0 <= end < len(best) or best[end] < 0:
        return None
    starts = np.zeros(campaigns, dtype=np.int64)
    for number in range(campaigns, 0, -1):
        end -= int(back[number - 1][end])
        starts[number - 1] = (number - 1) * least + end
    return starts


def _even(delay: Ints, campaigns: int) -> Ints | None:
    """An engine that fell behind was equally late for all campaigns: if the lines are divided evenly, those of one
    window agree.
    """
    if len(delay) % campaigns:
        return None
    dealt = delay.reshape(campaigns, -1).astype(float)
    spread = float(dealt.var())
    if spread == 0 or float(dealt.var(axis=0).mean()) > (1 - BELIEVED) * spread:
        return None
    return np.arange(campaigns, dtype=np.int64) * dealt.shape[1]


def _cut(opens: NDArray[np.bool_], campaigns: int, rows: int) -> Split:
    """Detect files that end too early: the visible campaigns are equally long, and too few."""
    starts = np.flatnonzero(opens)
    lengths = np.diff(starts)
    seen = len(starts)
    alike = seen >= 3 and starts[0] == 0 and np.ptp(lengths) <= 2 and rows - starts[-1] <= lengths.max() + 1
    if alike and seen < BELIEVED * campaigns:
        return Split(None, opens, f"its {many(rows, 'line')} end in campaign {seen} of {campaigns:,}", cut=True)
    return Split(None, opens, f"{many(rows, 'line')} can't be divided among {many(campaigns, 'campaign')}")
