"""The pages of `serve` in a real browser: by day and by night, on a desk and on a phone, with scripts wherever a text
of a run can be. Needs Chromium from the distribution; elsewhere it is skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from harness.experiments.folder import Folder
from harness.model import Outcome
from harness.web.server import Server
from reports.browse import series
from reports.browse.site import Site
from tests.quality.browser import BROWSER, Tab, tab
from tests.quick.browse import folders
from tests.quick.browse.folders import DOUBLES, RIGHT, SCRIPT

WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
PROBLEMS = (Path(__file__).parent / "problems.js").read_text()
NONE = {"sideways": False, "faint": [], "cut": [], "empty": 0}
CASE = {"engine": SCRIPT, "sink": "absolute", "seed": 1}
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="NOT TRIED: no chromium or google-chrome on PATH to open the pages in"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.unpack(tmp_path_factory.mktemp("stored"))


@pytest.fixture
def runs(tmp_path: Path, stored: Path) -> Path:
    """All kinds of runs."""
    runs = folders.copied(stored, tmp_path / "runs", *folders.USED)
    shutil.copytree(stored / RIGHT, runs / "right-again")
    folders.script_in_a_name(runs, stored)
    (runs / SCRIPT.replace("/", "_")).mkdir()
    return runs


def experiment_in(runs: Path) -> Folder:
    experiment = Folder.create(runs, "chaos")
    wanted = [{**CASE, "fault": fault} for fault in ("none", "kill@c3:batch=3", SCRIPT)]
    experiment.save("chaos", wanted=wanted, done=[])
    return experiment


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_whole_and_runs_no_script_of_a_run(browser, runs, stored, width, scheme):
    experiment = experiment_in(runs)
    folders.copied(stored, experiment.runs, RIGHT)
    experiment.finished(Outcome.FAIL, SCRIPT)
    site = Site({"runs": runs})
    plans = [each.name for each in series.found(site.index.entries())]
    addresses = {
        "list": "",
        "found": f"?{urlencode({'word': SCRIPT})}",
        "run": f"run/runs/{RIGHT}",
        "compared": f"compare?a=runs/{RIGHT}&b=runs/{DOUBLES}",
        "trends": "trends",
        "trend": f"trend?{urlencode({'series': plans[0]})}",
        "experiment": f"in/runs/{experiment.path.name}",
    }
    browser.look(width, scheme)
    with Server(site.answers) as server:
        for name, address in addresses.items():
            browser.open(server.url + address)
            assert problems(browser) == NONE, name
            assert browser.value("document.scripts.length") == 0, name
            assert browser.errors == [], name
            shoot(browser, f"serve-{name}-{width}-{scheme}")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_an_experiment_in_progress_is_watched_from_the_list(browser, runs, stored, width, scheme):
    experiment = experiment_in(runs)
    run = folders.running(experiment.runs, stored)
    (run.path / "logs" / f"{SCRIPT.replace('/', '_')}.log").write_text(SCRIPT)
    browser.look(width, scheme)
    with experiment.going_on("resume it"), Server(Site({"runs": runs}).answers) as server:
        browser.open(server.url)
        browser.value(f"document.querySelector('.notice a[href*=\"{experiment.path.name}\"]').focus()")
        browser.press("Enter")
        browser.until("document.querySelectorAll('#cases li').length === 3")
        browser.until("document.querySelector('#logs').textContent.includes('alert(1)')")
        assert "1 running, 2 waiting" in browser.text("#experiment-state")
        assert "chaos: 3 cases" in browser.text("#experiment-title")
        assert problems(browser) == NONE
        assert browser.value("document.scripts.length") == 2, "those of the page, and none of a run"
        shoot(browser, f"serve-live-{width}-{scheme}")
        assert {url for url in browser.requests if not url.startswith((server.url, "data:"))} == set()
    assert browser.errors == []


def problems(browser: Tab) -> dict[str, Any]:
    found: dict[str, Any] = browser.value(PROBLEMS)
    return found


def shoot(browser: Tab, name: str) -> None:
    """Keep a picture where someone wants to look at it."""
    if folder := os.environ.get("STREAMGAUGE_PICTURES"):
        browser.picture(Path(folder) / f"{name}.png", whole=True)
