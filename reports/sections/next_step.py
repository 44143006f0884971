"""Suggested next steps: questions that follow from the outcome, each with its command. There is a section for each kind
of page.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ParamSpec

from harness.experiments import compare
from harness.experiments.chaos import Card, ChaosCase, Seen
from harness.experiments.gating import gate
from harness.experiments.gating.gate import HEAD, Gated
from harness.install.origin import COMMAND
from harness.model import EngineManifest, Outcome, RunSpec, Verdict
from harness.rundir.missing_evidence import unless_missing
from reports.evidence import Evidence
from reports.listing import can_be_judged
from reports.page import Section, Table
from reports.sections import reproduce

P = ParamSpec("P")
Step = tuple[str, str]  # the question, and the command that answers it
TITLE = "Next steps"
MORE_PATIENCE = 3.0  # as the sentence of a starved run advises
HARD = ("kill@offset=50%", "pause(for=5s)@t>=10s", "redis-restart-empty@t>=10s")


def _section(steps_of: Callable[P, Iterator[Step]]) -> Callable[P, Section]:
    """Decorate a function that yields steps, so that it returns their section."""

    @functools.wraps(steps_of)
    def section_of(*args: P.args, **kwargs: P.kwargs) -> Section:
        return Section("next", TITLE, tables=(Table(("to see", "command"), tuple(steps_of(*args, **kwargs))),))

    return section_of


def place_of(path: Path) -> str:
    """Return the path relative to the folder where the command ran, because a page contains no absolute path."""
    parts = path.parts
    base = next((name for name in ("experiments", "runs") if name in parts), None)
    return shlex.quote("/".join(parts[len(parts) - 1 - parts[::-1].index(base) :]) if base else path.name)


@_section
def section(evidence: Evidence) -> Iterator[Step]:
    """Return the section of one run. Experiments have `of_...` for each kind."""
    run = place_of(evidence.store.path)
    verdict = unless_missing(lambda: evidence.verdict)
    if verdict is None:
        yield from _when_undecided(run)
        if not can_be_judged(evidence.store):
            yield "the verdict on the same plan, run again", f"{COMMAND} replay {run}"
        return
    spec, manifest, outcome = evidence.spec, evidence.manifest, verdict.outcome
    recipe, planned = reproduce.recipe_of(spec, manifest), spec.fault.text != "none"
    if outcome is Outcome.PASS:
        yield from _after_a_pass(spec, manifest, recipe, planned=planned)
        return
    if outcome is Outcome.FAIL and planned:
        yield "whether the fault is the cause: the same run without it", recipe.varied(fault="none")
    if outcome is Outcome.FAIL and manifest.checksum and not spec.tape.checksum:
        yield "which events were lost or counted twice", recipe.varied(checksum=True)
    if outcome is Outcome.UNKNOWN:
        yield from _by_cause(verdict, spec, recipe)
        yield from _when_undecided(run)
    yield "whether the outcome is the same again", f"{COMMAND} replay {run}"


def _by_cause(verdict: Verdict, spec: RunSpec, recipe: reproduce.Recipe) -> Iterator[Step]:
    """Steps that would have decided the run."""
    undecided = {check.name: check.word for check in verdict.checks if check.outcome is Outcome.UNKNOWN}
    if undecided.get("engine") == "starved":
        yield "whether it finishes with more time", recipe.varied(patience=MORE_PATIENCE * spec.patience)
    if "fault" in undecided:
        yield "whether the counts are right without the fault", recipe.varied(fault="none")


def _when_undecided(run: str) -> Iterator[Step]:
    yield "whether anything is missing on this machine", f"{COMMAND} doctor"
    yield "the verdict on the files of the run now", f"{COMMAND} recheck {run}"


def _after_a_pass(
    spec: RunSpec, manifest: EngineManifest, recipe: reproduce.Recipe, *, planned: bool
) -> Iterator[Step]:
    engine = manifest.named
    if not planned and manifest.resumes:
        hard = "kill@offset=50%" if manifest.progress else "kill@t>=10s"
        yield "whether it stays right when it is killed", recipe.varied(fault=hard)
    if planned:
        yield "whether it stays right under other faults", chaos_of(engine)
    yield "how fast it can be", shlex.join([COMMAND, "search", "--engine", engine, "--sink", spec.sink])


def chaos_of(engine: str) -> str:
    return shlex.join([COMMAND, "chaos", "--engine", engine, *(w for each in HARD for w in ("--fault", each))])


@_section
def of_chaos(path: Path, card: Card, missing: Sequence[ChaosCase]) -> Iterator[Step]:
    place = place_of(path)
    if missing:
        yield "the missing runs", f"{COMMAND} chaos --resume {place}"
    for cell in [cell for cell in card.cells if cell.kept is False or cell.seen is Seen.UNKNOWN]:
        if cell.witness:
            what = "is below its claim again" if cell.kept is False else "can be decided now"
            replay = f"{COMMAND} replay {place}/{shlex.quote(cell.witness)}"
            yield f"whether {cell.engine}/{cell.sink} under {cell.fault} {what}", replay
    if card.outcome is Outcome.PASS and not missing:
        yield "every fault on every engine and sink", f"{COMMAND} chaos --tier nightly"


@_section
def of_search(path: Path, engine: str, *, held: bool, finished: bool) -> Iterator[Step]:
    if not finished:
        yield "the rest of this search", f"{COMMAND} search --resume {place_of(path)}"
    if not held:
        yield (
            "the verdict on a slow, calm run",
            shlex.join([COMMAND, "run", "calm", "--engine", engine, "--rate", "100"]),
        )
        return
    yield "the results of other engines", shlex.join([COMMAND, "compare", engine, "--search"])
    yield "whether it stays right under faults", chaos_of(engine)


@_section
def of_comparison(
    path: Path, found: compare.Table, command: Sequence[str], *, missing: int, quick: bool
) -> Iterator[Step]:
    if missing:
        yield "the missing runs", f"{COMMAND} compare --resume {place_of(path)}"
    for row in found.rows:
        if not row.right and row.witness:
            yield (
                f"whether {row.engine} has the same outcome again",
                f"{COMMAND} replay {place_of(path)}/{row.witness}",
            )
    if quick and not missing:
        more = [word for word in command if word != "--quick"]
        yield "the variation of the figures: five rounds, with intervals", shlex.join(more)
    if "--search" not in command:
        yield "the highest rate that each sustains", shlex.join([*command, "--search"])


@_section
def of_gate(path: Path, found: Gated, again: Callable[..., str], budget_s: float) -> Iterator[Step]:
    """Return the section of a gate. `again` makes its command with changed arguments."""
    if found.sides[HEAD].outcome is Outcome.FAIL:
        run = f"{place_of(path)}/{shlex.quote(found.sides[HEAD].run)}"
        yield "the verdict on the files of the head, judged again", f"{COMMAND} recheck {run}"
    elif not found.effects:
        if found.right and found.starts < gate.FEWEST_STARTS:
            minutes = found.budget_for(gate.FEWEST_STARTS)
            yield "whether enough starts are conclusive", again(budget_s=60 * minutes or 2 * budget_s)
        else:
            yield "whether anything is missing on this machine", f"{COMMAND} doctor"
            yield "whether the next gate is conclusive", again()
    elif found.answer is gate.Answer.REGRESSED:
        yield "whether it is slower again", again()
    elif found.answer is gate.Answer.INCONCLUSIVE:
        if more := found.more_budget_s(budget_s):
            yield "whether more starts are conclusive", again(budget_s=more)
        told = found.can_detect
        yield f"whether it is slower by {told}%, which can be detected here", again(threshold=told / 100)
