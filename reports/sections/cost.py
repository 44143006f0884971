"""The section with the costs of a run as bars, the engine's first."""

from __future__ import annotations

from collections.abc import Iterator

from harness.measuring.cost import ENGINE, basis
from harness.measuring.measurement import Cost, Measurement
from harness.rundir.missing_evidence import MissingEvidence
from harness.util.texts import three_digits
from reports.evidence import Evidence
from reports.figures import cost
from reports.figures.style import picture
from reports.page import Section


def section(evidence: Evidence) -> Section:
    measurement = evidence.measurement
    if not measurement.cost:
        raise MissingEvidence("the CPU use of this run's processes was not recorded, so its cost is not known")
    bars = tuple(_bar(each) for each in sorted(measurement.cost, key=lambda each: each.part not in ENGINE))
    per = basis(measurement)
    title = f"CPU seconds per million events {per}"
    told = ", ".join(f"{bar.part} {three_digits(bar.user_s + bar.system_s)}" for bar in bars)
    return Section(
        "cost",
        "Cost",
        picture=picture("cost", f"{title}: {told}", lambda sheet: cost.draw(bars, per, sheet)),
        text=tuple(_text(measurement)),
    )


def _bar(each: Cost) -> cost.Bar:
    used_s = each.cpu_user_s + each.cpu_system_s
    user = each.cpu_user_s / used_s if used_s else 0.0
    return cost.Bar(
        each.part,
        each.cpu_s_per_million * user,
        each.cpu_s_per_million * (1 - user),
        each.peak_rss_mib,
        each.part in ENGINE,
    )


def _text(measurement: Measurement) -> Iterator[str]:
    if measurement.cost_withheld:
        yield f"The engine's cost is withheld: {measurement.cost_withheld}."
    yield "Whole process trees with ended children, from the first event until all was drained, and the peak memory."
    if measurement.checkpoint_bytes is not None:
        yield f"The checkpoint grew to {measurement.checkpoint_bytes / 2**20:,.1f} MiB."
    if measurement.gc_s is not None:
        yield f"The engine's JVM spent {measurement.gc_s:.2f} s on garbage collection."
    if (observer := measurement.observer) is not None:
        yield (
            f"Observer and harness took {observer.cpu_share:.1%} of one core: {observer.scans:,} polls of "
            f"{observer.cells_sampled_share:.0%} of the cells, one each {observer.period_ms:.0f} ms "
            f"(p99 {observer.period_p99_ms:.0f} ms)."
        )
