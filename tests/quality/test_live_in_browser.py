"""The live page in a real browser: while a run goes on and when it is stored, by day and by night, on a desk and on a
phone, by keyboard and by what a screen reader gets. Needs Chromium from the distribution; elsewhere it is skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.rundir.live_lines import LiveLines
from harness.services.owners import owner_mark
from harness.web.server import Server
from reports.live import export
from reports.live.server import LivePage
from tests.quality.browser import BROWSER, Tab, tab

WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
EPOCH_MS = 1_750_000_000_000
SCRIPT = "<img src=x onerror='document.title=1'><script>document.title=2</script>"
FAULT = {"text": "kill@c3:batch=3", "landed": False, "healed": True, "replayed": None, "reachable": True, "proof": ""}
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="NOT TRIED: no chromium or google-chrome on PATH to open the page in"),
    pytest.mark.timeout(300),
]


class Writer:
    """A run that writes what a run writes."""

    def __init__(self, folder: Path, *, keys: int = 20, windows: int = 6) -> None:
        self.folder, self.keys, self.windows = folder, keys, windows
        (folder / "logs").mkdir(parents=True)
        (folder / "history.jsonl").write_text(json.dumps({"at_ms": 1, "kind": "made"}) + "\n")
        (folder / "owner.json").write_text(json.dumps({"mark": owner_mark()}))
        spec: dict[str, Any] = {
            "scenario": "ad-impressions",
            "engine": "spark",
            "sink": "absolute",
            "disorder_name": "mobile",
        }
        spec |= {"tape": {"seed": 1, "workload": "ad_impressions"}, "fault": {**FAULT, "action": "kill", "steps": []}}
        (folder / "spec.json").write_text(json.dumps(spec))
        plan = {"tape": {"duration_ms": 60_000}, "manifest": {"ready_s": 30, "drain_s": 30}}
        (folder / "plan.json").write_text(json.dumps(plan))
        self.lines = LiveLines(folder)

    def begin(self) -> None:
        self.lines.write("phase", EPOCH_MS - 5000, name="engine", waits_for="the count of 4 opening events")
        about = {"keys": self.keys, "polled": self.keys, "visible_is": "events", "planned_visible": 9000, "lacks": ""}
        self.lines.write("load plan", EPOCH_MS - 1000, epoch_ms=EPOCH_MS, **about)
        every = f"0-{self.keys - 1}"
        groups = [[EPOCH_MS + 10_000 * window, 0, every] for window in range(self.windows)]
        self.lines.write("cells", EPOCH_MS - 1000, groups=groups)
        self.lines.write("phase", EPOCH_MS, name="load", waits_for="30,000 events in 60 s")

    def seconds(self, first: int, last: int, *, fault_at: int | None = None) -> None:
        for at in range(first, last):
            at_ms = EPOCH_MS + 1000 * at
            told = {"offered": 500 * at, "planned": 30_000, "processed": 480 * at, "visible": 150 * at}
            right = self.keys * min(at // 10, self.windows)
            cells = {"open": self.keys * self.windows - right - 1, "right": right, "too_many": 1, "wrong": 0}
            self.lines.write("second", at_ms, **told, probes_ms=[20.0 + at, 40.0], cells=cells)
            parts = {
                part: [0.4 * at, 10**9] for part in ("engine", "kafka", "redis", "generator", "harness", "live page")
            }
            self.lines.write("parts", at_ms, parts=parts, processes=[[4711, "java", 0.4 * at, 10**9]])
            if at % 10 == 0 and at // 10 <= self.windows:
                window = EPOCH_MS + at * 1000 - 10_000
                self.lines.write(
                    "cells", at_ms, groups=[[window, 1, f"0-{self.keys - 2}"], [window, 2, str(self.keys - 1)]]
                )
            if at == fault_at:
                self.lines.write(
                    "faults", at_ms, reports=[{**FAULT, "landed": True, "healed": False, "landed_ms": at_ms}]
                )

    def end(self) -> None:
        report = {
            **FAULT,
            "landed": True,
            "landed_ms": EPOCH_MS + 12_000,
            "healed_ms": EPOCH_MS + 15_000,
            "replayed": True,
        }
        self.lines.write("faults", EPOCH_MS + 60_000, reports=[report])
        checks = [{"name": "lost", "outcome": "FAIL", "sentence": f"3 events lost {SCRIPT}", "word": "lost"}]
        verdict = {"outcome": "FAIL", "sentence": "3 events lost in 1 cell", "checks": checks}
        (self.folder / "verdict.json").write_text(json.dumps(verdict))
        (self.folder / "report.html").write_text("<!doctype html><title>report</title><h1>The report</h1>")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    made = Writer(tmp_path / "run")
    (made.folder / "logs" / "engine.log").write_text(f"{SCRIPT}\njava.lang.IllegalStateException: no state {SCRIPT}\n")
    made.begin()
    made.seconds(1, 14, fault_at=12)
    return made


@pytest.fixture
def served(writer: Writer) -> Iterator[tuple[LivePage, Server]]:
    page = LivePage(writer.folder)
    with Server(page.answers) as server:
        yield page, server
        page.end()


def shoot(browser: Tab, name: str) -> None:
    """Keep a picture where someone wants to look at it."""
    if folder := os.environ.get("STREAMGAUGE_PICTURES"):
        browser.picture(Path(folder) / f"{name}.png", whole=True)


def problems(browser: Tab) -> dict[str, Any]:
    """Return what a reader would trip over: sideways scrolling, text that is cut off, and letters too faint."""
    found: dict[str, Any] = browser.value(PROBLEMS)
    return found


PROBLEMS = (Path(__file__).parent / "problems.js").read_text()
NONE = {"sideways": False, "faint": [], "cut": [], "empty": 0}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_is_shown_while_it_goes_on_and_to_its_verdict(browser, served, writer, width, scheme):
    page, server = served
    browser.look(width, scheme)
    browser.open(server.url)
    browser.until("document.querySelectorAll('.uplot').length === 5")
    browser.until("document.querySelector('#cells-canvas').width === 6")
    assert browser.text("#answer-word") == "So far"
    assert "12 s" in browser.text("#faults")
    assert "took effect" in browser.text("#faults")
    assert "no state" in browser.text("#exception")
    assert problems(browser) == NONE
    shoot(browser, f"live-{width}-{scheme}")

    writer.seconds(14, 17)
    browser.until("document.querySelector('#numbers').textContent.includes('8,000')")
    writer.end()
    browser.until("document.querySelector('#answer-word').textContent === 'FAIL'")
    assert "3 events lost in 1 cell." in browser.text("#answer-sentence")
    assert "replayed" in browser.text("#faults")
    browser.until("document.querySelector('#report').href.startsWith('blob:')")
    page.end()
    browser.until("document.querySelector('#live-word').textContent === 'ended'")

    assert problems(browser) == NONE
    assert browser.errors == []
    assert {url for url in browser.requests if not url.startswith((server.url, "data:", "blob:"))} == set()
    assert "streamgauge" in browser.value("document.title"), "no script of a log or a check has run"
    shoot(browser, f"end-{width}-{scheme}")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_stored_run_replays_from_one_file(browser, writer, width, scheme):
    writer.seconds(14, 40)
    writer.end()
    stored = export.write(writer.folder)
    assert stored
    browser.look(width, scheme)
    browser.open(stored.as_uri())
    browser.until("document.querySelector('#answer-word').textContent === 'FAIL'")
    assert problems(browser) == NONE
    shoot(browser, f"stored-{width}-{scheme}")

    browser.value("document.querySelector('#seek').focus()")
    browser.press("Home")
    browser.until("document.querySelector('#answer-word').textContent === 'So far'")
    browser.value("document.querySelector('#speed').value = '60'; document.querySelector('#play').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('#answer-word').textContent === 'FAIL'")
    assert browser.errors == []
    assert {url for url in browser.requests if not url.startswith(("file:", "data:"))} == set()


def test_the_map_is_read_by_keyboard(browser, served):
    _, server = served
    browser.look(1280, "light")
    browser.open(server.url)
    browser.until("document.querySelector('#cells-canvas').width === 6")
    for _ in range(60):
        browser.press("Tab")
        if browser.value("document.activeElement.id") == "map":
            break
    assert browser.value("document.activeElement.id") == "map", "the map is reached by Tab alone"

    browser.press("ArrowRight")
    assert browser.text("#cell") == "key 0, window at 0 s: right so far"
    for _ in range(19):
        browser.press("ArrowDown")
    assert browser.text("#cell") == "key 19, window at 0 s: too many"
    browser.press("ArrowRight")
    assert browser.text("#cell") == "key 19, window at 10 s: open"


def test_a_screen_reader_gets_headings_regions_and_what_the_pictures_show(browser, served):
    _, server = served
    browser.look(1280, "light")
    browser.open(server.url)
    browser.until("document.querySelectorAll('.uplot').length === 5")
    roles = browser.roles()

    assert {name for role, name in roles if role == "heading"} >= {
        *(
            "Phases",
            "Events per second",
            "Backlog",
            "Latency of the probes",
            "Cells",
        ),
        *("Faults", "Engine", "CPU and memory by part"),
    }
    assert any({"ad-impressions", "spark/absolute"} <= {*name.split()} for role, name in roles if role == "heading")
    pictures = [name for role, name in roles if role in ("image", "img")]
    assert any(name.startswith("Events per second") and "Newest: offered 500" in name for name in pictures)
    assert any(name.startswith("Latency of probes") for name in pictures)
    assert any(role == "application" and "right so far" in name for role, name in roles)
    assert any(role == "status" for role, _ in roles)
    assert any(role == "main" for role, _ in roles)
    assert [name for role, name in roles if role == "link" and not name] == []


def test_the_browser_goes_in_mid_run_and_comes_back(browser, served, writer):
    _, server = served
    browser.look(1280, "light")
    browser.open(server.url)
    browser.until("document.querySelectorAll('.uplot').length === 5")
    browser.open("about:blank")
    writer.seconds(14, 20)
    browser.open(server.url)

    browser.until("document.querySelector('#numbers').textContent.includes('9,500')")


def test_an_experiment_is_a_grid_that_fills(browser, tmp_path):
    experiment = tmp_path / "experiment"
    faults = [f"kill@c{point}:batch={batch}" for point in (1, 2, 3, 4) for batch in (3, 5)]
    wanted = [{"engine": "spark", "sink": "absolute", "fault": fault, "seed": 1} for fault in faults]
    done = []
    for number in range(3):
        run = Writer(experiment / "runs" / f"2026010{number}-spark")
        run.begin()
        run.seconds(1, 8)
        if number < 2:
            run.end()
            place = f"runs/{run.folder.name}"
            done.append({"case": wanted[number], "seen": "at least once", "sentence": SCRIPT, "run": place})
    content = {"kind": "chaos", "wanted": wanted, "done": done}
    (experiment / "experiment.json").write_text(json.dumps(content))
    page = LivePage(experiment)
    with Server(page.answers) as server:
        for width in WIDTHS:
            browser.look(width, "light")
            browser.open(server.url)
            browser.until("document.querySelectorAll('.uplot').length === 5")
            assert browser.value("document.querySelectorAll('#cases li').length") == len(wanted)
            assert "2 FAIL, 1 running, 5 waiting" in browser.text("#experiment-state")
            assert browser.text("#answer-word") == "So far", "the run in progress is the large one"
            assert problems(browser) == NONE
            shoot(browser, f"grid-{width}")
        browser.value("document.querySelector('#cases a').focus()")
        browser.press("Enter")
        browser.until("location.search.includes('20260100')")
        browser.until("document.querySelector('#answer-word').textContent === 'FAIL'")
        browser.value("document.querySelector('#follow a').focus()")
        browser.press("Enter")
        browser.until("location.search === '' && document.querySelector('#answer-word')?.textContent === 'So far'")
        assert browser.value("document.querySelector('#follow').hidden")
        page.end()
    run.end()
    export.write_all(experiment)
    browser.open((experiment / "live.html").as_uri())
    browser.until("document.querySelector('#shown').textContent === 'runs/20260102-spark'")
    assert browser.value("document.querySelector('#report').getAttribute('href')") == "runs/20260102-spark/report.html"
    assert problems(browser) == NONE
    assert browser.errors == []


def test_ten_thousand_cells_and_two_hours_stay_small(browser, tmp_path):
    writer = Writer(tmp_path / "run", keys=100, windows=100)
    writer.begin()
    writer.seconds(1, 7200)
    page = LivePage(writer.folder)
    with Server(page.answers) as server:
        browser.look(1280, "light")
        browser.open(server.url)
        browser.until("document.querySelector('#cells-canvas').width === 100")
        browser.ask("HeapProfiler.collectGarbage")
        used = browser.ask("Runtime.getHeapUsage")["usedSize"]
        writer.seconds(7200, 7203)
        browser.until("document.querySelector('#numbers').textContent.includes('3,601,000')")
        longest_ms = browser.value(LONGEST_FRAME)
        page.end()
    assert used < 50_000_000
    assert longest_ms > 0
    assert browser.errors == []
    print(f"heap {used / 1e6:.1f} MB, longest frame {longest_ms:.0f} ms")


LONGEST_FRAME = """new Promise(resolve => {
  let last = performance.now(), longest = 0, left = 60;
  const step = now => {
    longest = Math.max(longest, now - last);
    last = now;
    if (--left) requestAnimationFrame(step); else resolve(longest);
  };
  requestAnimationFrame(step);
})"""
