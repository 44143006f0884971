"""The page of a gate: what differs with its interval, each round, the three sides; and no figure of a head that counts
wrong. All of it is made from the files of the gate's folder."""

from __future__ import annotations

import csv
import json
import re
import shlex
from dataclasses import replace

import pytest
import typer.core
import typer.main
from matplotlib.figure import Figure
from typer.testing import CliRunner

from harness.cli import app
from harness.experiments.gating.gate import SIDES, Judged
from harness.experiments.gating.rounds import METRICS
from harness.model import Exit, Outcome
from reports import gate_page, gated
from reports.figures import forest, style
from reports.figures.forest import Row, Span
from tests.program import pages
from tests.quick.experiments.test_gate import measured

WRONG = Judged(Outcome.FAIL, "lost: 251 events are missing from 8 cells", "runs/head")
FIGURE = r"[+-]\d+\.\d%|CPU-s per|MiB"


def seen(made):
    """The same rounds, 2 s apart, each of whose events were seen."""
    counted = {
        "allocated_bytes": 10**9,
        "kafka_bytes": 24_000_000,
        "redis_commands": 1000,
        "checkpoint_bytes": 10**7,
        "state_updates": 99,
    }
    return [replace(each, at_ms=2000.0 * n, p50_ms=400.0, p99_ms=900.0, **counted) for n, each in enumerate(made)]


OK = seen(measured())
SLOWER = seen(measured(head=0.2))
NOISY = seen(measured(starts=4, apart=0.06))


@pytest.fixture
def page(tmp_path):
    return lambda made, **what: gate_page.page_of(gated.read(pages.gate(tmp_path, made, **what)))


def section(page, name):
    [found] = [each for each in page.sections if each.id == name]
    return found


def everything(page):
    """All texts of a page, also those behind its drawings."""
    return repr(page)


def test_a_page_says_first_what_differs(page):
    made = page(SLOWER)

    assert (made.answer, made.outcome) == ("REGRESSED", Outcome.FAIL)
    assert made.title == "Gate: c0ffee against main"
    assert made.sentence.startswith("Cost +19.9% [")
    assert {each.name for each in made.pictures} == {"effects", "rounds"}
    assert [number.label for number in made.numbers] == [metric.name for metric in METRICS]
    assert made.numbers[0].value.startswith("+19.9%")
    assert made.numbers[0].note.startswith("REGRESSED; head 2")
    assert [row[0] for row in section(made, "effects").tables[0].rows] == [metric.name for metric in METRICS]


def test_the_three_sides_lead_to_their_own_pages(page):
    [table] = section(page(OK), "sides").tables

    assert [row[0].href for row in table.rows] == [f"runs/{side}/report.html" for side in SIDES]
    assert [row[1] for row in table.rows] == ["main", "c0ffee", "main"]


def test_every_metric_is_explained(page):
    [said] = section(page(OK), "rounds").text

    assert list(gate_page.METRICS_SAID) == [metric.name for metric in METRICS]
    assert all(words in said for words in gate_page.METRICS_SAID.values())


def test_why_nothing_can_be_told_stands_below_the_drawing(page):
    made = page(NOISY)

    assert made.answer == "INCONCLUSIVE"
    assert any("starts are needed" in text for text in section(made, "effects").text)


@pytest.mark.parametrize("sides", [{"head": WRONG}, {"base": replace(WRONG, outcome=Outcome.UNKNOWN)}])
def test_no_figure_of_a_wrong_head_is_on_its_page(page, sides):
    made = page(SLOWER, **sides)

    assert made.pictures == ()
    assert made.withheld
    assert [each.id for each in made.sections] == ["sides", "machine", "reproduce", "next"]
    assert not re.search(FIGURE, everything(made))


def test_the_figures_of_a_right_head_would_be_seen_there(page):
    assert re.search(FIGURE, everything(page(SLOWER)))


def test_a_page_is_made_again_from_the_files_alone(tmp_path):
    folder = pages.gate(tmp_path, OK)
    gate_page.write(folder)
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for path in left:
        if path.name not in ("experiment.json", "rounds.jsonl", "spec.json"):
            path.unlink()

    done = CliRunner().invoke(app.app, ["report", str(tmp_path), "--json"], catch_exceptions=False)

    assert done.exit_code == Exit.PASS
    assert json.loads(done.stdout)["missing"] == []
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == left


def test_what_is_drawn_is_there_as_numbers(tmp_path):
    gate_page.write(pages.gate(tmp_path, OK))

    rows = list(csv.DictReader((tmp_path / "figures" / "rounds.csv").read_text().splitlines()))
    assert len(rows) == len(OK) * len(METRICS)
    first = next(row for row in rows if row["metric"] == "latency p99")
    assert first == {"side": "base", "second": "0.000", "metric": "latency p99", "unit": "ms", "value": "900"}


def test_rounds_that_somebody_removed_are_said_to_be_missing(tmp_path):
    folder = pages.gate(tmp_path, OK)
    (tmp_path / "rounds.jsonl").unlink()

    made = gate_page.write(folder)

    assert section(made, "rounds").missing == ("rounds.jsonl is missing or empty.",)
    assert made.numbers[0].note == "OK"


def test_a_gate_that_was_broken_off_has_a_page(tmp_path):
    folder = pages.gate(tmp_path, OK)
    content = json.loads((tmp_path / "experiment.json").read_text())
    del content["found"]
    (tmp_path / "experiment.json").write_text(json.dumps(content))

    made = gate_page.write(folder)

    assert made.sentence == "The gate was aborted before its end."
    assert made.pictures == ()
    assert "aborted" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("made", "sides", "wanted"),
    [
        (OK, {}, []),
        (SLOWER, {}, ["gate"]),
        (NOISY, {}, ["gate --budget 20", "gate --threshold"]),
        (OK, {"head": WRONG}, ["recheck"]),
        (OK, {"base": replace(WRONG, outcome=Outcome.UNKNOWN)}, ["doctor", "gate"]),
    ],
)
def test_what_to_try_next_is_what_the_answer_leaves_open(page, made, sides, wanted):
    group = typer.main.get_command(app.app)
    assert isinstance(group, typer.core.TyperGroup)
    [table] = section(page(made, **sides), "next").tables
    commands = [command for _, command in table.rows]

    assert len(commands) == len(wanted)
    for command, each in zip(commands, wanted, strict=True):
        name, *words = each.split()
        assert command.startswith(f"./streamgauge {name}")
        assert " ".join(words) in command
        typed = shlex.split(command)
        group.commands[name].make_context(name, typed[2:])


# ---------------------------------------------------------------- The drawing


def drawn(*rows):
    sheet = style.Sheet(Figure(), style.WIDE_PX)
    forest.draw(rows, 0.05, sheet)
    [axes] = sheet.figure.axes
    return axes


def row(low=-0.01, high=0.03, detectable=0.02):
    return Row("cost", "OK", style.GREEN, Span(0.01, low, high), Span(0.0, -0.01, 0.01), detectable)


def arrows(axes):
    return [line.get_marker() for line in axes.lines if line.get_marker() in ("<", ">")]


def test_an_interval_that_goes_on_beyond_the_drawing_is_an_arrow():
    assert arrows(drawn(row())) == []
    assert arrows(drawn(row(low=-3.0, high=7.0))) == ["<", ">"]
    assert drawn(row(high=7.0)).get_xlim()[1] == forest.WIDEST


def test_a_slowdown_that_is_not_on_the_drawing_is_said():
    assert "detectable 250%" in [text.get_text() for text in drawn(row(detectable=2.5)).texts]
    assert not drawn(row()).texts
