"""All exports of a gate into its folder. To add one, add a line to EXPORTS."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from harness.experiments.gating.gate import Answer, Gated
from harness.experiments.gating.rounds import METRICS
from harness.host import disk_space
from harness.install.origin import COMMAND
from harness.model import Outcome
from harness.util.text_tables import markdown
from harness.util.texts import many
from reports.command_flags import flag
from reports.exports import annotation, badge, benchmark, experiment, openmetrics, suite
from reports.exports.experiment import ExperimentCase
from reports.exports.markdown import versions
from reports.gated import HEADER, REACH, Record, in_words, line_of, notes, row
from reports.page import Section
from reports.sections import next_step

OUTCOMES = {
    Answer.REGRESSED: Outcome.FAIL,
    Answer.OK: Outcome.PASS,
    Answer.IMPROVED: Outcome.PASS,
    Answer.INCONCLUSIVE: None,
}


def save(record: Record) -> None:
    for name, make in EXPORTS.items():
        disk_space.write(record.folder.path / name, make(record).encode())


def _junit(record: Record) -> str:
    """A regression is a failure, an inconclusive metric is skipped with its reason, a side without a verdict is an
    error.
    """
    found = record.found
    cases = (*_sides(found), _starts(found), *_effects(found))
    facts = {"answer": found.answer.value, **dict(versions(record.environment))}
    answer = experiment.Answer("gate", found.outcome, found.sentence, command(record), facts, cases)
    return experiment.as_xml(answer, record.folder.path).decode()


def _sides(found: Gated) -> Iterator[ExperimentCase]:
    group = suite.classname(("gate", "counts"))
    for name, side in found.sides.items():
        yield ExperimentCase(group, name, side.outcome, side.sentence, side.run)


def _starts(found: Gated) -> ExperimentCase:
    """An early end is an error, whatever the sides have counted."""
    outcome = Outcome.UNKNOWN if found.broken else Outcome.PASS
    return ExperimentCase(suite.classname(("gate",)), "starts", outcome, found.broken or many(found.starts, "start"))


def _effects(found: Gated) -> Iterator[ExperimentCase]:
    """Each metric has a case in every gate, because a CI report shows a missing case as a deleted test."""
    group, told = suite.classname(("gate", "speed")), {each.metric: each for each in found.effects}
    for metric in METRICS:
        if metric.name in told:
            effect = told[metric.name]
            sentence = "; ".join(filter(None, (in_words(effect), effect.reason)))
            yield ExperimentCase(group, metric.name, OUTCOMES[effect.answer], sentence)
        else:
            yield ExperimentCase(group, metric.name, None, f"nothing was compared: {found.sentence}")


def _summary(record: Record) -> str:
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Record) -> Iterator[str]:
    found = record.found
    yield f"## streamgauge gate: {found.answer.value}"
    yield ""
    yield f"{found.sentence[:1].upper()}{found.sentence[1:]}."
    yield ""
    if found.effects:
        drawn = [(*row(each)[:3], f"`{line_of(each)}`", *row(each)[3:]) for each in found.effects]
        yield from markdown((*HEADER[:3], f"-{REACH} thresholds to +{REACH}", *HEADER[3:]), drawn)
        yield ""
    table = steps(record).tables[0].rows
    yield from (f"- To see {why}: `{step}`" for why, step in table)
    yield f"- To do it again: `{command(record)}`"
    yield ""
    yield "<details><summary>Sides, conditions and versions</summary>"
    yield ""
    sides = [
        (name, f"`{record.named[name]}`", side.outcome.value, side.sentence, f"`{side.run}`" if side.run else "")
        for name, side in found.sides.items()
    ]
    yield from markdown(("side", "what", "counts", "in words", "run"), sides)
    yield ""
    yield from (f"- {note.strip()}" for note in notes(found) if note)
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in versions(record.environment))
    yield ""
    yield "</details>"


def steps(record: Record) -> Section:
    """Return the section with commands to try next."""
    return next_step.of_gate(record.folder.path, record.found, partial(command, record), record.asked["budget_s"])


def _annotation(record: Record) -> str:
    """The answer first, then sides that are not right unless the answer names them, then all metrics."""
    found = record.found
    sides = (
        f"{name} ({record.named[name]}): {side.outcome.value}, {side.sentence}"
        for name, side in found.sides.items()
        if side.outcome is not Outcome.PASS and side.sentence not in found.sentence
    )
    speed = (f"{each.metric}: {each.answer.value}, {in_words(each)}" for each in found.effects)
    return annotation.as_text(
        found.outcome, f"streamgauge gate: {found.answer.value}", (found.sentence, *sides, *speed)
    )


def command(record: Record, **changes: Any) -> str:
    """Return the command of this gate, with some arguments changed."""
    asked = {**record.asked, **changes}
    saves = asked.get("saves", "")
    words = [COMMAND, "gate", *([] if saves else ["--base", asked["base"]]), "--head", asked["head"]]
    words += ["--engine", asked["engine"]] if asked["engine"] else []
    words += ["--save-baseline", saves] if saves else ["--threshold", f"{asked['threshold'] * 100:g}%"]
    words += ["--budget", f"{asked['budget_s'] / 60:g}"]
    words += ["--burst", str(asked["burst_events"])] if asked["burst_events"] else []
    return shlex.join([*words, *(word for name, value in asked["flags"].items() for word in flag(name, value))])


EXPORTS: Mapping[str, Callable[[Record], str]] = {
    "junit.xml": _junit,
    "summary.md": _summary,
    annotation.FILE: _annotation,
    "benchmark.json": benchmark.of_gate,
    "badge.json": badge.of_gate,
    "metrics.prom": openmetrics.of_gate,
}
