"""Drives `run --repeat`: new runs one after the other in one experiment, and one answer for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.drivers import one_run
from harness.experiments import repeat
from harness.experiments.folder import Folder
from harness.install import environment
from harness.model import EngineManifest, RunSpec
from harness.rundir.store import Store
from harness.terminal import console
from harness.terminal.command_end import short_path
from reports.result import Result


@dataclass(frozen=True)
class Done:
    """The finished rounds and their answer."""

    path: Path
    answer: repeat.Repeated
    results: tuple[Result, ...]


def drive(spec: RunSpec, engine_manifest: EngineManifest, rounds: int, out: Path) -> Done:
    experiment = Folder.create(out.absolute(), f"repeat-{spec.title}-{spec.engine}")
    with experiment.going_on(
        f"`streamgauge ls {short_path(experiment.path)}` lists its rounds; each is a run", experiment.without_runs
    ):
        done = _drive(experiment, spec, engine_manifest, rounds)
        experiment.finished(done.answer.outcome, done.answer.sentence)
    return done


def _drive(experiment: Folder, spec: RunSpec, engine_manifest: EngineManifest, rounds: int) -> Done:
    results: list[Result] = []

    def run_round(each: RunSpec) -> repeat.Round:
        console.note(f"round {len(results) + 1} of {rounds}, seed {each.tape.seed}")
        results.append(one_run.drive(each, engine_manifest, experiment.runs))
        return _round(results[-1])

    def keep(done: Sequence[repeat.Round]) -> None:
        experiment.save("repeat", spec=spec.public(), environment=environment.describe(), rounds=done, wanted=rounds)

    keep(())
    done = repeat.repeat(spec, rounds, run_round, keep)
    stores = [Store(each.path) for each in results]
    samples = [each.read_table("latency.parquet") for each in stores if each.has("latency.parquet")]
    answer = repeat.answer(done, samples, spec.tape.seed)
    _save(answer, spec, engine_manifest, experiment.path)
    return Done(experiment.path, answer, tuple(results))


def _save(answer: repeat.Repeated, spec: RunSpec, engine_manifest: EngineManifest, folder: Path) -> None:
    """Save the answer. Drawing is slow to import, and most commands draw nothing."""
    from reports import repeated

    repeated.save(answer, spec, engine_manifest, environment.describe(), folder)


def _round(result: Result) -> repeat.Round:
    figures = repeat.figures(result.measurement)
    verdict, seed = result.verdict, result.spec.tape.seed
    return repeat.Round(seed, str(result.path), verdict.outcome, verdict.sentence, figures, result.withheld)
