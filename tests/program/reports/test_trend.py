"""`trend`, as people and Otava meet it: a screen, a page, drawings, and files that Otava itself would read."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from ruamel.yaml import YAML

from harness.cli import app
from harness.drivers import gate as drive_gate
from harness.experiments.folder import Folder
from harness.experiments.gating import baseline, history
from harness.experiments.gating.gate import ANY, Answer, Judged
from harness.experiments.gating.history import History
from harness.model import Exit, Outcome
from harness.services import owners
from harness.terminal import console
from harness.terminal.command_end import ended
from harness.util import texts
from reports import files, gated, trend_page, trended
from reports.exports import otava
from reports.figures import style
from reports.figures import trend as drawing
from tests.program import pages
from tests.quick.experiments.test_gate import measured
from tests.quick.histories import OTHER_CPU, entry, figure, many

STEP = 24  # from this gate on all costs a tenth more
ODD = (
    *(
        'feature/a,b "c"',
        "na\u00efve \u65e5\u672c",
        "\x1b[31mred\x1b[0m",
        "two\nlines",
        "=cmd()",
        "$x^2$ $",
        "<b>&amp;",
    ),
    *("x" * 300, "a;b|c", "'", " ", "\udc80"),
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)
    return tmp_path


def kept(place, *entries):
    (place / "gates.jsonl").write_bytes(b"".join(map(history.encoded, entries)))
    return "gates.jsonl"


def trend(*words):
    return ended(["trend", *words], lambda: app.called(["trend", *words]))


def two_machines():
    """All that there is: machines by turns, a wrong head, one that nobody could judge, a declined figure."""
    by_turns = [
        replace(e, environment={**e.environment, "cpu": OTHER_CPU}) if n % 2 else e for n, e in enumerate(many(8))
    ]
    wrong = replace(
        by_turns[3], metrics=(), answer=Answer.REGRESSED, sentence="the head counts wrong: lost: 251 events"
    )
    wrong = replace(wrong, head=replace(wrong.head, verdict=Outcome.FAIL))
    unknown = replace(by_turns[5], metrics=(), answer=Answer.INCONCLUSIVE)
    p99 = replace(figure("latency p99", 3.0), answer=Answer.INCONCLUSIVE, declined="others used 1.9 cores")
    declined = entry(8, figure(), p99, sentence="cost +0.0%")
    return [*by_turns[:3], wrong, by_turns[4], unknown, *by_turns[6:], declined]


def stepped():
    return many(40, lambda number: 1.10 if number >= STEP else 1.0)


# ---------------------------------------------------------------- From a gate


def gate(*words):
    line = ["gate", "--base", "reference", "--head", "reference", *words]
    return ended(line, lambda: app.called(line))


def test_each_gate_adds_its_line(place, monkeypatch, capsys):
    for slower in (0.0, 0.5):
        folder = pages.gate(Folder.create(place, "gate").path, measured(head=slower))
        found = gated.read(folder).found
        monkeypatch.setattr(drive_gate, "drive", lambda *_, made=(found, folder.path): made)
        gate("--history", "gates.jsonl")

    assert capsys.readouterr().err.count("added to gates.jsonl") == 2
    assert [each.answer for each in history.read(Path("gates.jsonl")).entries] == [Answer.OK, Answer.REGRESSED]


def test_a_file_that_is_no_history_is_told_before_a_gate_takes_its_time(place, monkeypatch, capsys):
    monkeypatch.setattr(drive_gate, "drive", lambda *_: pytest.fail("it began"))
    (place / "notes.txt").write_text("mine")

    assert gate("--history", "notes.txt") == Exit.USAGE

    assert "notes.txt: no line of it is a gate" in capsys.readouterr().err
    assert (place / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--base", "main"], "--base can't be given beside --save-baseline"),
        (["--threshold", "3%"], "--threshold can't be given beside --save-baseline"),
    ],
)
def test_what_has_no_meaning_while_a_baseline_is_measured_is_refused(words, told, place, capsys):
    line = ["gate", "--head", "reference", "--save-baseline", "baseline.json", *words]

    assert ended(line, lambda: app.called(line)) == Exit.USAGE
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("right", [True, False])
def test_a_baseline_is_saved_of_a_head_that_counts_right(right, place, monkeypatch, capsys):
    (place / "baseline.json").write_text("the one before")
    head = Judged(Outcome.PASS if right else Outcome.FAIL, "lost: 251 events", "runs/head")
    asked = {"base": "reference", "saves": "baseline.json", "threshold": ANY}
    folder = pages.gate(Folder.create(place, "gate").path, measured(head=11.0), asked=asked, head=head)
    monkeypatch.setattr(drive_gate, "drive", lambda *_: (gated.read(folder).found, folder.path))
    line = ["gate", "--head", "reference", "--save-baseline", "baseline.json", "--history", "gates.jsonl"]

    assert ended(line, lambda: app.called(line)) == (Exit.PASS if right else Exit.FAIL)

    said = capsys.readouterr()
    if right:
        assert said.out.startswith("OK  cost 1")
        assert baseline.read("baseline.json", {}, 0).stored().ratios["cost"].estimate == pytest.approx(12, rel=0.05)
    else:
        assert "baseline.json is left as it was" in said.err
        assert (place / "baseline.json").read_text() == "the one before"
    assert len(history.read(Path("gates.jsonl")).entries) == 1


# ---------------------------------------------------------------- On a terminal


def test_the_newest_gates_stand_on_the_screen_with_their_ratios(place, capsys):
    assert trend(kept(place, *two_machines())) == Exit.PASS

    said = capsys.readouterr()
    assert said.err == ""
    first, *_ = said.out.splitlines()
    assert first.startswith("OK  2026-03-09, main: ")
    assert "9 gates in 2 series, 2026-03-01 to 2026-03-09: 1 REGRESSED, 7 OK, 1 INCONCLUSIVE." in said.out
    assert f"-> {OTHER_CPU}" in said.out
    assert re.search(r"\+?-?\d\.\d%", said.out)
    assert "+200" not in said.out, "what was declined is no ratio to read"
    assert said.out.splitlines()[-1] == "trend/report.html"


def test_it_fits_a_terminal():
    found = History(tuple(two_machines()))
    lines = console.fitted_table(trended.rows(found), trended.header(found), 79).splitlines()

    assert max(map(len, lines)) <= 79
    assert len(lines) + len(list(trended.series_lines(found))) * 3 + 5 <= 24


def test_as_json_it_is_one_object_with_every_gate(place, capsys):
    made = two_machines()
    with Path(kept(place, *made)).open("ab") as file:
        file.write(b'{"schema":1,"at":"2026')

    assert trend("gates.jsonl", "--json") == Exit.PASS

    said = capsys.readouterr()
    told = json.loads(said.out)
    assert sum(len(each["entries"]) for each in told["series"]) == told["gates"] == len(made)
    assert told["series"][1]["changes"][0].startswith("cpu ")
    (passed_over,) = told["passed_over"]
    assert "line 10: it is cut off" in passed_over
    assert said.err.splitlines() == [f"skipped: {passed_over}"]
    assert json.loads((place / "trend" / "trend.json").read_text()) == told


# ---------------------------------------------------------------- Bad input


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "There is no gates.jsonl"),
        (b"", "gates.jsonl: it is empty"),
        (b"half a li", "no line of it is a gate"),
        (b'{"schema":2}\n', "was written in schema 2, this program reads 1"),
    ],
)
def test_what_is_no_history_is_told_and_nothing_is_made(content, told, place, capsys):
    if content is not None:
        (place / "gates.jsonl").write_bytes(content)

    assert trend("gates.jsonl", "--json") == Exit.USAGE

    assert told in json.loads(capsys.readouterr().out)["error"]
    assert not (place / "trend").exists()


def test_a_folder_of_somebody_else_is_not_written_to(place, capsys):
    (place / "mine" / "figures").mkdir(parents=True)
    (place / "mine" / "figures" / "holiday.png").write_text("x")

    assert trend(kept(place, entry()), "--out", "mine") == Exit.USAGE

    assert "contains other files than a trend" in capsys.readouterr().err
    assert (place / "mine" / "figures" / "holiday.png").exists()


def test_a_trend_is_made_again_where_it_is(place):
    assert trend(kept(place, *many(2), entry(3, cpu=OTHER_CPU))) == Exit.PASS
    assert trend(kept(place, entry())) == Exit.PASS

    assert [path.name for path in (place / "trend" / "figures").glob("*.csv")] == ["cost-1.csv"]


# ---------------------------------------------------------------- The page


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The page of a history with all that there is."""
    folder = tmp_path_factory.mktemp("trend") / "trend"
    return trend_page.write(History(tuple(two_machines())), folder), folder


def test_the_page_has_a_drawing_for_each_metric(drawn):
    page, folder = drawn

    assert [each.name for each in page.pictures] == ["trend-cost", "trend-latency-p99", "trend-memory"]
    for each in page.pictures:
        assert (folder / "figures" / f"{each.name}.png").read_bytes().startswith(b"\x89PNG")
        assert "series 2" in each.alt
    html = (folder / "report.html").read_text()
    assert "+200.0%" not in html, "what was declined is no ratio to read"
    for text in ("declined", "the head counts wrong: lost: 251 events", OTHER_CPU, "otava analyze all", "otava.yaml"):
        assert text in html
    assert {path.name for path in folder.iterdir() if path.is_file()} - {"report.html"} <= files.KNOWN.keys()
    for link in re.findall(r'<a href="([^#"]+)"', html):
        assert (folder / link).exists(), link


def test_the_answers_have_colours_and_marks_of_their_own():
    sheet = style.Sheet(Figure(), style.WIDE_PX)
    points = (
        drawing.Point(0, "OK", 1.0, 0.9, 1.1),
        drawing.Point(1, "REGRESSED", 1.2, 1.1, 1.3),
        drawing.Point(2, "REGRESSED"),
    )

    drawing.draw([drawing.Panel("series 1", points, 0.05)], ["2026-03-01"] * 3, sheet)

    (axes,) = sheet.figure.axes
    marks = {(line.get_color(), line.get_marker()): np.array(line.get_xdata()).tolist() for line in axes.lines[1:]}
    assert marks[style.GREEN, "o"] == [0]
    assert marks[style.RED, "D"] == [1]
    assert marks[style.RED, "x"] == [2], "a wrong head has no figure and is seen all the same"
    low, high = axes.get_ylim()
    assert low < 1
    assert 1.2 < high < 1.4


@pytest.mark.parametrize("width_px", [style.WIDE_PX, style.NARROW_PX])
def test_no_name_breaks_a_drawing(width_px):
    """Letters that our font does not have, and what looks like a formula."""
    sheet = style.Sheet(Figure(), width_px)
    panels = [drawing.Panel(texts.printable(name), (drawing.Point(0, "OK", 1.0),), 0.05) for name in ODD]

    drawing.draw(panels, ["2026-03-01"], sheet)

    sheet.figure.draw_without_rendering()
    titles = [axes.get_title() for axes in sheet.figure.axes]
    assert len(titles) == len(ODD)
    assert all(title.isascii() and title.isprintable() for title in titles), titles
    assert "$x^2$ $" in titles


def test_a_long_history_is_drawn_as_far_as_it_can_be_seen_and_says_so(tmp_path):
    found = History(tuple(many(1000)))

    page = trend_page.write(found, tmp_path / "long")

    assert "The newest 300 gates are drawn" in page.sections[0].text[1]
    assert len((tmp_path / "long" / "figures" / "cost-1.csv").read_text().splitlines()) == 1001
    assert (tmp_path / "long" / "report.html").stat().st_size < 2_000_000


def test_ratios_by_the_reference_engine_are_drawn_in_times(tmp_path):
    found = History(
        tuple(entry(n, replace(figure(), ratio=12.0 + n / 10, low=11.0, high=13.0), threshold=ANY) for n in range(5))
    )
    (cost, *_) = trend_page.page_of(found).sections
    assert cost.picture
    assert "from 12 times to 12.4 times" in cost.picture.alt
    assert trended.rows(found)[0][3] == "12 times"

    sheet = style.Sheet(Figure(), style.WIDE_PX)
    panels, _ = trend_page._panels(found, found.entries, "cost")
    drawing.draw(panels, ["2026-03-01"] * 5, sheet)
    low, high = sheet.figure.axes[0].get_ylim()
    assert (11 < low < 12, 12.4 < high < 13) == (True, True)


def test_many_series_are_drawn_as_far_as_there_is_room_and_told(tmp_path):
    found = History(tuple(entry(number, cpu=f"cpu {number}") for number in range(20)))

    page = trend_page.page_of(found)

    assert "Not drawn: 14 older series." in page.sections[0].text
    (series,) = [each for each in page.sections if each.id == "series"]
    assert len(series.tables[0].rows) == 20


def test_a_history_without_any_figure_has_a_page_too(tmp_path):
    wrong = replace(entry(), metrics=(), answer=Answer.REGRESSED)

    page = trend_page.write(History((wrong,)), tmp_path / "trend")

    assert page.pictures == ()
    assert page.outcome is Outcome.FAIL
    assert as_otava_reads(tmp_path / "trend") == {}


# ---------------------------------------------------------------- Otava


def as_otava_reads(folder: Path) -> dict[str, list[tuple[datetime, float]]]:
    """Test -> its points, in the way of its configuration and of its importer for CSV."""
    config = YAML(typ="safe").load((folder / otava.FILE).read_text())
    tests = config["tests"]
    names = [name for test in tests.values() for name in test["metrics"]]
    assert len(names) == len(set(names)), "`otava validate` refuses a metric that two tests have"
    for group in config.get("test_groups", {}).values():
        assert set(group) <= tests.keys()
    if tests:
        assert config["test_groups"]["all"] == list(tests)
    return {name: list(_points(folder, test)) for name, test in tests.items()}


def _points(folder, test):
    assert test["type"] == "csv"
    (metric,) = test["metrics"].values()
    assert int(metric["direction"]) == -1
    with (folder / test["file"]).open(newline="") as file:
        rows = csv.reader(file, delimiter=",", quotechar='"')
        headers = next(rows)
        assert "branch" not in headers, "it takes that for one series each"
        at, value = headers.index(test["time_column"]), headers.index(metric["column"])
        for attribute in test["attributes"]:
            headers.index(attribute)
        for row in rows:
            assert len(row) == len(headers)
            yield datetime.fromisoformat(row[at]), float(row[value])


def test_what_otava_reads_is_what_the_gates_were(tmp_path):
    made = two_machines()
    trend_page.write(History(tuple(made)), tmp_path / "trend")

    found = as_otava_reads(tmp_path / "trend")

    own = [each for each in made if each.environment["cpu"] != OTHER_CPU]
    assert found["cost-1"] == [(each.at, each.figure("cost").ratio) for each in own]
    assert [len(found[name]) for name in ("cost-2", "memory-2", "latency-p99-2")] == [2, 2, 2]
    assert len(found["latency-p99-1"]) == len(own) - 1, "what was declined is left out"


def test_odd_names_leave_its_files_whole(tmp_path):
    made = [
        replace(e, head=replace(e.head, named=name, commit=""), base=replace(e.base, named=name))
        for name, e in zip(ODD, many(len(ODD)), strict=True)
    ]
    (tmp_path / "gates.jsonl").write_bytes(b"".join(map(history.encoded, made)))
    page = trend_page.write(history.read(tmp_path / "gates.jsonl"), tmp_path / "trend")

    assert len(as_otava_reads(tmp_path / "trend")) == 3 * len(ODD)
    assert page.pictures
    assert "<b>" not in (tmp_path / "trend" / "report.html").read_text()


@pytest.mark.skipif(not shutil.which("otava"), reason="NOT TRIED: no otava on PATH (`uv tool install apache-otava`)")
def test_otava_itself_finds_the_step(tmp_path):
    recent = datetime.now().astimezone() - timedelta(days=50)  # of older ones than a year it takes none
    made = [replace(each, at=recent + timedelta(days=number)) for number, each in enumerate(stepped())]
    trend_page.write(History(tuple(made)), tmp_path / "trend")
    words = ["--config-file", otava.FILE]

    def asked(*more: str) -> subprocess.CompletedProcess[str]:
        line = ["otava", *more, *words]
        return subprocess.run(line, cwd=tmp_path / "trend", capture_output=True, text=True, check=True, timeout=110)

    assert "VALID" in asked("validate").stderr
    told = json.loads(asked("analyze", "cost-1", "--magnitude", "0.05", "--output", "json").stdout)
    (change,) = told["cost-1"]
    assert change["time"] == int(made[STEP].at.timestamp())
    said = asked("analyze", "cost-1", "--magnitude", "0.05", "--output", "regressions_only").stdout
    assert "Regressions in cost-1" in said, "more is worse"
