"""One of two runs that are shown side by side, as values. Whatever can't be read is named in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.measuring.measurement import Measurement, Recovery
from harness.model import RunSpec, Verdict
from harness.rundir.missing_evidence import MissingEvidence, from_files, unless_missing
from harness.rundir.store import Store
from reports.browse.index import SPEC, Entry
from reports.evidence import Evidence
from reports.outage import Outage, outage_of

TIMELINE = "figures/timeline.svg"
T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """One run."""

    entry: Entry
    outcome: str  # or its state, if it has no verdict
    sentence: str
    plan: Mapping[str, str]  # setting -> value
    engine: Mapping[str, str]  # key of its manifest -> value
    machine: Mapping[str, str]
    events: str  # the digest of the tape; "": unknown
    expected: str  # the digest of the expected counts; "": unknown
    verdict: Verdict | None
    measurement: Measurement | None
    withheld: str  # why there is no measurement
    recovery: tuple[Recovery, ...]
    has_timeline: bool

    @property
    def outage(self) -> Outage:
        return outage_of(self.recovery, self.measurement.load_s if self.measurement else 0.0)


def read(entry: Entry, store: Store) -> Side:
    """Read a run. Raise UsageError if it was written by a newer program."""
    run = Evidence(Store.open(store.path))
    verdict = _known(lambda: run.verdict)
    measurement, withheld = _measured(run)
    sealed = _json(run, "plan.json")
    return Side(
        entry,
        verdict.outcome.value if verdict else entry.state,
        verdict.sentence if verdict else entry.sentence,
        plan=plan_of(run.store),
        engine=flat(sealed.get("manifest")),
        machine=flat(_json(run, "environment.json")),
        events=_digest(sealed, "tape"),
        expected=_digest(sealed, "expected"),
        verdict=verdict,
        measurement=measurement,
        withheld=withheld,
        recovery=_known(lambda: run.recovery) or () if measurement else (),
        has_timeline=store.has(TIMELINE),
    )


def _known(read: Callable[[], T]) -> T | None:
    """Return None for evidence that is missing, or that contradicts itself."""
    return unless_missing(lambda: from_files("the comparison", read))


def _measured(run: Evidence) -> tuple[Measurement | None, str]:
    try:
        return from_files("the comparison", lambda: run.measurement), ""
    except MissingEvidence as error:
        why = _known(lambda: run.withheld)
        return None, why or str(error)


def _json(run: Evidence, name: str) -> Mapping[str, Any]:
    """Read a file as it is: a run of an older version has other keys."""
    found: Any = unless_missing(lambda: run.store.read_json(name))
    return found if isinstance(found, Mapping) else {}


def _digest(sealed: Mapping[str, Any], key: str) -> str:
    part = sealed.get(key)
    digest = part.get("digest") if isinstance(part, Mapping) else None
    return digest if isinstance(digest, str) else ""


# ---------------------------------------------------------------- Settings as texts


def plan_of(store: Store) -> dict[str, str]:
    """Return each setting of a run under the name that it has in spec.json; a fault and a profile in words. A setting
    that an older version did not have stands at its default.
    """
    known = unless_missing(lambda: store.read_as(SPEC, RunSpec).public())
    spec: Any = known or unless_missing(lambda: store.read_json(SPEC))
    return in_words(spec) if isinstance(spec, Mapping) else {}


def in_words(spec: Mapping[str, Any]) -> dict[str, str]:
    return dict(_plan(spec))


def _plan(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    tape = spec.get("tape")
    inside = tape if isinstance(tape, Mapping) else {}
    for key, value in {**{key: each for key, each in spec.items() if key != "tape"}, **inside}.items():
        if key == "fault" and isinstance(value, Mapping) and isinstance(value.get("text"), str):
            yield key, value["text"]
        elif key in ("profile", "warm_up") and (words := _profile(value)) is not None:
            yield key, words
        else:
            yield from flat(value, key).items()


def _profile(value: Any) -> str | None:
    """Write the segments of a load; None if they have another form."""
    try:
        return ", then ".join(
            f"{each['start_per_s']:,.0f}/s"
            + (f" to {each['end_per_s']:,.0f}/s" if each["end_per_s"] != each["start_per_s"] else "")
            + f" for {each['duration_ms'] / 1000:g} s"
            for each in value
        )
    except (KeyError, TypeError, ValueError):
        return None


def flat(value: Any, name: str = "") -> dict[str, str]:
    """Return nested values as texts, under dotted names."""
    inside: Mapping[str, Any] = {}
    if isinstance(value, Mapping):
        inside = value
    elif isinstance(value, list | tuple) and any(isinstance(each, Mapping | list | tuple) for each in value):
        inside = {str(number): each for number, each in enumerate(value)}
    elif value not in (None, "", [], (), {}):
        return {name: _text(value)}
    prefix = f"{name}." if name else ""
    return {key: text for part, each in inside.items() for key, text in flat(each, f"{prefix}{part}").items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
