"""The command line: the only module that knows every name. Each command is a few lines; the work is elsewhere.

Exit codes: 0 PASS, 1 FAIL, 2 usage, 3 UNKNOWN, 4 the harness or its environment broke. Answers go to stdout, all else
to stderr.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from generators import preview
from harness import __version__, console, doctor, jvm, measure, plan, store
from harness.engines import fake, manifest
from harness.experiments import bench as benches
from harness.experiments import repeat as repeats
from harness.experiments import search, tuning
from harness.experiments.folder import Folder
from harness.faults import registry
from harness.judge import judge
from harness.model import Certificate, EngineManifest, Exit, HarnessError, RunSpec, UsageError, Verdict
from harness.objective import headline_p99_ms, with_objective
from harness.run import run as run_nine_steps
from harness.services import children, keeper, owners
from harness.services.redis import find_server
from harness.settings import KEYS
from harness.store import MissingEvidence, Store
from harness.worlds.base import World
from harness.worlds.fake import FakeWorld
from harness.worlds.real import RealWorld, claim_external
from reports import load as reports_load
from reports import rounds as reports_rounds
from reports import screen
from reports.exports import junit, machine, markdown

if TYPE_CHECKING:
    from reports.page import Page

ROOT = Path(__file__).resolve().parent.parent
RUNS = Path("runs")
EXPERIMENTS = Path("experiments")
NO_CERTIFICATE = Certificate(False, ("there is no certificate",), 0, 0, 0, 0, {}, 0.0)

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]
Scenario = Annotated[str, typer.Argument(help="A shipped scenario (see --list) or the path of a .toml file.")]


def option(key: str) -> Any:
    """A flag of `run` whose help stands beside the key of the same name; without a value it is not given."""
    return typer.Option(help=KEYS[key].help, show_default=False)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"streamgauge {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version_asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Are a stream processor's counts right, and how fast were they right?"""


@app.command("run")
def run_command(
    scenario: Scenario = plan.DEFAULT_SCENARIO,
    *,
    listing: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False,
    engine: Annotated[str | None, option("engine")] = None,
    sink: Annotated[str | None, option("sink")] = None,
    rate: Annotated[str | None, option("rate")] = None,
    duration: Annotated[str | None, option("duration")] = None,
    seed: Annotated[str | None, option("seed")] = None,
    campaigns: Annotated[str | None, option("campaigns")] = None,
    partitions: Annotated[str | None, option("partitions")] = None,
    window: Annotated[str | None, option("window")] = None,
    watermark: Annotated[str | None, option("watermark")] = None,
    disorder: Annotated[str | None, option("disorder")] = None,
    fault: Annotated[str | None, option("fault")] = None,
    client: Annotated[str | None, option("client")] = None,
    kafka: Annotated[str | None, option("kafka")] = None,
    kafka_config: Annotated[str | None, option("kafka_config")] = None,
    redis: Annotated[str | None, option("redis")] = None,
    reset: Annotated[bool | None, option("reset")] = None,
    master: Annotated[str | None, option("master")] = None,
    checkpoint: Annotated[str | None, option("checkpoint")] = None,
    conf: Annotated[list[str] | None, option("conf")] = None,
    objective_p99_ms: Annotated[str | None, option("objective_p99_ms")] = None,
    repeat: Annotated[str | None, option("repeat")] = None,
    web: Annotated[bool | None, option("web")] = None,
    out: Annotated[Path, typer.Option(help="Folder in which run directories are made.")] = RUNS,
    as_json: Json = False,
) -> None:
    """One run: disorder, a fault, a verdict to the single event."""
    given = dict(locals())
    if listing:
        _list_scenarios(as_json)
        return
    flags = {key: value for key, value in given.items() if key in KEYS and value not in (None, [])}
    name, keys = plan.read_scenario(scenario)
    spec, engine_manifest = plan.resolve(name, keys, flags, find_manifest)
    _refuse_the_impossible(spec, engine_manifest)
    if (rounds := plan.rounds_of(name, keys, flags)) > 1:
        _repeated(spec, engine_manifest, rounds, out, as_json)
    result = _one_run(spec, engine_manifest, out)
    _answer("run", result, as_json)


def find_manifest(engine: str) -> EngineManifest:
    return fake.MANIFEST if engine == fake.MANIFEST.id else manifest.load(engine)


def _refuse_the_impossible(spec: RunSpec, engine_manifest: EngineManifest) -> None:
    """What can be known before anything is started or written."""
    if spec.engine == fake.MANIFEST.id:
        fake.check_conf(spec.conf)
    needs = registry.create(spec.fault, engine_manifest, engine_manifest.sink(spec.sink)).needs
    if needs:
        raise UsageError(f"{spec.fault.text} is n/a here: {'; '.join(needs)}. Choose another --fault, or none.")
    claim_external(spec)


def _one_run(spec: RunSpec, engine_manifest: EngineManifest, out: Path) -> reports_load.Result:
    place = Store.create(out.absolute(), f"{spec.scenario}-{spec.engine}")
    progress = console.progress()
    try:
        with children.guard():
            world: World = FakeWorld(spec, place) if spec.engine == "fake" else RealWorld(spec, engine_manifest, place)
            verdict = run_nine_steps(
                spec, engine_manifest, environment=environment(), world=world, store=place, screen=progress
            )
    finally:
        progress.close()
    return _report(place, verdict)


def _repeated(spec: RunSpec, engine_manifest: EngineManifest, rounds: int, out: Path, as_json: bool) -> NoReturn:
    """Fresh runs one after the other, and one answer for all of them."""
    place = Folder.create(out.absolute(), f"repeat-{spec.scenario}-{spec.engine}")
    results: list[reports_load.Result] = []

    def run_round(each: RunSpec) -> repeats.Round:
        console.say(f"round {len(results) + 1} of {rounds}, seed {each.tape.seed}")
        claim_external(each)
        results.append(_one_run(each, engine_manifest, place.runs))
        return _round(results[-1])

    def keep(done: Sequence[repeats.Round]) -> None:
        place.save("repeat", spec=spec.public(), environment=environment(), rounds=done, wanted=rounds)

    done = repeats.repeat(spec, rounds, run_round, keep)
    stores = [Store(each.path) for each in results]
    samples = [each.read_table("latency.parquet") for each in stores if each.has("latency.parquet")]
    answer = repeats.answer(done, samples, spec.tape.seed)
    if as_json:
        objects = [machine.as_object("run", each) for each in results]
        print(json.dumps(reports_rounds.as_object(answer, place.path, objects)))
    else:
        head = f"{rounds} rounds of {spec.scenario} on {spec.engine}/{spec.sink}"
        shown = [console.table(rows, header) + "\n" for header, rows in reports_rounds.tables(answer)]
        console.show_result(
            [f"{answer.outcome.value}  {head}: {answer.sentence}\n", *shown, str(place.path)], answer.outcome
        )
    raise typer.Exit(answer.outcome.exit_code)


def _round(result: reports_load.Result) -> repeats.Round:
    figures = repeats.figures(result.measurement)
    verdict, seed = result.verdict, result.spec.tape.seed
    return repeats.Round(seed, str(result.path), verdict.outcome, verdict.sentence, figures, result.withheld)


def _report(place: Store, verdict: Verdict) -> reports_load.Result:
    """Step nine: everything that is made from the files."""
    measurement = measure.save(place, verdict)
    spec: RunSpec = place.read_as("spec.json", RunSpec)
    place.write_json("verdict.json", with_objective(verdict, measurement, spec.objective_p99_ms))
    result = reports_load.load(place.path)
    place.write_bytes("junit.xml", junit.as_xml(result))
    place.write_bytes("summary.md", markdown.as_text(result).encode())
    _page(place)
    return result


def _page(place: Store) -> Page:
    """Drawing is slow to import, and most commands draw nothing."""
    from reports import run_page

    return run_page.write(place)


def _answer(command: str, result: reports_load.Result, as_json: bool) -> None:
    if as_json:
        print(json.dumps(machine.as_object(command, result)))
    else:
        console.show_result(screen.lines(result), result.verdict.outcome)
    raise typer.Exit(result.verdict.outcome.exit_code)


def _list_scenarios(as_json: bool) -> None:
    rows = [{"name": name, "what": what} for name, what in plan.scenarios().items()]
    _print_list("scenarios", rows, ("name", "what"), as_json)


def _print_list(noun: str, rows: list[dict[str, str]], columns: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        print(json.dumps({noun: rows}))
    elif rows:
        print(console.table([[row[column] for column in columns] for row in rows], columns))
    else:
        print(f"no {noun} here")


@app.command()
def recheck(run: Annotated[Path, typer.Argument(help="A run directory.")], as_json: Json = False) -> None:
    """Judge a stored run again, with no engine."""
    place = _ended(run)
    verdict = judge(place)
    place.write_json("verdict.json", verdict)
    _answer("recheck", _report(place, verdict), as_json)


@app.command()
def report(run: Annotated[Path, typer.Argument(help="A run directory.")], as_json: Json = False) -> None:
    """Make the page of a stored run again, whatever is left of it."""
    place = _ended(run)
    made, shown = _page(place), str(place.path / "report.html")
    missing = [sentence for section in made.sections for sentence in section.missing]
    if as_json:
        print(json.dumps({"command": "report", "run": str(place.path), "page": shown, "missing": missing}))
    else:
        print("\n".join([shown, *(f"missing: {sentence}" for sentence in missing)]))


def _ended(run: Path) -> Store:
    """A run that nobody works on any more."""
    place = Store.open(run.absolute())
    if not place.has("verdict.json") and place.alive():
        raise UsageError(f"{run} is still going on; wait until its process has ended.")
    return place


@app.command()
def ls(
    folder: Annotated[Path, typer.Argument(help="Folder of run directories.")] = RUNS, as_json: Json = False
) -> None:
    """List the runs here, newest last."""
    rows = [_row(place) for place in store.runs(folder)]
    _print_list("runs", rows, ("run", "state", "sentence"), as_json)


def _row(place: Store) -> dict[str, str]:
    """A folder that can't be read is listed too, under that name."""
    try:
        if place.has("verdict.json"):
            verdict: Verdict = place.read_as("verdict.json", Verdict)
            state, sentence = verdict.outcome.value, verdict.sentence
        elif place.alive():
            state, sentence = "running", ""
        else:
            state, sentence = "broken off", "its process ended before the verdict; recheck says what is left"
    except MissingEvidence as error:
        state, sentence = "torn", str(error)
    return {"run": place.path.name, "state": state, "sentence": sentence[:80]}


@app.command()
def tape(
    scenario: Scenario = plan.DEFAULT_SCENARIO,
    *,
    rate: Annotated[str | None, option("rate")] = None,
    duration: Annotated[str | None, option("duration")] = None,
    seed: Annotated[str | None, option("seed")] = None,
    campaigns: Annotated[str | None, option("campaigns")] = None,
    partitions: Annotated[str | None, option("partitions")] = None,
    window: Annotated[str | None, option("window")] = None,
    watermark: Annotated[str | None, option("watermark")] = None,
    disorder: Annotated[str | None, option("disorder")] = None,
    as_json: Json = False,
) -> None:
    """Show what a seed and a preset will send."""
    given = dict(locals())
    flags = {key: value for key, value in given.items() if key in KEYS and value is not None}
    name, keys = plan.read_scenario(scenario)
    # A tape is only looked at here: whether its late events would be allowed is a question of the run.
    spec, _ = plan.resolve(name, {"late_dropped_max": "any", **keys}, flags, find_manifest)
    shown = preview.preview(spec.tape, spec.window_ms, spec.watermark_ms)
    print(json.dumps(msgspec.to_builtins(shown)) if as_json else "\n".join(preview.lines(shown)))


@app.command()
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the sizes.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="The Spark job's stages, each done in several ways.")] = False,
    as_json: Json = False,
) -> None:
    """The harness's own ceilings, each beside something comparable measured in the same run."""
    with children.guard():
        if spark:
            tuned = list(tuning.tuning(quick=quick, say=console.say))
            found, told = msgspec.to_builtins(tuned), tuning.lines(tuned)
        else:
            ceilings = benches.bench(quick=quick, say=console.say)
            found, told = msgspec.to_builtins(ceilings), benches.lines(ceilings)
    if as_json:
        print(json.dumps({"command": "bench", "environment": environment(), "bench": found}))
    else:
        print("\n".join(told))


@app.command("search")
def search_command(
    scenario: Scenario = "calm",
    *,
    engine: Annotated[str | None, option("engine")] = None,
    sink: Annotated[str | None, option("sink")] = None,
    seed: Annotated[str | None, option("seed")] = None,
    campaigns: Annotated[str | None, option("campaigns")] = None,
    partitions: Annotated[str | None, option("partitions")] = None,
    window: Annotated[str | None, option("window")] = None,
    watermark: Annotated[str | None, option("watermark")] = None,
    disorder: Annotated[str | None, option("disorder")] = None,
    client: Annotated[str | None, option("client")] = None,
    kafka: Annotated[str | None, option("kafka")] = None,
    kafka_config: Annotated[str | None, option("kafka_config")] = None,
    redis: Annotated[str | None, option("redis")] = None,
    reset: Annotated[bool | None, option("reset")] = None,
    master: Annotated[str | None, option("master")] = None,
    checkpoint: Annotated[str | None, option("checkpoint")] = None,
    conf: Annotated[list[str] | None, option("conf")] = None,
    objective_p99_ms: Annotated[str | None, option("objective_p99_ms")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter trials, fewer rungs, a wider interval.")] = False,
    resume: Annotated[Path | None, typer.Option(help="The directory of a search that was broken off.")] = None,
    out: Annotated[Path, typer.Option(help="Folder in which experiment directories are made.")] = EXPERIMENTS,
    as_json: Json = False,
) -> None:
    """The highest sustainable rate, as an interval, and latency against throughput."""
    given = dict(locals())
    flags = {key: value for key, value in given.items() if key in KEYS and value not in (None, [])}
    name, keys = plan.read_scenario(scenario)
    spec, engine_manifest = plan.resolve(name, {**keys, "fault": "none"}, flags, find_manifest)
    _refuse_the_impossible(spec, engine_manifest)
    settings = search.QUICK if quick else search.Settings()
    settings = replace(settings, objective_p99_ms=spec.objective_p99_ms or settings.objective_p99_ms)
    spec = replace(spec, objective_p99_ms=None)  # a rate that misses it has failed; the run itself has not
    if resume:
        place = Folder.open(resume.absolute(), "search")
        spec, settings, trials = _stored_search(place)
        engine_manifest = find_manifest(spec.engine)
    else:
        place, trials = Folder.create(out.absolute(), f"search-{spec.engine}"), []

    def keep(done: list[search.Trial]) -> None:
        place.save("search", spec=spec, settings=settings, environment=environment(), trials=done)

    keep(trials)
    console.say(f"search on {spec.engine}/{spec.sink}: objective p99 <= {settings.objective_p99_ms:,.0f} ms")

    def run_trial(step: search.Step) -> search.Trial:
        left = search.remaining_s(trials_so_far(place), settings)
        console.say(f"{step.stage} at {step.rate_per_s:,.0f}/s; about {left / 60:.0f} minutes left")
        began_s = time.monotonic()
        result = _one_run(search.spec_of(spec, step, settings), engine_manifest, place.runs)
        trial = _trial(step, result, settings, time.monotonic() - began_s)
        console.say(f"  {trial.held}: {trial.reason}")
        return trial

    done = search.search(trials, settings, run_trial, keep)
    found = search.answer(done)
    if as_json:
        print(json.dumps(_search_object(place, done, found)))
    else:
        print(f"{spec.engine}/{spec.sink}: {found.sentence}, objective p99 <= {settings.objective_p99_ms:,.0f} ms")
        print(console.table([_trial_row(trial) for trial in done], TRIAL_COLUMNS))
        print(place.path)
    raise typer.Exit(found.outcome.exit_code)


def trials_so_far(place: Folder) -> list[search.Trial]:
    trials: list[search.Trial] = place.load("trials", list[search.Trial])
    return trials


def _stored_search(place: Folder) -> tuple[RunSpec, search.Settings, list[search.Trial]]:
    return place.load("spec", RunSpec), place.load("settings", search.Settings), trials_so_far(place)


def _trial(step: search.Step, result: reports_load.Result, settings: search.Settings, seconds: float) -> search.Trial:
    certificate = result.certificate or NO_CERTIFICATE
    measured = result.measurement
    held, reason = search.judge_trial(result.verdict.outcome, certificate, measured, settings.objective_p99_ms)
    latency = (measured.latency_by("probes") or measured.latency_by("rank-matched")) if measured else None
    engine_cost = next((c for c in measured.cost if c.part == "engine"), None) if measured else None
    return search.Trial(
        stage=step.stage,
        rate_per_s=step.rate_per_s,
        held=held,
        reason=reason,
        run=str(result.path),
        p50_ms=latency.corrected.p50 if latency else None,
        p99_ms=headline_p99_ms(measured),
        processed_per_s=measured.processed_per_s if measured else None,
        cpu_s_per_million=engine_cost.cpu_s_per_million if engine_cost else None,
        seconds=seconds,
    )


TRIAL_COLUMNS = ("stage", "events/s", "", "p50 ms", "p99 ms", "CPU-s/M")


def _trial_row(trial: search.Trial) -> list[str]:
    figures = (trial.p50_ms, trial.p99_ms, trial.cpu_s_per_million)
    told = ["-" if figure is None else f"{figure:,.1f}" for figure in figures]
    return [trial.stage.value, f"{trial.rate_per_s:,.0f}", trial.held.value, *told]


def _search_object(place: Folder, trials: list[search.Trial], found: search.Answer) -> dict[str, Any]:
    return {
        "command": "search",
        "verdict": found.outcome.value,
        "exit": found.outcome.exit_code,
        "sentence": found.sentence,
        "experiment": str(place.path),
        "held_per_s": found.held_per_s,
        "failed_per_s": found.failed_per_s,
        "limited": found.limited,
        "trials": msgspec.to_builtins(trials),
    }


@app.command()
def up(as_json: Json = False) -> None:
    """Start an embedded Kafka and Redis to play with."""
    services, started = keeper.up(jvm.jars("services"), jvm.java())
    if as_json:
        print(json.dumps({"command": "up", "kafka": services.kafka, "redis": services.redis, "started": started}))
    else:
        print(f"{'up' if started else 'already up'}: --kafka {services.kafka} --redis {services.redis}")
        print(f"logs in {services.folder}; `streamgauge down` stops both")


@app.command()
def down() -> None:
    """Stop what `up` started."""
    print("stopped" if keeper.down() else "nothing was up")


@app.command("doctor")
def doctor_command(as_json: Json = False) -> None:
    """What is there, what is missing, and how to get it."""
    findings = doctor.examine(RUNS, lambda: Path(find_server().path))
    if as_json:
        print(json.dumps({"command": "doctor", "findings": msgspec.to_builtins(findings)}))
    else:
        print("\n".join(doctor.as_line(finding) for finding in findings))
    raise typer.Exit(Exit.PASS if doctor.all_well(findings) else Exit.BROKEN)


@app.command("test")
def own_tests(
    suites: Annotated[list[str] | None, typer.Argument(help="Environments of tox.ini; default: all of them.")] = None,
) -> None:
    """The project's own tests."""
    chosen = ["-e", ",".join(suites)] if suites else []
    command = [sys.executable, "-m", "tox", "run", "-c", str(ROOT / "tox.ini"), *chosen]
    raise typer.Exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


def environment() -> dict[str, Any]:
    """Of which machine and versions a run's figures are."""
    packages = ("pyspark", "confluent-kafka", "kafka-python", "redis", "locust", "numpy", "pyarrow")
    return {
        "streamgauge": __version__,
        "python": platform.python_version(),
        "java": jvm.java_version(jvm.find_java()),
        "machine": doctor.machine(),
        "kernel": platform.release(),
        "packages": {name: version_of(name) for name in packages},
    }


def main() -> None:
    """Errors finish their sentence and end in the exit code that says whose they are."""
    try:
        for sentence in owners.sweep():
            console.say(sentence)
        app()
    except UsageError as error:
        _fail(str(error), Exit.USAGE)
    except HarnessError as error:
        _fail(str(error), Exit.BROKEN)
    except KeyboardInterrupt:
        _fail("Interrupted; everything that was started is stopped.", 130)


def _fail(sentence: str, code: int) -> None:
    console.say(f"streamgauge: {sentence}")
    sys.exit(code)


if __name__ == "__main__":
    main()
