"""Read from the log of a job on Flink how often Flink restarted or rescaled it by itself.

The shipped jobs on PyFlink ask Flink's REST interface, and log a line for each (workloads/jobs/flink_rest.py). Any
other job has the line of Flink's own log, if it logs at the level INFO.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.util.texts import many, shown

ASKED = re.compile(r"Flink restarted the job by itself: parallelism (?P<new>\d+), before (?P<old>\d+); (?P<why>.+)")
LOGGED = re.compile(r"Job .+ switched from state RUNNING to RESTARTING")
NO_FAILURE = "no task had failed"
LONGEST = 160


def in_words(lines: Iterable[str]) -> tuple[str, ...]:
    """Return a note for rescales and one for restarts; () if the log has none."""
    asked: list[re.Match[str]] = []
    logged = 0
    for line in lines:
        if found := ASKED.search(line):
            asked.append(found)
        logged += LOGGED.search(line) is not None
    return tuple(_notes(asked) if asked else _logged(logged))


def _notes(found: list[re.Match[str]]) -> Iterator[str]:
    rescales = [each for each in found if each["why"] == NO_FAILURE and each["new"] != each["old"]]
    restarts = [each for each in found if each not in rescales]
    if rescales:
        steps = "; ".join(f"parallelism {each['old']} to {each['new']}" for each in rescales)
        often = many(len(rescales), "time")
        yield f"Flink rescaled the job {often} ({steps}), for which it restarts it from a checkpoint"
    if restarts:
        last = restarts[-1]
        wide = f"parallelism {last['old']} to {last['new']}, " if last["new"] != last["old"] else ""
        yield (
            f"Flink restarted the job {many(len(restarts), 'time')} by itself, from its newest checkpoint "
            f"({'the last one: ' if len(restarts) > 1 else ''}{wide}{shown(last['why'], LONGEST)})"
        )


def _logged(count: int) -> Iterator[str]:
    if count:
        yield f"Flink restarted the job {many(count, 'time')} by itself, from its newest checkpoint"
