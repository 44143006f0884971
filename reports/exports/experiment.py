"""The answer of an experiment for a CI job: a JUnit suite whose cases are its runs, and a summary in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.experiments.cases import RanCase
from harness.host import disk_space
from harness.model import Outcome
from harness.rundir.store import Store
from harness.util.text_tables import markdown
from reports.exports import suite
from reports.result import span_ms


@dataclass(frozen=True)
class ExperimentCase:
    """One run of an experiment with its outcome. `run` is empty if the run was not made."""

    group: str  # the classname: scenario, engine and sink
    name: str
    outcome: Outcome | None  # None: not possible there
    sentence: str
    run: str = ""  # its directory, relative to the experiment's
    word: str = ""


@dataclass(frozen=True)
class Answer:
    """The result of an experiment."""

    name: str
    outcome: Outcome
    sentence: str
    command: str
    facts: Mapping[str, str]  # seed, machine, versions
    cases: tuple[ExperimentCase, ...]


def cases_of(
    scenario: str, done: Sequence[RanCase], missing: Sequence[Any], words: Callable[[Any], str]
) -> tuple[ExperimentCase, ...]:
    """Return a case for each run, made or missing."""
    runs = [(each.case, each.outcome, each.sentence, each.run) for each in done]
    runs += [(case, Outcome.UNKNOWN, "not run", "") for case in missing]
    return tuple(
        ExperimentCase(
            suite.classname((scenario, case.engine)), f"{words(case)}, seed {case.seed}", outcome, sentence, run
        )
        for case, outcome, sentence, run in runs
    )


def save(answer: Answer, folder: Path) -> None:
    disk_space.write(folder / "junit.xml", as_xml(answer, folder))
    disk_space.write(folder / "summary.md", ("\n".join(as_text(answer)) + "\n").encode())


def as_xml(answer: Answer, folder: Path) -> bytes:
    spans = [(span_ms(Store(folder / case.run)) if case.run else None) for case in answer.cases]
    known = [span for span in spans if span]
    began = datetime.fromtimestamp(min(begin for begin, _ in known) / 1000, UTC) if known else None
    facts = {"verdict": answer.outcome.value, "command": answer.command, **answer.facts}
    return suite.as_xml(
        suite.Suite(
            name=f"streamgauge.{answer.name}",
            cases=tuple(_case(case, span) for case, span in zip(answer.cases, spans, strict=True)),
            properties=tuple(facts.items()),
            began=began,
            took_s=sum(end - begin for begin, end in known) / 1000,
            out=f"{answer.outcome.value}  {answer.sentence}",
        )
    )


def _case(case: ExperimentCase, span: tuple[int, int] | None) -> suite.JunitCase:
    begin, end = span or (0, 0)
    word = case.word or (case.outcome.value if case.outcome else "n/a")
    out = "\n".join(filter(None, (case.sentence if case.outcome is Outcome.PASS else "", case.run)))
    return suite.JunitCase(case.group, case.name, case.outcome, case.sentence, word, out, (end - begin) / 1000)


def as_text(answer: Answer) -> Iterator[str]:
    yield f"## streamgauge {answer.name}: {answer.outcome.value}"
    yield ""
    yield f"{answer.sentence}."
    yield ""
    yield f"    {answer.command}"
    yield ""
    yield from markdown(("case", "on", "outcome", "what was seen", "run"), [_row(case) for case in answer.cases])
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in answer.facts.items())


def _row(case: ExperimentCase) -> Sequence[str]:
    outcome = "n/a" if case.outcome is None else case.outcome.value
    return f"`{case.name}`", case.group, outcome, case.sentence, f"`{case.run}`" if case.run else ""
