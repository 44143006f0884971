"""One run, for any command: its directory, its world, the nine steps, and everything made from its files.

Modules that only a running run needs are imported late, so that a refusal is fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generators.schedule import Schedule
from harness.config import server_needs
from harness.engines import environments, fake, removal, warm
from harness.engines import manifest as manifests
from harness.engines.job import Surroundings
from harness.engines.spark import executors
from harness.engines.spark.own_job import ENGINE as SPARK
from harness.engines.warm import Starts
from harness.faults import job, registry
from harness.host import disk_space, needs, pinning, quota
from harness.install import environment, jvm
from harness.judging import verdict_file
from harness.judging.stored_run import StoredRun
from harness.load import judged_rows
from harness.measuring.growth import keeps_all
from harness.measuring.objective import with_objective
from harness.model import EngineManifest, RunSpec, UsageError, Verdict
from harness.rundir.store import Store
from harness.runner.run import MakesRun
from harness.runner.run import run as run_nine_steps
from harness.runner.run_kinds import stages
from harness.runner.screen import Screen
from harness.runner.world import spark_recount
from harness.runner.world.base import World
from harness.services import children, live_page
from harness.services.addresses import listens_on_loopback, refuse_bind
from harness.services.external import check_external, claim_external
from harness.services.redis import find_server
from harness.terminal import console
from harness.terminal.command_end import UnderWay, short_path, under_way
from harness.util import wait

if TYPE_CHECKING:
    from reports.page import Page
    from reports.result import Result

Screens = Callable[[], AbstractContextManager[Screen]]


def refuse_the_impossible(
    spec: RunSpec, engine_manifest: EngineManifest, instead: str = "Choose another --fault, or --fault none."
) -> None:
    """Refuse a run that can't succeed before anything is started or written. `instead` is the advice in the error."""
    if engine_manifest.simulated:
        fake.check_conf(spec.conf)
    if spec.cores and (why := pinning.impossible(spec.cores)):
        raise UsageError(f"cores = {spec.cores} is not possible: {why}. Give fewer, or leave it out.")
    if quota.is_part(spec.cores) and (why := quota.impossible(spec.cores)):
        raise UsageError(
            f"cores = {spec.cores} is not possible: a part of a core takes a control group with a quota, and {why}. "
            f"Give a whole number."
        )
    needs = registry.create(spec, engine_manifest).needs
    if needs:
        raise UsageError(f"{spec.fault.text} does not apply here: {'; '.join(needs)}. {instead}")
    check_external(spec)


def refuse_without_room(spec: RunSpec, engine_manifest: EngineManifest, out: Path, runs: int = 1) -> None:
    """Check disk space for `runs` consecutive runs. Each deletes its log before the next."""
    schedule = Schedule(spec.tape)
    wanted = disk_space.needs(
        engine_manifest,
        schedule.total,
        brokers=0 if spec.kafka or engine_manifest.simulated else registry.brokers(spec),
        runs=runs,
        out=out,
        temporary=needs.temporary_folder(),
        in_files=schedule.warm_up_total if spec.tape.history_ms and not engine_manifest.simulated else 0,
        in_state=schedule.total if keeps_all(spec) else 0,
        read_by_spark=schedule.total if spark_recount.is_wanted(spec) else 0,
    )
    disk_space.refuse(wanted, disk_space.disk_of)


def prepare(spec: RunSpec, engine_manifest: EngineManifest) -> Surroundings:
    """Check or fetch everything that a run needs, before anything of it is started or written.

    An installed program has no Kafka before its first run, and some machines have no Java or Redis.
    """
    if not engine_manifest.simulated:
        jvm.java()
        if not spec.redis:
            find_server()
        if not spec.kafka:
            jvm.jars("services", console.note)
    batch = [manifests.load(spec.backfill, spec.workload)] if spec.backfill else []
    recounts = [manifests.load(SPARK)] if spark_recount.is_wanted(spec) else []
    for other in (*job.others(spec.fault, engine_manifest), *batch, *recounts):
        environments.prepare(other, console.note)
    return environments.prepare(engine_manifest, console.note)


def drive(
    spec: RunSpec,
    engine_manifest: EngineManifest,
    out: Path,
    *,
    twin: Path | None = None,
    screens: Screens = console.progress,
    every_option: tuple[str, ...] = (),
) -> Result:
    """Do a new run and write its page."""
    result = answer(spec, engine_manifest, out, twin=twin, screens=screens, every_option=every_option)
    draw(result.path, screens)
    return result


def answer(
    spec: RunSpec,
    engine_manifest: EngineManifest,
    out: Path,
    *,
    twin: Path | None = None,
    growing: MakesRun | None = None,
    screens: Screens = console.progress,
    every_option: tuple[str, ...] = (),
) -> Result:
    """Do a new run in a directory of its own below `out`. An existing Redis is claimed again for each run.

    `twin` is the baseline run for its recovery. `growing` makes a run whose load is decided while it runs. `screens`
    show its progress. `every_option` holds options for each JVM of the engine.
    """
    needs.refuse_too_little(needs.of_run(spec, engine_manifest, registry.brokers(spec)))
    judged_rows.refuse_too_many(spec, needs.granted().memory_bytes)
    refuse_without_room(spec, engine_manifest, out)
    executors.reach(spec.master)
    if spec.bind:
        _open_to_workers(spec.bind)
    for sentence in claim_external(spec, server_needs.wanted(spec, engine_manifest)):
        console.say(sentence)
    with removal.in_use(engine_manifest):
        surroundings = prepare(spec, engine_manifest)
        # The topic has the name of the run, and Kafka allows no @ in it.
        run_dir = Store.create(out.absolute(), f"{spec.title}-{spec.engine}".replace("@", "-"))
        if url := live_page.watch(run_dir.path):
            console.say(f"Live page: {url}")
        if twin:
            from harness.measuring.watched import link_twin

            link_twin(run_dir, twin)
        with _under_way(run_dir, "recheck", "judges it"), screens() as screen:
            stored = StoredRun(run_dir)
            starts, seen = starts_and_machine(spec, engine_manifest, surroundings, every_option)
            with children.guard(), wait.patience(spec.patience):
                world = _world(spec, engine_manifest, surroundings, run_dir, starts, grows=growing is not None)
                with _saying_what_stays(world):
                    verdict = run_nine_steps(
                        spec,
                        engine_manifest,
                        environment=seen,
                        world=world,
                        stored=stored,
                        screen=screen,
                        made_by=growing or stages(spec),
                    )
            return report(stored, verdict, screen)


def _open_to_workers(bind: str) -> None:
    """Refuse an address at which nothing can listen, and say what it means to listen there."""
    refuse_bind(bind)
    if not listens_on_loopback(bind):
        console.say(
            f"Load workers join at {bind}. Locust's channel there is neither authenticated nor encrypted: anyone who "
            f"reaches it can join, and read the plan of the load. No password travels on it."
        )


@contextmanager
def _saying_what_stays(world: World) -> Iterator[None]:
    """Report what stays on foreign servers if a run ends without a verdict, which would have it in its notes."""
    try:
        yield
    except BaseException:
        for sentence in world.stays():
            console.say(sentence)
        raise


def draw(run: Path, screens: Screens = console.progress) -> None:
    """Write the page. This comes after the answer, because drawing takes seconds."""
    run_dir = Store(run)
    with _under_way(run_dir, "report", "writes its page"), screens() as screen:
        write_page(run_dir, screen)


def _under_way(run_dir: Store, command: str, does: str) -> AbstractContextManager[None]:
    next_step = f"`streamgauge {command} {short_path(run_dir.path)}` {does}"

    def instead() -> str:
        from reports.listing import AGAIN, can_be_judged

        if command != "recheck" or can_be_judged(run_dir):
            return ""
        return AGAIN if any(run_dir.history("epoch")) else "its load had not started, so there is nothing to judge"

    return under_way(UnderWay(run_dir.path, run_dir.logs, next_step, instead), run_dir.tell)


def starts_and_machine(
    spec: RunSpec, engine_manifest: EngineManifest, surroundings: Surroundings, every_option: tuple[str, ...] = ()
) -> tuple[Starts, dict[str, Any]]:
    """Return how the JVMs of a run start, and the machine and versions that its figures belong to."""
    starts = replace(warm.starts(warm.archives_of(spec, engine_manifest, surroundings)), every_option=every_option)
    return starts, environment.describe() | environment.of_engine(surroundings.python) | warm.in_words(starts)


def _world(
    spec: RunSpec,
    engine_manifest: EngineManifest,
    surroundings: Surroundings,
    run_dir: Store,
    starts: Starts,
    *,
    grows: bool,
) -> World:
    if engine_manifest.simulated:
        from harness.runner.world.fake import FakeWorld

        return FakeWorld(spec, run_dir, grows=grows)
    from harness.load.adaptive_load import GrowingLoad
    from harness.load.fleet import Load
    from harness.load.workers import WorkersLoad
    from harness.runner.world.real import RealWorld

    load_of = GrowingLoad if grows else WorkersLoad if spec.workers else Load
    return RealWorld(spec, engine_manifest, surroundings, run_dir, starts, load_of=load_of)


def report(stored: StoredRun, verdict: Verdict, screen: Screen) -> Result:
    """Do step nine: write everything that is made from the files, except for the page."""
    from harness.measuring import measure
    from reports.exports import annotation, junit, markdown
    from reports.result import read

    screen.phase("measure", "latency, cost, steadiness and recovery")
    run_dir, measurement = stored.store, measure.save(stored, verdict)
    verdict = with_objective(verdict, measurement, stored.spec.objective_p99_ms, _starved(run_dir))
    verdict_file.keep(run_dir, verdict)
    result = read(run_dir.path)
    run_dir.write_bytes("junit.xml", junit.as_xml(result))
    run_dir.write_bytes("summary.md", markdown.as_text(result).encode())
    run_dir.write_bytes(annotation.FILE, annotation.of_run(result).encode())
    return result


def _starved(run_dir: Store) -> str:
    """Describe the CPU time of an engine that was starved under load; "" for any other."""
    told = next(run_dir.history("cpu"), None)
    return str(told["words"]) if told and told["starved"] else ""


def mended_copy(folder: Path) -> bool:
    """Mend a page that was copied without its run or experiment: links to missing files become plain text.

    Return False if the folder holds no such copy.
    """
    from reports import saved

    if not saved.is_copy(folder):
        return False
    saved.mend(folder)
    return True


def write_page(run_dir: Store, screen: Screen) -> Page:
    """Write the page. Drawing is slow to import, and most commands draw nothing."""
    screen.phase("page", "report.html")
    from reports import run_page

    return run_page.write(run_dir)
