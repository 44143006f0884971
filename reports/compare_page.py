"""The page of a comparison, from its experiment.json and its runs: table, pictures, equal and different settings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from harness.experiments import compare
from harness.experiments.compare import Leg, Settings
from harness.experiments.folder import Folder
from harness.experiments.searching.searched import Searched
from harness.host import disk_space
from harness.install.origin import COMMAND
from harness.judging.stored_run import StoredRun
from harness.model import RunSpec
from harness.rundir.missing_evidence import MissingEvidence
from harness.util.text_tables import left_out
from reports import compared, curve
from reports.command_flags import flag
from reports.compared import FIGURES, Compared, read
from reports.exports import experiment
from reports.figures import compared as bars
from reports.figures import curves as throughputs
from reports.figures import percentiles
from reports.figures.style import BLUE, GREEN, MUTED, ORANGE, PURPLE, RED, SKY, picture
from reports.page import Page, Section
from reports.page import Table as PageTable
from reports.saved import save
from reports.sections import every_run, fairness, latency, next_step, reproduce

PANELS = ("p50_ms", "p99_ms", "cpu_s_per_million", "catch_up_per_s", "first_output_s", "peak_rss_mib", "start_s")
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
BASELINE = "reference"


def write(folder: Folder) -> Page:
    """Write the page, its drawings, and the table as Markdown."""
    found = read(folder)
    page = page_of(found)
    machine = tuple(fairness.flat(found.environment))
    disk_space.write(folder.path / "table.md", compared.markdown(found.found, command(found), machine).encode())
    experiment.save(answer_of(found), folder.path)
    save(page, {f"throughput-{name}": curve.as_csv(own) for name, own in _named(found)}, folder.path)
    return page


def _named(found: Compared) -> Iterator[tuple[str, Searched]]:
    """Name the searches for their files. An engine may be a path, so that its stem is used."""
    for number, (engine, searched) in enumerate(found.searches.items(), 1):
        yield f"{number}-{Path(engine).stem}", searched


def page_of(found: Compared) -> Page:
    settings = msgspec.convert(found.asked["settings"], Settings)
    rounds = "one round" if settings.rounds == 1 else f"{settings.rounds} rounds"
    rows = found.found.rows
    why = "no run could be measured" if any(row.right for row in rows) else "no engine counted right in every run"
    begun = f", {found.folder.begun}" if found.folder.begun else ""
    return Page(
        title="Engines side by side",
        subtitle=f"{', '.join(found.engines)}; {rounds} from seed {found.asked['seed']}{begun}",
        outcome=found.found.outcome,
        sentence=f"{found.found.sentence[:1].upper()}{found.found.sentence[1:]}.",
        facts=(
            "The same tapes and the same checks, one run at a time, in an order drawn from the seed. "
            "An engine that counted wrong in any run has no figures.",
            *compared.endings(found.found),
        ),
        numbers=(),
        withheld="" if any(row.figures for row in rows) else why,
        sections=(
            _table(found),
            _bars(found),
            _latency(found),
            *_curves(found),
            _fairness(found),
            every_run.section(found.done, "leg", lambda case: case.leg.value),
            _again(found),
            _next(found),
        ),
    )


def answer_of(found: Compared) -> experiment.Answer:
    """Build the answer for CI jobs, with a case for each run."""
    cases = experiment.cases_of(compare.SCENARIO, found.done, found.missing, lambda case: case.leg.value)
    facts = {"seed": str(found.asked["seed"]), **dict(fairness.flat(found.environment))}
    return experiment.Answer("compare", found.found.outcome, found.found.sentence, command(found), facts, cases)


def _next(found: Compared) -> Section:
    words = shlex.split(command(found))
    quick = "--quick" in words
    return next_step.of_comparison(found.folder.path, found.found, words, missing=len(found.missing), quick=quick)


def _table(found: Compared) -> Section:
    header, lines = compared.full_table(found.found)
    unknown = left_out(header, lines)
    return Section(
        "table",
        "The table",
        text=(
            "Medians over the rounds, with a bootstrap interval where there are several. Latency, CPU/M, memory and "
            "start are of the fixed rate. "
            + "; ".join(f"{heading}: {words}" for heading, words, _ in FIGURES.values())
            + ".",
            compared.ABOUT_COST,
            *compared.searched(found.found),
            *((f"Not known of any engine: {', '.join(unknown)}.",) if unknown else ()),
        ),
        tables=(PageTable(header, tuple(tuple(line) for line in lines)),),
    )


def _bars(found: Compared) -> Section:
    panels = [_panel(found, name) for name in PANELS]
    panels = [panel for panel in panels if any(bar.value is not None for bar in panel.bars)]
    if not panels:
        return Section("bars", "Figure by figure", missing=("no engine has a figure that may be shown.",))
    alt = "; ".join(
        f"{panel.title}: " + ", ".join(f"{b.engine} {panel.text(b.value)}" for b in panel.bars if b.value is not None)
        for panel in panels
    )
    return Section("bars", "Figure by figure", picture=picture("bars", alt, lambda sheet: bars.draw(panels, sheet)))


def _panel(found: Compared, name: str) -> bars.Panel:
    _, words, write = FIGURES[name]
    drawn = []
    for row in found.found.rows:
        seen = row.figures.get(name)
        value, low, high = (seen.median, seen.low, seen.high) if seen else (None, None, None)
        drawn.append(bars.Bar(row.engine, value, low, high, baseline=row.engine == BASELINE))
    return bars.Panel(words, tuple(drawn), write)


def _latency(found: Compared) -> Section:
    name, title = "latency", "Latency by percentile"
    curves = [curve for number, row in enumerate(found.found.rows) if (curve := _curve(found, row.engine, number))]
    if not curves:
        return Section(name, title, missing=("no engine has latencies that may be shown.",))
    alt = "latency by percentile of " + ", ".join(curve.label for curve in curves)
    return Section(
        name,
        title,
        picture=picture(name, alt, lambda sheet: percentiles.draw(curves, sheet)),
        text=("By probes, from intended times, from the raw samples of all rounds of the fixed rate together.",),
    )


def _curve(found: Compared, engine: str, number: int) -> percentiles.Curve | None:
    row = next(each for each in found.found.rows if each.engine == engine)
    if not row.figures:
        return None
    tables = [s.read_table("latency.parquet") for s in found.stores(engine, Leg.STEADY) if s.has("latency.parquet")]
    if not tables:
        return None
    raw = pa.concat_tables(tables)
    samples, censored = latency.samples_of(raw, "probes", "corrected_ms", found.folder.path)
    colour = MUTED if engine == BASELINE else COLOURS[number % len(COLOURS)]
    curve = percentiles.Curve(engine, samples, censored, colour, dashed=engine == BASELINE)
    return curve if curve.last_share > 0 else None


def _curves(found: Compared) -> Iterator[Section]:
    """Draw all searches in one picture."""
    lines = [_line(searched, number) for number, searched in enumerate(found.searches.values())]
    lines = [line for line in lines if line.rungs]
    if not lines:
        return
    objective_ms = next(iter(found.searches.values())).settings.life.objective_p99_ms
    alt = "p99 of latency against the rate of " + ", ".join(line.label for line in lines)
    yield Section(
        "throughput",
        "Latency against throughput",
        picture=picture("throughput", alt, lambda sheet: throughputs.draw(lines, objective_ms, sheet)),
        text=(
            "Each engine was offered all of its rates in one engine run. A filled mark is a rate that was sustained "
            "in two repeats; within an engine's pale band its p99 crosses the objective.",
            *compared.searched(found.found),
        ),
    )


def _line(searched: Searched, number: int) -> throughputs.Line:
    engine = searched.spec.engine
    colour = MUTED if engine == BASELINE else COLOURS[number % len(COLOURS)]
    return throughputs.Line(engine, colour, curve.rungs(searched), curve.knee(searched))


def _fairness(found: Compared) -> Section:
    specs = {engine: _spec(found, engine) for engine in found.engines}
    known = {engine: fairness.settings(spec) for engine, spec in specs.items() if spec}
    alike, unlike = _parted(known)
    claims = tuple(tuple(_claim(found, engine)) for engine in found.engines)
    own = {engine: _own_settings(found, engine) for engine in found.engines}
    return Section(
        "fairness",
        "Fairness card",
        text=(
            "The claims and settings of each engine. Settings that differ come first.",
            *(() if unlike else ("No setting differs.",)),
        ),
        tables=(
            PageTable(("engine", "claims", "late events", "early results"), claims, "Engine types"),
            PageTable(("setting", *known), unlike, "Settings that differ"),
            *(
                PageTable(("setting", "value"), tuple(settings.items()), f"What the job of {engine} sets", folded=True)
                for engine, settings in own.items()
                if settings
            ),
            PageTable(("", ""), tuple(fairness.flat(found.environment)), "Machine and versions"),
            PageTable(("setting", "value"), alike, "Equal settings (fixed rate)", folded=True),
        ),
    )


def _parted(known: Mapping[str, Mapping[str, str]]) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, ...], ...]]:
    names = dict.fromkeys(name for settings in known.values() for name in settings)
    values = {name: tuple(settings.get(name, "not set") for settings in known.values()) for name in names}
    alike = tuple((name, each[0]) for name, each in values.items() if len(set(each)) == 1)
    return alike, tuple((name, *each) for name, each in values.items() if len(set(each)) > 1)


def _spec(found: Compared, engine: str) -> RunSpec | None:
    for store in found.stores(engine, Leg.STEADY):
        try:
            return StoredRun(store).spec
        except MissingEvidence:
            continue
    return None


def _own_settings(found: Compared, engine: str) -> dict[str, str]:
    for store in found.stores(engine, Leg.STEADY):
        try:
            return {name: str(value) for name, value in store.read_json("engine_settings.json").items()}
        except MissingEvidence:
            continue
    return {}


def _claim(found: Compared, engine: str) -> Iterator[str]:
    yield engine
    spec = _spec(found, engine)
    for store in found.stores(engine, Leg.STEADY)[:1]:
        if spec:
            run = StoredRun(store)
            manifest, sink = run.manifest, run.claim
            yield f"{sink.name}: {sink.guarantee}"
            yield "dropped" if sink.late == "drop" else "counted"
            yield manifest.early or "not declared"
            return
    yield from ("not known", "", "")


def _again(found: Compared) -> Section:
    text = reproduce.hidden(found.asked["flags"])
    return Section("reproduce", "Do it again", text=tuple(text), code=(command(found),))


def command(found: Compared) -> str:
    settings = msgspec.convert(found.asked["settings"], Settings)
    rounds = ["--quick"] if settings.rounds == 1 else ["--repeat", str(settings.rounds)]
    flags = [word for name, value in found.asked["flags"].items() for word in flag(name, value)]
    engines: Sequence[str] = found.asked["named"]
    searched = ["--search"] if found.asked["search"] else []
    return shlex.join([COMMAND, "compare", *engines, *rounds, *searched, *flags])
