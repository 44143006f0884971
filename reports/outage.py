"""What of a run's latency is the doing of its faults: while an engine is down or behind, each event waits for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.measuring.measurement import Latency, Quantity, Recovery

FIRST_OUTPUT, CAUGHT_UP = "first_output_s", "catch_up_s"
INTERRUPTED_S = 1.0  # less is no interruption that anybody saw


def outage_s(recoveries: Sequence[Recovery], load_s: float) -> float:
    """So many seconds of the load an engine was down or behind because of faults. Where it is not known when it had
    caught up, it had not."""
    total_s, counted_s = 0.0, 0.0  # the latter: up to where it is counted already, as faults may overlap
    for each in sorted(recoveries, key=lambda each: each.struck_s):
        begin_s, end_s = max(each.struck_s, counted_s, 0.0), min(_end_s(each), load_s)
        total_s += max(0.0, end_s - begin_s)
        counted_s = max(counted_s, end_s)
    return total_s


@dataclass(frozen=True)
class Outage:
    """How much of a load events waited for a fault in."""

    lasted_s: float
    load_s: float

    def covers(self, quantile: float) -> bool:
        """Whether this quantile of the latency is one of events that waited for the fault."""
        return self.lasted_s > 0 and self.lasted_s >= (1 - quantile) * self.load_s

    @property
    def words(self) -> str:
        return f"for {self.lasted_s:.0f} s of the load's {self.load_s:.0f} s events waited for the fault"


def outage_of(recoveries: Sequence[Recovery], load_s: float) -> Outage:
    return Outage(outage_s(recoveries, load_s), load_s)


def quantiles(latency: Latency, names: Mapping[str, float], outage: Outage) -> str:
    """In words. A quantile that lies in an outage is the fault's and not the engine's: it is withheld."""
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
    """An engine that nobody interrupted has neither figure, and no outage."""
    found = [recovery.quantities.get(name) for name in (FIRST_OUTPUT, CAUGHT_UP)]
    known = [each for each in found if each is not None]
    if not known:
        return recovery.struck_s
    if all(each.value is not None for each in known):
        return recovery.struck_s + max(each.value or 0.0 for each in known)
    return recovery.until_s


def in_words(recoveries: Sequence[Recovery]) -> str:
    """How an engine came back from each fault that interrupted it; "" where none did."""
    return "; ".join(_clause(each) for each in recoveries if _end_s(each) - each.struck_s >= INTERRUPTED_S)


def _clause(recovery: Recovery) -> str:
    """What is not known of it stands on the page, with its reason."""
    figures = (
        (name, recovery.quantities.get(key)) for name, key in (("first output", FIRST_OUTPUT), ("caught up", CAUGHT_UP))
    )
    said = [f"{name} {_text(figure)}" for name, figure in figures if figure is not None]
    return f"{', '.join(said)} after {recovery.fault} struck"


def _text(quantity: Quantity) -> str:
    return quantity.text(lambda value: f"{value:.1f} s")
