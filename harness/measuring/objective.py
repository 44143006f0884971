"""Check whether the run met its speed objective, after the figures are known."""

from __future__ import annotations

from dataclasses import replace

from harness.measuring.measurement import Measurement
from harness.model import CheckResult, Outcome, Verdict


def with_objective(
    verdict: Verdict, measurement: Measurement | None, objective_p99_ms: float | None, starved: str = ""
) -> Verdict:
    """Add the check `objective` to a verdict, if an objective was given.

    `starved`: the CPU that the machine gave an engine that it kept from running.
    """
    if objective_p99_ms is None:
        return verdict
    result = check(measurement, objective_p99_ms, starved)
    outcome = Outcome.worst([verdict.outcome, result.outcome])
    sentence = verdict.sentence if outcome is verdict.outcome else f"{result.word}: {result.sentence}"
    return replace(verdict, outcome=outcome, sentence=sentence, checks=(*verdict.checks, result))


def check(measurement: Measurement | None, objective_p99_ms: float, starved: str = "") -> CheckResult:
    """Compare p99 latency with the objective; UNKNOWN if the figure was withheld."""
    p99_ms = headline_p99_ms(measurement)
    if p99_ms is None:
        sentence = f"p99 latency was not measured, so the objective of {objective_p99_ms:,.0f} ms can't be judged"
        return CheckResult("objective", Outcome.UNKNOWN, sentence, word="no speed", blame="evidence")
    kept = p99_ms <= objective_p99_ms
    sentence = f"p99 of latency is {p99_ms:,.0f} ms, {objective_p99_ms:,.0f} ms are allowed"
    if kept:
        return CheckResult("objective", Outcome.PASS, sentence)
    if starved:
        sentence += f", and the machine did not let the engine run: {starved}"
        return CheckResult("objective", Outcome.UNKNOWN, sentence, word="starved", blame="evidence")
    return CheckResult("objective", Outcome.FAIL, sentence, word="slow", blame="engine")


def headline_p99_ms(measurement: Measurement | None) -> float | None:
    """Return p99 by probes, which are exact whatever the disorder, else rank-matched."""
    ways = [measurement.latency_by(way) for way in ("probes", "rank-matched")] if measurement else []
    return next((each.corrected.p99 for each in ways if each and each.corrected.p99 is not None), None)
