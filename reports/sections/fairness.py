"""The fairness card: every setting that must be equal for a comparison with this run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from harness.config import plan
from harness.model import RunSpec, Segment
from harness.rundir.missing_evidence import MissingEvidence
from reports.evidence import Evidence
from reports.page import Section, Table


def section(evidence: Evidence) -> Section:
    spec, manifest = evidence.spec, evidence.manifest
    claim = manifest.sink(spec.sink)
    default, _ = plan.resolve(spec.scenario, {}, {"engine": spec.engine, "sink": spec.sink}, lambda *_: manifest)
    changed = tuple(_changed(settings(spec), settings(default)))
    late = "drops late events" if claim.late == "drop" else "keeps late events"
    own, missing = _own(evidence)
    return Section(
        "fairness",
        "Fairness card",
        missing=missing,
        text=(
            f"{spec.engine} with sink {spec.sink} claims {claim.guarantee} and {late}.",
            *(() if changed else ("Every setting has its default.",)),
            *(() if own or missing else ("The job does not report its own settings.",)),
        ),
        tables=(
            *(
                (Table(("setting", "here", "default"), changed, "Settings that differ from the defaults"),)
                if changed
                else ()
            ),
            *(
                (Table(("setting", "value"), own, "Settings that the job changes from its engine's defaults"),)
                if own
                else ()
            ),
            Table(("", ""), tuple(flat(evidence.environment)), "Machine and versions"),
            Table(("setting", "value"), tuple(settings(spec).items()), "All settings of this run", folded=True),
        ),
    )


def machine(environment: Mapping[str, Any], called: str = "machine") -> Section:
    """Return the section with the machine and the versions of an experiment."""
    return Section(called, "Machine and versions", tables=(Table(("", ""), tuple(flat(environment))),))


def _own(evidence: Evidence) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The job's own settings, and a message if they are missing."""
    try:
        return tuple(evidence.engine_settings.items()), ()
    except MissingEvidence as error:
        return (), (f"{error}, so the job's own settings are not known.",)


def settings(spec: RunSpec) -> dict[str, str]:
    """Return each setting as text, by the name that users know."""
    found = dict(flat({**spec.public(), "tape": None, "fault": spec.fault.text}))
    tape = asdict(spec.tape)
    segments = {"profile": spec.tape.profile, "warm_up": spec.tape.warm_up}
    found |= {name: profile(chain) or "none" for name, chain in segments.items()}
    found |= flat({name: value for name, value in tape.items() if name not in segments})
    return {name: value for name, value in found.items() if name not in ("scenario", "tape")}


def profile(segments: tuple[Segment, ...]) -> str:
    """Write segments such as `10,000/s for 30 s`, joined by "then"."""
    return ", then ".join(
        f"{_rate(s.start_per_s)}/s{'' if s.start_per_s == s.end_per_s else f' to {_rate(s.end_per_s)}/s'}"
        f" for {s.duration_ms / 1000:g} s"
        for s in segments
    )


def _rate(per_s: float) -> str:
    return f"{per_s:,.10g}"


def _changed(here: Mapping[str, str], default: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in {**default, **here}:
        if here.get(name, "") != default.get(name, ""):
            yield name, here.get(name, "not set"), default.get(name, "not set")


NO_LIMIT = {"late_dropped_max": "any number"}


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Turn nested mappings into rows. `packages.numpy` becomes `numpy`; dials of disorder keep their prefix."""
    for name, value in values.items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from flat(value, "" if name == "packages" else f"{full}.")
        else:
            yield full, NO_LIMIT.get(full, "none") if value is None else _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if value < 10**12 else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "not set"
    return f"{value:,g}" if isinstance(value, float) else str(value) or "not set"
