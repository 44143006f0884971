"""A search: latency against the rate, and the interval in which it crosses the objective. Pure.

It has several engine runs. In each an engine is started once and gets one rate after the other, which are chosen while
it runs (`curve/steer.py`). The measurements of all runs give one answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.experiments.curve import crossing, steer
from harness.experiments.curve import lives as lives_of
from harness.experiments.curve.labels import COUNTED, Held, Label, visits
from harness.experiments.curve.plateau import Measured
from harness.model import Outcome, RunSpec
from harness.util.texts import many

# The keys that a search overrides, because it makes its own load.
WITHOUT: Mapping[str, Any] = {
    "fault": "none",
    "checksum": False,
    "states": 0,
    "backlog": "0s",
    "history": "0s",
    "seam": "offset",
    "backfill": "",
    "backfill_kill": False,
    "requires": [],
}
# These are no flags of a search: it chooses its load itself, without any load before or after.
OF_ONE_LOAD = ("rate", "duration", "warm_up", *WITHOUT)
# Its first rate is at most so many times the rate of the scenario.
FASTER = 5
# Estimated time besides the load: starting, draining, reading, judging, measuring.
OVERHEAD_S = 60
# The delay is checked once per window: an event may wait so many windows longer.
LATER_WINDOWS = 3


@dataclass(frozen=True)
class Settings:
    lives: int = 3
    life: steer.Settings = steer.QUICK


WHOLE = Settings(life=replace(steer.QUICK, pulse_times=2.0))
QUICK = Settings(lives=1)


@dataclass(frozen=True)
class Unit:
    """The reference engine's figures on this machine, catching up after it was frozen at a stated rate."""

    catch_up_per_s: float
    cpu_s_per_million: float
    offered_per_s: float


@dataclass(frozen=True)
class Lived:
    """One engine run and the result of its run."""

    run: str  # its directory, relative to the search's
    outcome: Outcome
    sentence: str
    seconds: float
    whole: bool  # it got all of the planned load
    parts_s: Mapping[str, float] = field(default_factory=dict)  # of these seconds, by phase


@dataclass(frozen=True)
class Found:
    """The result so far."""

    outcome: Outcome
    sentence: str
    answer: crossing.Answer | None  # None: nothing could be measured

    @property
    def low_per_s(self) -> float | None:
        return self.answer.low_per_s if self.answer else None

    @property
    def high_per_s(self) -> float | None:
        return self.answer.high_per_s if self.answer else None


def of(spec: RunSpec, settings: Settings, objective_p99_ms: float | None) -> Settings:
    """Return the settings of a search for this run, with its windows, and its objective if it has one.

    The first rate depends on the scenario's: a job that does a hundred events a second would work on one window of
    50,000/s for an hour and more.
    """
    start_per_s = min(settings.life.start_per_s, FASTER * spec.tape.profile[0].start_per_s)
    life = replace(settings.life, window_ms=spec.window_ms, start_per_s=start_per_s)
    return replace(settings, life=replace(life, objective_p99_ms=objective_p99_ms or life.objective_p99_ms))


def spec_of_a_life(spec: RunSpec, settings: Settings) -> RunSpec:
    """Return the spec of an engine run. Its watermark is so large that a long delay makes no event late, whichever
    partition an overloaded engine reads first.
    """
    longest_ms = int(settings.life.patience_ms) + LATER_WINDOWS * settings.life.window_ms
    return replace(spec, watermark_ms=max(spec.watermark_ms, longest_ms))


def of_a_life(settings: Settings, first: Sequence[Measured]) -> steer.Settings:
    """Return the settings of an engine run. It repeats the link of the first run, whose measurements are `first`."""
    return replace(settings.life, link_per_s=lives_of.link_per_s([each.plateau for each in first]))


def finished(settings: Settings, lives: Sequence[Lived]) -> bool:
    """Check if the search is done. A run with wrong counts ends it, because no other run can change that."""
    return any(_ends_all(life) for life in lives) or sum(life.whole for life in lives) >= settings.lives


def _ends_all(life: Lived) -> bool:
    return life.outcome is Outcome.FAIL


_WITHOUT = ("no engine run finished", "no latency of an event was measured")


def found(settings: Settings, lives: Sequence[Lived], lived: Sequence[Sequence[Measured]]) -> Found:
    """Return the result. `lived` are the measurements of each run that was right."""
    objective_ms = settings.life.objective_p99_ms
    measured = [each for own in lived for each in own]
    answer = _answer([own for own in lived if own], objective_ms) if measured else None
    if wrong := next((life for life in lives if _ends_all(life)), None):
        return Found(Outcome.FAIL, f"no rate of an engine that failed: {_as_part(wrong.sentence)}", None)
    if answer is None:
        unknown = next((life.sentence for life in lives if life.outcome is not Outcome.PASS), _WITHOUT[bool(lives)])
        return Found(Outcome.UNKNOWN, f"nothing is known of any rate: {_as_part(unknown)}", None)
    sentence = _sentence(answer, measured, objective_ms)
    if not finished(settings, lives):
        whole = sum(life.whole for life in lives)
        return Found(
            Outcome.UNKNOWN, f"not finished, {whole} of {many(settings.lives, 'life', 'lives')}: {sentence}", answer
        )
    known = answer.low_per_s is not None
    return Found(Outcome.PASS if known else Outcome.UNKNOWN, sentence, answer)


def _answer(lived: Sequence[Sequence[Measured]], objective_ms: float) -> crossing.Answer:
    """The interval is withheld if it is at rates that the generator could not send."""
    answer, measured = lives_of.answer(lived, objective_ms), [each for own in lived for each in own]
    limit_per_s = generators_limit_per_s(measured)
    if limit_per_s is None or answer.high_per_s is None or answer.high_per_s < _highest_sound(measured):
        return answer
    return replace(answer, low_per_s=None, high_per_s=None, why_not="the generator was the limit")


def _as_part(sentence: str) -> str:
    return sentence.rstrip(".")


def _sentence(answer: crossing.Answer, measured: Sequence[Measured], objective_ms: float) -> str:
    if answer.low_per_s is not None and answer.high_per_s is not None:
        low, high = digits(answer.low_per_s), digits(answer.high_per_s)
        return f"p99 crosses {objective_ms:,.0f} ms between {low} and {high} events/s"
    held = next((label for label in reversed(answer.labels) if label.held is Held.YES), None)
    at_least = f"{held.rate_per_s:,.0f} events/s sustained" if held else _lowest(answer.labels)
    if too_much := _missed_everywhere(measured, objective_ms):
        return too_much
    if limit_per_s := generators_limit_per_s(measured):
        return f"{at_least}; the generator was the limit at {limit_per_s:,.0f}/s"
    return f"{at_least}; no interval, because {answer.why_not}"


def _missed_everywhere(measured: Sequence[Measured], objective_ms: float) -> str:
    """An objective below the engine's least latency is missed at every rate, which few events suffice to show."""
    halves = {rate: min(visit.events.quantile_ms(0.5) for visit in own) for rate, own in visits(measured).items()}
    if not halves or any(not half > objective_ms for half in halves.values()):
        return ""
    lowest_per_s = min(halves)
    return (
        f"at no rate were half of the events within {objective_ms:,.0f} ms: at {lowest_per_s:,.0f}/s, the lowest, p50 "
        f"is {halves[lowest_per_s]:,.0f} ms; ask for more with --objective-p99-ms"
    )


def _lowest(known: Sequence[Label]) -> str:
    failed = [label for label in known if label.held is Held.NO]
    if not failed:
        return "no rate was shown to be sustained"
    return f"no rate was sustained, and the lowest of them, {failed[0].rate_per_s:,.0f}/s, failed: {failed[0].reason}"


def generators_limit_per_s(measured: Sequence[Measured]) -> float | None:
    """Return the lowest rate that was not sent as planned, if all higher rates were not either. Looks are left out,
    because they go far beyond the capacity.
    """
    late = [each.plateau.rate_per_s for each in measured if each.plateau.why in COUNTED and each.unsound]
    return min((rate for rate in late if rate > _highest_sound(measured)), default=None)


def _highest_sound(measured: Sequence[Measured]) -> float:
    counted = (each for each in measured if each.plateau.why in COUNTED and not each.unsound)
    return max((each.plateau.rate_per_s for each in counted), default=0.0)


def shares(found: Found, units: Sequence[Unit]) -> tuple[float, float] | None:
    """Return the interval as a share of the reference's rate; the widest if that was measured more than once."""
    if not units or found.low_per_s is None or found.high_per_s is None:
        return None
    rates = [unit.catch_up_per_s for unit in units]
    return found.low_per_s / max(rates), found.high_per_s / min(rates)


def digits(rate_per_s: float) -> str:
    """Write a rate with three digits, which is all of its precision."""
    return f"{float(f'{rate_per_s:.3g}'):,.0f}"


def left_s(settings: Settings, lives: Sequence[Lived]) -> float:
    """Estimate the time that the rest takes."""
    wanted = 0 if finished(settings, lives) else settings.lives - sum(life.whole for life in lives)
    _, most_s = steer.budget_s(settings.life)["all"]
    each_s = max((life.seconds for life in lives if life.whole), default=float(most_s + OVERHEAD_S))
    return wanted * each_s
