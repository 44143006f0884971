"""A baseline from an earlier job, used if no base can be run: a head's cost relative to the reference engine, which
both jobs run. It is stored as the line that a gate adds to a history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.experiments.gating import history
from harness.experiments.gating.gate import Stored
from harness.experiments.gating.history import DECIDING, SEED, Change, Entry
from harness.experiments.gating.rounds import COST
from harness.host import disk_space
from harness.measuring.stats import Ratio
from harness.model import EngineManifest, UsageError

REFERENCE = "reference"
SUFFIX = ".json"
ANEW = "`streamgauge gate --head HEAD --engine PATH --save-baseline baseline.json` measures one."


@dataclass(frozen=True)
class Baseline:
    """A baseline that a gate may compare with."""

    path: Path
    entry: Entry

    @property
    def burst_events(self) -> int:
        return self.entry.round_events

    def refuse_other(self, head: EngineManifest, sink: str) -> None:
        """Refuse a baseline that was measured with another engine, or with another of its sinks."""
        engine = f"{head.id.partition('@')[0]}/{sink or head.sinks[0].name}"
        if self.entry.engine != engine:
            raise UsageError(
                f"{self.path} is of {self.entry.engine}, and the head is {engine}: name a baseline of that."
            )

    def stored(self, environment: Mapping[str, str] | None = None, versions: Mapping[str, str] | None = None) -> Stored:
        """Return the ratios, with the changes to this environment and these versions of the head; None: unchanged."""
        then = _told(self.entry.environment, self.entry.head.versions)
        now = then if environment is None else _told(environment, versions or {})
        names = dict.fromkeys((*then, *now))
        changes = tuple(
            str(Change(name, then.get(name, ""), now.get(name, "")))
            for name in names
            if then.get(name) != now.get(name)
        )
        ratios = {each.metric: Ratio(each.ratio, each.low, each.high, each.error) for each in _usable(self.entry)}
        return Stored(f"{self.entry.at:%Y-%m-%d %H:%M} UTC", ratios, changes)


def _told(environment: Mapping[str, str], versions: Mapping[str, str]) -> dict[str, str]:
    return {name: environment.get(name, "") for name in DECIDING} | dict(versions)


def _usable(entry: Entry) -> list[history.Figure]:
    return [each for each in entry.metrics if not each.declined and each.ratio > 0]


def is_baseline(text: str) -> bool:
    return text.endswith(SUFFIX)


def read(text: str, flags: Mapping[str, Any], burst_events: int) -> Baseline:
    """Read a baseline, and refuse one that does not fit a gate with these flags and bursts."""
    path = Path(text)
    if not path.is_file():
        raise UsageError(f"There is no baseline {path}. {ANEW}")
    try:
        entries = history.read(path).entries
    except history.NoHistoryError as error:
        raise UsageError(f"There is no baseline in {error.why}. {ANEW}") from None
    except UsageError as error:
        raise UsageError(f"{error} {ANEW}") from None
    if len(entries) != 1 or entries[0].base.named != REFERENCE:
        raise UsageError(
            f"{path} is a history of gates and no baseline, which is one gate by the reference engine. {ANEW}"
        )
    found = Baseline(path, entries[0])
    _refuse_unlike(found, flags, burst_events)
    return found


def _refuse_unlike(found: Baseline, flags: Mapping[str, Any], burst_events: int) -> None:
    then, now = (_scenario(each) for each in (found.entry.flags, flags))
    if then != now:
        raise UsageError(
            f"{found.path} was measured with {_shown(then)}, and this gate is asked for with {_shown(now)}: other "
            f"events have other costs. Give the same flags, or measure another baseline. {ANEW}"
        )
    if burst_events not in (0, found.entry.burst_events, found.burst_events):
        raise UsageError(
            f"{found.path} was measured with bursts of {found.burst_events:,} events, not {burst_events:,}: leave "
            f"--burst out, which uses the same size."
        )
    if COST.name not in {each.metric for each in _usable(found.entry)}:
        has = ", ".join(each.metric for each in _usable(found.entry)) or "no metric at all"
        raise UsageError(f"{found.path} lacks the {COST.name}, which is decisive; it has {has}. {ANEW}")


def _scenario(flags: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in flags.items() if name != SEED}


def _shown(flags: Mapping[str, str]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in sorted(flags.items())) or "no flags"


def save(path: Path, entry: Entry) -> None:
    """Write the baseline as a whole; on an error the previous file stays."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk_space.write(part, history.encoded(entry))
        part.replace(path)
    except OSError as error:
        raise UsageError(f"--save-baseline {path} can't be written: {error.strerror}.") from None
