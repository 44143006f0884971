"""The part of a run's latency that faults caused: events wait while an engine is down or catching up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.measuring.measurement import Latency, Quantity, Recovery

FIRST_OUTPUT, CAUGHT_UP = "first_output_s", "catch_up_s"
INTERRUPTED_S = 1.0  # a shorter interruption is not visible


def outage_s(recoveries: Sequence[Recovery], load_s: float) -> float:
    """Return how many seconds of the load the engine was down or behind because of faults. If the end of a catch-up is
    unknown, the outage lasts until the end of what was observed.
    """
    total_s, counted_s = 0.0, 0.0  # counted_s: counted up to here, because outages may overlap
    for each in sorted(recoveries, key=lambda each: each.struck_s):
        begin_s, end_s = max(each.struck_s, counted_s, 0.0), min(_end_s(each), load_s)
        total_s += max(0.0, end_s - begin_s)
        counted_s = max(counted_s, end_s)
    return total_s


@dataclass(frozen=True)
class Outage:
    """The seconds of a load during which events waited for a fault."""

    lasted_s: float
    load_s: float

    def covers(self, quantile: float) -> bool:
        """Check if this quantile of the latency belongs to events that waited for the fault."""
        return self.lasted_s > 0 and self.lasted_s >= (1 - quantile) * self.load_s

    @property
    def words(self) -> str:
        return f"for {self.lasted_s:.0f} s of the load's {self.load_s:.0f} s events were delayed by the fault"


def outage_of(recoveries: Sequence[Recovery], load_s: float) -> Outage:
    return Outage(outage_s(recoveries, load_s), load_s)


def quantiles(latency: Latency, names: Mapping[str, float], outage: Outage) -> str:
    """Write quantiles of the latency. Those within an outage belong to the fault, not to the engine: they are
    withheld.
    """
    figures = latency.corrected
    own = [name for name, quantile in names.items() if not outage.covers(quantile)]
    if not own:
        return f"withheld: {outage.words}"
    shown = [f"{name} {_ms(getattr(figures, name))}" for name in own]
    if rest := [name for name in names if name not in own]:
        shown.append(f"{' and '.join(rest)} withheld: {outage.words}")
    return ", ".join(shown)


def _ms(value: float | None) -> str:
    return "never" if value is None else f"{value:,.0f} ms"


def _end_s(recovery: Recovery) -> float:
    """An engine that was not interrupted has neither figure, and no outage."""
    found = [recovery.quantities.get(name) for name in (FIRST_OUTPUT, CAUGHT_UP)]
    known = [each for each in found if each is not None]
    if not known:
        return recovery.struck_s
    if all(each.value is not None for each in known):
        return recovery.struck_s + max(each.value or 0.0 for each in known)
    return recovery.until_s


def in_words(recoveries: Sequence[Recovery]) -> str:
    """Describe the recovery from each fault that interrupted the engine; "" if none did."""
    return "; ".join(_clause(each) for each in recoveries if _end_s(each) - each.struck_s >= INTERRUPTED_S)


def _clause(recovery: Recovery) -> str:
    """Only known figures are named. The page has the reasons for the others."""
    figures = (
        (name, recovery.quantities.get(key)) for name, key in (("first output", FIRST_OUTPUT), ("caught up", CAUGHT_UP))
    )
    said = [f"{name} {_text(figure)}" for name, figure in figures if figure is not None]
    return f"{', '.join(said)} after {recovery.fault} struck"


def _text(quantity: Quantity) -> str:
    return quantity.text(lambda value: f"{value:.1f} s")
