"""The command line: the only module that knows every name. Each command is a few lines; the work is elsewhere.

Exit codes: 0 PASS, 1 FAIL, 2 usage, 3 UNKNOWN, 4 the harness or its environment broke. Answers go to stdout, all else
to stderr.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script
from typer.exceptions import TyperException

from generators import preview
from harness import __version__, archives, completion, console, digests, doctor, environment, jvm, panels, plan, steady
from harness.audit import walk
from harness.audit.left import Offered
from harness.ending import COMPLETING, PROGRAM, json_last
from harness.engines import environments, fake, manifest, removal
from harness.experiments import bench as benches
from harness.experiments import (
    chaos,
    clearing,
    compare,
    drive_chaos,
    drive_compare,
    drive_repeat,
    drive_search,
    folder,
    one_run,
    replay,
    search,
    training,
    tuning,
)
from harness.experiments.folder import Folder
from harness.experiments.selftest import drive as selftests
from harness.experiments.selftest import report as reports_selftest
from harness.explain import nearest, wrong
from harness.faults import evidence
from harness.faults import registry as faults
from harness.flags import takes
from harness.judge import judge
from harness.model import Exit, RunSpec, UsageError
from harness.panels import Commands
from harness.room import size_in_words
from harness.services import children, keeper, owners
from harness.services.redis import find_server
from harness.store import MissingEvidence, Store
from reports import audited as reports_audited
from reports import card as reports_card
from reports import compared as reports_compared
from reports import engines as reports_engines
from reports import faults as reports_faults
from reports import listing, screen
from reports import rounds as reports_rounds
from reports import trials as reports_trials
from reports.exports import machine
from reports.load import Result

ROOT = Path(__file__).resolve().parent.parent
RUNS = Path("runs")
EXPERIMENTS = Path("experiments")
SHELLS = ("bash", "zsh", "fish")
EXPERIMENT_PAGES = {
    "chaos": drive_chaos.write_page,
    "search": drive_search.write_page,
    "compare": drive_compare.write_page,
}

# Keys that several commands take: which events there are, and what they meet.
EVENTS = ("seed", "campaigns", "partitions", "window", "watermark", "disorder")
SYSTEM = (
    "client",
    "kafka",
    "kafka_config",
    "redis",
    "reset",
    "master",
    "checkpoint",
    "conf",
    "objective_p99_ms",
    "archive",
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[
    bool, typer.Option("--json", help="Print exactly one JSON object. It may stand at any place of the line.")
]
Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help=f"{', '.join(plan.scenarios())}, or the path of a .toml file.",
        autocompletion=completion.scenario,
    ),
]


Run = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", autocompletion=completion.run)]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="The directory of one that was broken off.", autocompletion=completion.experiment
    ),
]


ExperimentsOut = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder in which experiment directories are made.")
]


def _as_often_as_needed(metavar: str, what: str, names: completion.Completer) -> Any:
    return typer.Option(metavar=metavar, help=f"{what}; as often as needed.", autocompletion=names)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
    as_json: Json = False,
) -> None:
    """Are a stream processor's counts right, and how fast were they right?"""
    if version:
        print(json.dumps({"version": __version__}) if as_json else f"{PROGRAM} {__version__}")
    elif context.invoked_subcommand is None and as_json:
        raise UsageError(f"No command was given. `{PROGRAM} --help` lists them.")
    elif context.invoked_subcommand is None:
        console.say(context.get_help())
        raise typer.Exit(Exit.USAGE)


@app.command("run", rich_help_panel=panels.RUNS)
@takes("engine", "sink", "rate", "duration", "warm_up", *EVENTS, "fault", *SYSTEM, "repeat", "checksum", "web")
def run_command(
    scenario: Scenario = plan.DEFAULT_SCENARIO,
    listing: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder in which run directories are made.")] = RUNS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """One run: disorder, a fault, a verdict to the single event."""
    if listing:
        _list_scenarios(as_json)
        return
    name, keys = plan.read_scenario(scenario)
    spec, engine_manifest = plan.resolve(name, keys, flags, one_run.find_manifest)
    one_run.refuse_the_impossible(spec, engine_manifest)
    _foretell(spec)
    rounds = plan.rounds_of(name, keys, flags)
    one_run.refuse_without_room(spec, engine_manifest, out, rounds)
    if rounds > 1:
        _answer_of_rounds(spec, drive_repeat.drive(spec, engine_manifest, rounds, out), as_json)
    else:
        result = one_run.answer(spec, engine_manifest, out)
        _show("run", result, as_json)
        one_run.draw(result.path)
        training.after(spec, engine_manifest)
        raise typer.Exit(result.verdict.outcome.exit_code)


def _foretell(spec: RunSpec) -> None:
    """A run that is warmed up takes minutes: its user knows before, and what for."""
    if spec.tape.warm_up:
        times_ms = (spec.tape.warm_up_ms, spec.tape.load_ms, spec.window_ms)
        console.say(steady.foretold(*(time_ms / 1000 for time_ms in times_ms)))


def _answer_of_rounds(spec: RunSpec, done: drive_repeat.Done, as_json: bool) -> NoReturn:
    answer = done.answer
    if as_json:
        objects = [machine.as_object("run", each) for each in done.results]
        print(json.dumps(reports_rounds.as_object(answer, done.path, objects)))
    else:
        head = f"{len(done.results)} rounds of {spec.scenario} on {spec.engine}/{spec.sink}"
        shown = [console.table(rows, header) + "\n" for header, rows in reports_rounds.tables(answer)]
        console.show_result(
            [f"{answer.outcome.value}  {head}: {answer.sentence}\n", *shown, str(done.path)], answer.outcome
        )
    raise typer.Exit(answer.outcome.exit_code)


def _show(command: str, result: Result, as_json: bool) -> None:
    if as_json:
        print(json.dumps(machine.as_object(command, result)), flush=True)
    else:
        console.show_result(screen.lines(result), result.verdict.outcome)


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


@app.command(rich_help_panel=panels.RUNS)
def recheck(run: Run, as_json: Json = False) -> None:
    """Judge a stored run again, with no engine."""
    place = _ended(run)
    with console.progress() as screen:
        screen.phase("judge")
        digests.write_at_first_verdict(place)
        verdict = judge(place)
        place.write_json("verdict.json", verdict)
        result = one_run.report(place, verdict, screen)
    _show("recheck", result, as_json)
    one_run.draw(result.path)
    raise typer.Exit(result.verdict.outcome.exit_code)


@app.command(rich_help_panel=panels.RUNS)
def report(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The directory of a run or an experiment.",
            autocompletion=completion.run_or_experiment,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Make the page of a stored run or experiment again, whatever is left of it."""
    place = run.absolute()
    if (place / folder.FILE).exists():
        experiment = Folder.open(place, *EXPERIMENT_PAGES)
        made = EXPERIMENT_PAGES[experiment.kind](experiment)
        sections = made.sections
    elif one_run.mended_copy(place):
        sections = ()
    else:
        with console.progress() as screen:
            sections = one_run.write_page(_ended(run), screen).sections
    shown = str(place / "report.html")
    missing = [sentence for section in sections for sentence in section.missing]
    if as_json:
        print(json.dumps({"command": "report", "run": str(place), "page": shown, "missing": missing}))
    else:
        print("\n".join([shown, *(f"missing: {sentence}" for sentence in missing)]))


def _ended(run: Path) -> Store:
    """A run that nobody works on any more."""
    place = Store.open(run.absolute())
    if not place.has("verdict.json") and place.alive():
        raise UsageError(f"{run} is still going on; wait until its process has ended.")
    return place


@app.command(rich_help_panel=panels.RUNS)
def ls(
    folder: Annotated[Path | None, typer.Argument(help="A folder of runs or experiments, or one experiment.")] = None,
    as_json: Json = False,
) -> None:
    """List the runs and experiments here, newest last, with their sizes, and why some came to no verdict."""
    runs = listing.runs(folder or RUNS)
    experiments = listing.experiments(*([folder] if folder else [RUNS, EXPERIMENTS]))
    if as_json:
        found = {"runs": runs, "experiments": experiments}
        print(json.dumps({noun: [each.as_object() for each in listed] for noun, listed in found.items()}))
        return
    tables = [
        console.table(
            [[each.path.name, size_in_words(each.size), each.state, each.sentence] for each in listed],
            (noun, "size", "state", "sentence"),
        )
        for noun, listed in (("run", runs), ("experiment", experiments))
        if listed
    ]
    print("\n\n".join(tables) or "no runs here")


@app.command(rich_help_panel=panels.RUNS)
def rm(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...",
            help="Directories of runs or experiments; with a condition and without these, all in runs and experiments.",
            autocompletion=completion.run_or_experiment,
        ),
    ] = None,
    *,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Only those made longer ago than this, such as 7d, 12h or 30m.")
    ] = None,
    but_last: Annotated[int | None, typer.Option(min=0, metavar="N", help="All but the N that were made last.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Also what an experiment or a living process needs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Remove runs and experiments, and say how much that freed."""
    if not paths and older_than is None and but_last is None:
        raise UsageError("Name the runs to remove, or say which by --older-than 7d or --but-last 20.")
    choice = clearing.chosen(
        clearing.candidates(paths) if paths else clearing.below(RUNS, EXPERIMENTS),
        older_than_ms=None if older_than is None else clearing.age_ms(older_than),
        but_last=but_last,
        now_ms=time.time_ns() // 1_000_000,
        force=force,
    )
    removed = list(clearing.clear(choice, dry_run=dry_run))
    if as_json:
        print(json.dumps(clearing.as_object(removed, choice.kept, dry_run=dry_run)))
    else:
        print("\n".join(clearing.lines(removed, choice.kept, dry_run=dry_run)))


@app.command(rich_help_panel=panels.RUNS)
@takes("rate", "duration", *EVENTS)
def tape(scenario: Scenario = plan.DEFAULT_SCENARIO, *, as_json: Json = False, **flags: Any) -> None:
    """Show what a seed and a preset will send."""
    name, keys = plan.read_scenario(scenario)
    # A tape is only looked at here: whether its late events would be allowed is a question of the run.
    spec, _ = plan.resolve(name, {"late_dropped_max": "any", **keys}, flags, one_run.find_manifest)
    shown = preview.preview(spec.tape, spec.window_ms, spec.watermark_ms)
    print(json.dumps(msgspec.to_builtins(shown)) if as_json else "\n".join(preview.lines(shown)))


@app.command(rich_help_panel=panels.ITSELF)
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
        print(json.dumps({"command": "bench", "environment": environment.describe(), "bench": found}))
    else:
        print("\n".join(told))


@app.command("search", rich_help_panel=panels.EXPERIMENTS)
@takes("engine", "sink", *EVENTS, *SYSTEM)
def search_command(
    context: typer.Context,
    scenario: Scenario = "calm",
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter trials, fewer rungs, a wider interval.")] = False,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """The highest sustainable rate, as an interval, and latency against throughput."""
    if resume:
        _refuse_beside_resume(context)
        place = drive_search.resume(resume)
        spec = drive_search.spec_of(place)
        engine_manifest = one_run.find_manifest(spec.engine)
        one_run.refuse_the_impossible(spec, engine_manifest)
    else:
        name, keys = plan.read_scenario(scenario)
        spec, engine_manifest = plan.resolve(
            name, {**keys, "fault": "none", "checksum": False}, flags, one_run.find_manifest
        )
        one_run.refuse_the_impossible(spec, engine_manifest)
        place = drive_search.begin(spec, search.QUICK if quick else search.Settings(), out)
    trials = drive_search.drive(place, spec, engine_manifest)
    found, objective_ms = search.answer(trials), drive_search.settings_of(place).objective_p99_ms
    if as_json:
        print(json.dumps(reports_trials.as_object(place.path, trials, found)))
    else:
        print(f"{spec.engine}/{spec.sink}: {found.sentence}, objective p99 <= {objective_ms:,.0f} ms")
        print(console.table(reports_trials.rows(trials), reports_trials.COLUMNS))
        print(place.path)
    raise typer.Exit(found.outcome.exit_code)


@app.command("chaos", rich_help_panel=panels.EXPERIMENTS)
@takes("rate", "duration", *EVENTS, *SYSTEM, "repeat")
def chaos_command(
    context: typer.Context,
    *,
    tier: Annotated[
        str,
        typer.Option(
            metavar="TIER",
            help=f"{', '.join(chaos.ORDER)}, or the path of a .toml file.",
            autocompletion=completion.tier,
        ),
    ] = chaos.ORDER[0],
    fault: Annotated[
        list[str] | None,
        _as_often_as_needed("PLAN", "A fault or plan instead of the tier's own", completion.OF_KEY["fault"]),
    ] = None,
    engine: Annotated[
        list[str] | None, _as_often_as_needed("ENGINE", "Only this engine of the tier", completion.engine)
    ] = None,
    sink: Annotated[list[str] | None, _as_often_as_needed("NAME", "Only this sink", completion.OF_KEY["sink"])] = None,
    listing: Annotated[bool, typer.Option("--list", help="List all faults, and the evidence of each.")] = False,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Faults x engines x sinks, and the guarantee card."""
    if listing:
        _list_faults(as_json)
        return
    if resume:
        _refuse_beside_resume(context)
    asked = drive_chaos.Asked(tuple(engine or ()), tuple(sink or ()), tuple(fault or ()))
    place, settings = (
        drive_chaos.resume(resume) if resume else drive_chaos.begin(chaos.read_tier(tier), asked, flags, out)
    )
    card = drive_chaos.drive(place, settings)
    if as_json:
        print(json.dumps(reports_card.as_object(card, place.path)))
    else:
        told = [f"{card.outcome.value}  {card.sentence}"]
        for heading, rows in reports_card.tables(card):
            told += ["", heading, console.table(rows, reports_card.HEADER)]
        console.show_result([*told, "", *reports_card.endings(card), str(place.path)], card.outcome)
    raise typer.Exit(card.outcome.exit_code)


def _list_faults(as_json: bool) -> None:
    kinds, seen = faults.FAULTS, evidence.by_kind()
    if as_json:
        print(json.dumps(reports_faults.as_object(kinds, seen)))
        return
    print(console.table(reports_faults.rows(kinds, seen), reports_faults.HEADER))
    print(reports_faults.summary(kinds, seen))


@app.command("compare", rich_help_panel=panels.EXPERIMENTS)
@takes("rate", "duration", *EVENTS, *SYSTEM, "repeat")
def compare_command(
    context: typer.Context,
    engines: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENGINE...", help="Ids of engines, or paths of manifests.", autocompletion=completion.engine
        ),
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="One round.")] = False,
    searched: Annotated[bool, typer.Option("--search", help="Also the highest sustainable rate of each.")] = False,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Engines or versions side by side: latency, cost, catch-up and recovery of those that counted right."""
    if resume:
        _refuse_beside_resume(context)
    elif not engines:
        raise UsageError("Name the engines to compare, such as `streamgauge compare spark reference`.")
    settings = compare.QUICK if quick else compare.Settings()
    place, asked = (
        drive_compare.resume(resume)
        if resume
        else drive_compare.begin(engines or [], settings, flags, out, searched=searched)
    )
    drive_compare.drive(place, asked)
    found = reports_compared.read(place).found
    if as_json:
        print(json.dumps(reports_compared.as_object(found, place.path)))
    else:
        table = console.table(reports_compared.rows(found), reports_compared.HEADER)
        told = [f"{found.outcome.value}  {found.sentence}", "", table, "", *reports_compared.searched(found)]
        told += reports_compared.endings(found)
        console.show_result([*told, str(place.path / "report.html")], found.outcome)
    raise typer.Exit(found.outcome.exit_code)


def _refuse_beside_resume(context: typer.Context) -> None:
    """An experiment goes on with what it was begun with; only how the answer is shown may be asked anew."""
    given = [
        str(each.name).upper() if each.param_type_name == "argument" else each.opts[0]
        for each in context.command.params
        if each.name not in ("resume", "as_json") and _is_given(context, each.name)
    ]
    if given:
        raise UsageError(
            f"{', '.join(given)} can't be given beside --resume: it goes on with what it was begun with. "
            "Leave it out, or begin anew without --resume."
        )


def _is_given(context: typer.Context, name: str | None) -> bool:
    source = context.get_parameter_source(name) if name else None
    return source is not None and source.name == "COMMANDLINE"


@app.command("replay", rich_help_panel=panels.RUNS)
def replay_command(
    run: Run,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder in which the new run directory is made.")] = RUNS,
    as_json: Json = False,
) -> None:
    """Run a stored plan again: is the outcome the same?"""
    found = replay.replay(run, out)
    if as_json:
        told = {"command": "replay", "same": found.same if found.known else None, "exit": found.exit_code}
        print(json.dumps({**told, "sentence": found.sentence, **msgspec.to_builtins(found)}))
    else:
        rows = [[line.what, line.before, line.again, "" if line.same else "differs"] for line in found.lines]
        print(console.table(rows, ("", "before", "again", "")))
        print(f"{found.sentence}\n{found.again}")
    raise typer.Exit(found.exit_code)


@app.command("selftest", rich_help_panel=panels.ITSELF)
def selftest_command(
    clean: Annotated[int, typer.Option(min=0, help="So many runs without a bug, all of which have to PASS.")] = 50,
    seed: Annotated[int, typer.Option(help="Decides what the clean runs are.")] = 1,
    as_json: Json = False,
) -> None:
    """Is the checker shown to fail? Planted bugs, sinks of known class, and checkers that are wrong on purpose."""
    found = selftests.selftest(clean, seed, console.say)
    if as_json:
        print(json.dumps(reports_selftest.as_object(found)))
    else:
        console.show_result(reports_selftest.lines(found), found.outcome)
    raise typer.Exit(found.outcome.exit_code)


@app.command("audit", rich_help_panel=panels.RUNS)
def audit_command(
    path: Annotated[str, typer.Argument(help="A folder tree, seen.txt, a .csv, or redis://HOST:PORT/0.")],
    *,
    rate: Annotated[float | None, typer.Option(min=1e-9, help="Events/s that each producer was to send.")] = None,
    producers: Annotated[int | None, typer.Option(min=1, help="How many producers there were.")] = None,
    duration: Annotated[float | None, typer.Option(min=1e-9, help="Seconds for which they sent.")] = None,
    campaigns: Annotated[int | None, typer.Option(min=1, help="How many campaigns there were: 100.")] = None,
    window: Annotated[float | None, typer.Option(min=1e-3, help="Seconds of a window: 10.")] = None,
    as_json: Json = False,
) -> None:
    """Judge results that another run of the Yahoo benchmark left: can they be what was offered?"""
    flags: dict[str, Any] = {"rate_per_s": rate, "producers": producers, "duration_s": duration}
    flags |= {"campaigns": campaigns, "window_ms": round(window * 1000) if window else None}
    given = {name: value for name, value in flags.items() if value is not None}
    audited = walk.audit(path, Offered(**given), frozenset(given), console.say)
    worst = reports_audited.outcome(audited)
    if as_json:
        print(json.dumps(reports_audited.as_object(audited, path)))
    else:
        below = Path(path)
        rows = reports_audited.rows(audited, below)
        table = console.table(rows, reports_audited.HEADER)
        told = reports_audited.endings(audited, below)
        console.show_result([reports_audited.summary(audited), "", table, *told], worst)
    raise typer.Exit(worst.exit_code)


engines_app = typer.Typer(
    cls=Commands, help="Engines, and the environments that are made for them.", rich_markup_mode=None
)
app.add_typer(engines_app, name="engines", rich_help_panel=panels.SETTING_UP)
Engine = Annotated[
    str,
    typer.Argument(
        metavar="ENGINE",
        help=f"{', '.join(manifest.IDS)}, or spark@VERSION.",
        autocompletion=completion.engine,
    ),
]


@engines_app.callback(invoke_without_command=True)
def engines_command(context: typer.Context, as_json: Json = False) -> None:
    """Engines, what they claim, and what of them is installed."""
    if context.invoked_subcommand:
        return
    shipped = (manifest.load(engine) for engine in manifest.SHIPPED)
    found = [fake.MANIFEST, *shipped, *environments.installed_versions()]
    if as_json:
        print(json.dumps({"engines": [reports_engines.as_object(each, environments.missing(each)) for each in found]}))
    else:
        rows = [reports_engines.row(each, environments.missing(each)) for each in found]
        print(console.table(rows, reports_engines.HEADER))


@engines_app.command("add")
def engines_add(engine: Engine, as_json: Json = False) -> None:
    """Install what an engine needs, without running it."""
    found = one_run.find_manifest(engine)
    with children.guard():
        environments.prepare(found, console.say)
    if found.archive:
        training.of_engine(found)
    print(json.dumps({"command": "engines add", "engine": engine}) if as_json else f"{engine} is ready")


@engines_app.command("rm")
def engines_rm(engine: Engine, as_json: Json = False) -> None:
    """Remove what was installed for an engine, also what others share with it; the next use installs it again."""
    found = one_run.find_manifest(engine)
    installed = removal.remove(found, console.say)
    others = removal.sharing(found) if installed else []
    gone = installed + archives.remove(found.id)
    if as_json:
        told = {"engine": engine, "removed": [str(path) for path in gone], "used_too_by": list(others)}
        print(json.dumps({"command": "engines rm", **told}))
        return
    lines = [f"removed {path}" for path in gone] or [f"nothing was installed for {engine}"]
    if others:
        lines.append(f"{' and '.join(others)} used it too: the next use installs it again")
    print("\n".join(lines))


@app.command(rich_help_panel=panels.SETTING_UP)
def up(as_json: Json = False) -> None:
    """Start an embedded Kafka and Redis to play with."""
    services, started = keeper.up(jvm.jars("services"), jvm.java())
    if as_json:
        print(json.dumps({"command": "up", "kafka": services.kafka, "redis": services.redis, "started": started}))
    else:
        print(f"{'up' if started else 'already up'}: --kafka {services.kafka} --redis {services.redis}")
        print(f"logs in {services.folder}; `streamgauge down` stops both")


@app.command(rich_help_panel=panels.SETTING_UP)
def down(as_json: Json = False) -> None:
    """Stop what `up` started."""
    stopped = keeper.down()
    if as_json:
        print(json.dumps({"command": "down", "stopped": stopped}))
    else:
        print("stopped" if stopped else "nothing was up")


@app.command("doctor", rich_help_panel=panels.SETTING_UP)
def doctor_command(as_json: Json = False) -> None:
    """What is there, what is missing, and how to get it."""
    findings = doctor.examine(RUNS, lambda: Path(find_server().path))
    if as_json:
        print(json.dumps({"command": "doctor", "findings": msgspec.to_builtins(findings)}))
    else:
        print("\n".join(doctor.as_line(finding) for finding in findings))
    raise typer.Exit(Exit.PASS if doctor.all_well(findings) else Exit.BROKEN)


@app.command("completion", rich_help_panel=panels.SETTING_UP)
def completion_command(
    shell: Annotated[
        str, typer.Argument(metavar="|".join(SHELLS), help="The shell that is to complete what you type.")
    ] = SHELLS[0],
    as_json: Json = False,
) -> None:
    """What a shell needs to complete commands, flags and names: eval "$(streamgauge completion bash)"."""
    if shell not in SHELLS:
        raise UsageError(wrong("shell", shell, f"one of {', '.join(SHELLS)}", nearest(shell, SHELLS)))
    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETING, shell=shell)
    print(json.dumps({"command": "completion", "shell": shell, "script": script}) if as_json else script)


@app.command("test", rich_help_panel=panels.ITSELF)
def own_tests(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE...", help="Environments of tox.ini; default: all of them.")
    ] = None,
    thorough: Annotated[bool, typer.Option("--all", help="Also the runs that are left out to save time.")] = False,
    as_json: Json = False,
) -> None:
    """The project's own tests."""
    chosen = ["-e", ",".join(suites)] if suites else []
    command = [sys.executable, "-m", "tox", "run", "-c", str(ROOT / "tox.ini"), *chosen]
    variables = os.environ | ({"STREAMGAUGE_TEST_ALL": "1"} if thorough else {})
    told_to = sys.stderr if as_json else None
    code = subprocess.run(command, cwd=ROOT, env=variables, check=False, stdout=told_to).returncode
    if as_json:
        print(json.dumps({"command": "test", "exit": code}))
    raise typer.Exit(code)


def called(arguments: Sequence[str]) -> int:
    """The exit code of a command. How its errors end is decided in harness/ending.py, for all commands alike.

    Not by Typer's own `main`: it takes Ctrl-C and a broken pipe, whoever's it was, for an end with exit code 1 or 130.
    """
    program = typer.main.get_command(app)
    if COMPLETING in os.environ:
        completion_init()
        program.main(prog_name=PROGRAM)
    for sentence in owners.sweep():
        console.say(sentence)
    try:
        with program.make_context(PROGRAM, json_last(arguments)) as context:
            program.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except MissingEvidence as error:
        console.say(f"{error}. `streamgauge report` makes a page of what is left of a run.")
        return Exit.UNKNOWN
    except TyperException as mistake:
        raise UsageError(_sentence_of(mistake)) from None
    return Exit.PASS


def _sentence_of(mistake: TyperException) -> str:
    """What Typer itself refused, with where to look."""
    context: typer.Context | None = getattr(mistake, "ctx", None)
    said = mistake.format_message().rstrip(".")
    return f"{said}. `{context.command_path if context else PROGRAM} --help` shows what there is."


if __name__ == "__main__":  # a module that only defines the commands would end with exit code 0, which is a PASS
    runpy.run_module("harness", run_name="__main__")
