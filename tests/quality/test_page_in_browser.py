"""The page in a real browser: no error, nothing fetched, every figure to be seen and read, on a phone and on a desk,
by day and by night. Needs Chromium from the distribution; elsewhere it is skipped, and pytest's summary says so.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.drivers import one_run
from harness.experiments.folder import Folder
from harness.experiments.gating.history import History
from harness.experiments.upgrade import Word
from harness.install import environment
from harness.model import Outcome
from harness.rundir.store import Store
from reports import chaos_page, compare_page, gate_page, run_page, search_page, trend_page
from reports.evidence import Evidence
from reports.figures import backfill, guarantee, percentiles, seam, states, throughput
from reports.figures.style import BLUE, picture
from reports.page import Page, Section, render
from tests.program import pages
from tests.quick.experiments.test_gate import measured
from tests.quick.histories import many

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (360, 390, 1280)
SCHEMES = {"dark": 0, "light": 1}
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="NOT TRIED: no chromium or google-chrome on PATH to open the page in"),
    pytest.mark.timeout(300),
]

# Goes into a copy of the page, in front of all else: looks at what a reader would see, and tells the frame's owner.
PROBE = """<script>
const errors = [];
addEventListener("error", e => errors.push(e.message || String(e.target)), true);
addEventListener("unhandledrejection", e => errors.push(String(e.reason)));
function rgb(text) { return text.match(/[\\d.]+/g).slice(0, 3).map(Number); }
function light(c) {
  const [r, g, b] = rgb(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); }
addEventListener("load", () => {
  const ground = getComputedStyle(document.body).backgroundColor;
  const figures = [...document.querySelectorAll("figure")].map(figure => {
    const seen = [...figure.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width > 0);
    const box = (seen[0] || figure).getBoundingClientRect();
    const texts = seen.flatMap(svg => [...svg.querySelectorAll("text")])
      .filter(t => t.textContent.trim());
    return {
      section: figure.closest("section").id, drawings: seen.length, width: box.width, height: box.height,
      texts: texts.length,
      smallest: Math.min(999, ...texts.map(t => t.getBoundingClientRect().height)),
      faintest: Math.min(999, ...texts.map(t => contrast(getComputedStyle(t).fill, ground))),
      outside: texts.filter(t => t.getBoundingClientRect().right > box.right + 3
                              || t.getBoundingClientRect().left < box.left - 3).map(t => t.textContent),
    };
  });
  const anchors = [...document.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href").slice(1));
  const cut = [...document.querySelectorAll("td, th, pre, p, h2, h3")].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5 || e.scrollWidth > e.clientWidth + 1);
  });
  const said = [...document.querySelectorAll("p, td, th, h1, h2, h3, summary")];
  parent.postMessage({
    page: location.pathname.split("/").pop(), width: innerWidth, scroll: document.documentElement.scrollWidth,
    cut: cut.map(e => e.textContent), lost: anchors.filter(id => !document.getElementById(id)),
    hidden: [...document.querySelectorAll("th")].filter(e => innerWidth > 640 && !e.closest("details")
      && e.getBoundingClientRect().width === 0).map(e => e.textContent),
    dark: light(ground) < 0.5, figures, errors, fetched: performance.getEntriesByType("resource").map(e => e.name),
    faintest: Math.min(...said.map(e => contrast(getComputedStyle(e).color, ground))),
  }, "*");
});
</script>"""
OWNER = """<!doctype html><meta charset="utf-8"><body><pre id="told"></pre><script>
const told = [];
addEventListener("message", e => {
  told.push(e.data);
  document.getElementById("told").textContent = JSON.stringify(told);
});
</script>"""


def look(folder: Path, texts: dict[str, str], scheme: str) -> list[dict[str, Any]]:
    """Open each page at each width in one browser, and give back what the probes saw."""
    owner = OWNER
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text.replace("<head>", f"<head>{PROBE}", 1), encoding="utf-8")
        for width in WIDTHS:
            owner += f'<iframe src="{name}.html" style="border:0;width:{width}px;height:900px"></iframe>'
    (folder / "owner.html").write_text(owner, encoding="utf-8")
    asked = [f"--user-data-dir={folder / 'profile'}", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
    asked += ["--virtual-time-budget=10000", "--window-size=1400,1000", "--dump-dom", str(folder / "owner.html")]
    done = subprocess.run([str(BROWSER), *QUIET, *asked], capture_output=True, text=True, timeout=120, check=True)
    told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert told, f"the browser ended without a word: {done.stderr[-2000:]}"
    seen: list[dict[str, Any]] = json.loads(html.unescape(told[1]) or "[]")
    return seen


def a_run(folder: Path, *arguments: str) -> str:
    """The page of a run of the fake engine."""
    fast = ["--engine", "fake", "--rate", "200", "--duration", "30s", "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "describe", lambda: {"python": "3.11", "packages": {"numpy": "2.4"}})
        patch.setattr(one_run, "write_page", lambda *_: None)
        CliRunner().invoke(app.app, ["run", *fast, *arguments], catch_exceptions=False)
    store = Store.open(next(folder.iterdir()))
    store.write_table("timeline.parquet", pages.timeline())
    store.write_table("latency.parquet", pages.latency())
    store.write_json("measurement.json", pages.MEASURED)
    return render(run_page.page_of(Evidence(store)))


def a_search(folder: Path) -> str:
    """Its page as the command leaves it."""
    search_page.write(pages.a_search(folder, pages.curve()))
    return (folder / "report.html").read_text(encoding="utf-8")


def a_chaos(folder: Path) -> str:
    """Five sinks of one engine under three faults, one of them a plan of several."""
    place = Folder(folder)
    chaos_page.write(pages.chaos(place))
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert [link for link in re.findall(r'<a href="([^#"]+)"', text) if not (folder / link).exists()] == []
    return text


def a_comparison(folder: Path) -> str:
    """Six engines, each with every figure and its interval: the widest table that there is."""
    return render(compare_page.page_of(pages.comparison(folder)))


def a_gate(folder: Path) -> str:
    gate_page.write(pages.gate(folder, measured(count=40, head=0.1)))
    return (folder / "report.html").read_text()


def drawings_of_no_run() -> str:
    """On a page of their own."""
    rungs = [
        throughput.Rung(
            rate, throughput.Range(rate, rate, rate), None, throughput.Range(5, 10 + rate / 99, 90), rate < 5e3
        )
        for rate in range(1000, 7000, 1000)
    ]
    knee = throughput.Knee(4900.0, 5500.0)
    curve = percentiles.Curve("probes", pages.PROBES, 3, BLUE, labelled=True)
    drawn = (
        picture("throughput", "latency against throughput", lambda s: throughput.draw(rungs, knee, 10_000.0, s)),
        picture("latency", "latency by percentile", lambda s: percentiles.draw([curve], s)),
    )
    words = dict(zip(("spark/absolute", "flink/absolute", "kafka-streams/highest"), Word, strict=False))
    marks = [guarantee.Mark(f"change {n}", place, word, "") for n in range(3) for place, word in words.items()]
    taken = (seam.Stretch("files", -500, 0, "3", True), seam.Stretch("Kafka", 0, 400, "14", False))
    row = seam.Row({"files": (-500, 0), "Kafka": (-100, 400)}, taken, {"wrong": [-1], "dropped as late": [200]})
    held = [states.Held(n, 7.0 * n, 9000, 8990, 8990, {"forgotten": 10} if n == 4 else {}) for n in range(10)]
    windows = [backfill.Window(10.0 * n, (400 - n, n, 0), n, 399 if n < 4 else 0) for n in range(8)]
    costs = [backfill.Cost("CPU", 40.0, 30.5), backfill.Cost("time", 50.0, 20.0)]
    moments = (
        picture("changes", "what came of each", lambda s: guarantee.draw(marks, s)),
        picture("seam", "files and Kafka", lambda s: seam.draw([row] * 4, s)),
        picture("state", "what lay in it", lambda s: states.draw(held, [states.Blow(3, "kill@c3:batch=3")], s)),
        picture("backfill", "a batch beside the stream", lambda s: backfill.draw(windows, costs, s)),
    )
    sections = tuple(Section(each.name, each.name, picture=each) for each in (*drawn, *moments))
    return render(Page("drawings", "", Outcome.PASS, "held", (), (), "", sections))


def a_trend(folder: Path) -> str:
    """Gates of two machines by turns."""
    by_turns = [
        replace(each, environment={**each.environment, "cpu": f"cpu {n % 2}"}) for n, each in enumerate(many(40))
    ]
    trend_page.write(History(tuple(by_turns)), folder)
    return (folder / "report.html").read_text(encoding="utf-8")


EXPERIMENTS = ("search", "chaos", "comparison", "trend")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return {
        "pass": a_run(tmp_path_factory.mktemp("pass"), "--disorder", "late"),
        "fail": a_run(tmp_path_factory.mktemp("fail"), "--sink", "increment"),
        "one": a_run(tmp_path_factory.mktemp("one"), "--fault", "none", "--conf", "misbehave=drop:1900"),
        "drawings": drawings_of_no_run(),
        "search": a_search(tmp_path_factory.mktemp("search")),
        "chaos": a_chaos(tmp_path_factory.mktemp("chaos")),
        "comparison": a_comparison(tmp_path_factory.mktemp("comparison")),
        "trend": a_trend(tmp_path_factory.mktemp("trend")),
        "gate": a_gate(tmp_path_factory.mktemp("gate")),
    }


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_every_page_is_whole_at_every_width(scheme, texts, tmp_path):
    seen = look(tmp_path, texts, scheme)

    assert {(each["page"], each["width"]) for each in seen} == {(f"{n}.html", w) for n in texts for w in WIDTHS}
    for each in seen:
        assert each["errors"] == []
        assert each["fetched"] == []
        assert each["dark"] is (scheme == "dark")
        assert each["scroll"] <= each["width"], "the page can be pushed sideways"
        assert each["cut"] == [], (each["page"], each["width"])
        assert each["hidden"] == [], (each["page"], each["width"])
        assert each["lost"] == [], "an anchor leads nowhere"
        assert each["faintest"] >= 4.5
        assert len(each["figures"]) >= (1 if each["page"][:-5] in EXPERIMENTS else 2)
        for figure in each["figures"]:
            assert problems(figure, each["width"]) == [], (each["page"], each["width"], figure)


def problems(figure: dict[str, Any], width: int) -> list[str]:
    """What keeps a person from reading it."""
    wrong = {
        "not exactly one of its drawings is shown": figure["drawings"] != 1,
        "too narrow": figure["width"] < 0.85 * min(width, 760),
        "too flat": figure["height"] < 80,
        "without words": figure["texts"] < 4,
        "letters too small": figure["smallest"] < 9,
        "letters too faint": figure["faintest"] < 4.5,
        "letters cut off": bool(figure["outside"]),
    }
    return [name for name, is_so in wrong.items() if is_so]


def test_a_broken_page_would_be_seen(texts, tmp_path):
    broken = {
        "script": texts["fail"].replace("</body>", "<script>nope()</script></body>"),
        "picture": texts["fail"].replace("</body>", '<img src="gone.png"></body>'),
        "hidden": texts["fail"].replace("</style>", ".wide, .narrow { display: none }</style>"),
        "night": texts["fail"].replace("--ink: #e8eaed;", ""),
        "shrunk": texts["fail"].replace(".wide { display: none; } .narrow { display: block; }", ""),
        "wide": texts["comparison"].replace(
            "</style>", ".broad { max-width: none } td { white-space: nowrap }</style>"
        ),
        "nowhere": texts["fail"].replace('href="#checks"', 'href="#chequers"'),
        "pushed": texts["fail"].replace("</body>", '<div style="width: 1500px">x</div></body>'),
    }
    seen = {(each["page"][:-5], each["width"]): each for each in look(tmp_path, broken, "dark")}

    def all_problems(name, width=360):
        return {problem for figure in seen[name, width]["figures"] for problem in problems(figure, width)}

    assert "nope" in seen["script", 360]["errors"][0]
    assert seen["picture", 360]["errors"] == ["[object HTMLImageElement]"]
    assert "not exactly one of its drawings is shown" in all_problems("hidden")
    assert "letters too faint" in all_problems("night")
    assert "letters too small" in all_problems("shrunk")
    assert seen["pushed", 360]["scroll"] > 360
    assert seen["wide", 1280]["cut"]
    assert seen["nowhere", 360]["lost"] == ["chequers"]


def test_the_same_run_gives_the_same_page(tmp_path):
    first = a_run(tmp_path / "run")
    store = Store.open(next((tmp_path / "run").iterdir()))

    assert render(run_page.page_of(Evidence(store))) == first
