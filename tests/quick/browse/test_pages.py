"""The pages of `serve`: no foreign host, no script, and every text of a stored file is only a text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path

import pytest

from harness.experiments.folder import Folder
from harness.experiments.gating import history
from harness.rundir.store import Store
from harness.web.server import Answer, Server
from reports.browse import series, stored_files
from reports.browse.index import Entry, Figures
from reports.browse.site import Site
from reports.live import export
from tests.quick import histories
from tests.quick.browse import folders
from tests.quick.browse.folders import DOUBLES, LOSES, OLD, RIGHT, SCRIPT


class Elements(HTMLParser):
    """The elements of a page, and the addresses that they load or lead to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action", "xlink:href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def text_of(answer: Answer | None) -> str:
    assert answer is not None
    assert isinstance(answer.body, bytes)
    return answer.body.decode()


@pytest.fixture
def full(site: Site, runs: Path, stored: Path) -> Site:
    """All kinds of runs, with a script wherever a text can be."""
    folders.copied(stored, runs, *folders.USED)
    folders.running(runs, stored)
    folders.script_in_a_name(runs, stored)
    folders.not_utf8(runs, stored)
    (runs / SCRIPT.replace("/", "_")).mkdir()
    (runs / RIGHT / "logs" / f"{SCRIPT.replace('/', '_')}.log").write_text(SCRIPT)
    (runs / f"{SCRIPT.replace('/', '_')}.jsonl").write_bytes(b"".join(map(history.encoded, histories.many(2))))
    return site


def addresses_of_all(site: Site) -> list[tuple[str, dict[str, str]]]:
    entries = [each for each in site.index.entries() if each.kind == "run"]
    pairs = [("/compare", {"a": one.place, "b": other.place}) for one in entries for other in entries]
    series = [("/trend", {"series": each.series}) for each in entries]
    gates = [("/gates", {"history": f"runs/{path.name}"}) for path in site.served.roots["runs"].glob("*.jsonl")]
    return [
        ("/", {"a": entries[0].place, "word": SCRIPT, "state": SCRIPT, "engine": '"><b>', "scenario": SCRIPT}),
        ("/", {"a": SCRIPT}),
        ("/", {}),
        ("/trends", {}),
        *((f"/run/{each.place}", {}) for each in entries),
        *pairs[:20],
        *series,
        *gates,
    ]


def test_no_page_has_a_script_or_loads_from_another_host(full: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from reports.browse import pages
    from reports.figures.style import Picture

    monkeypatch.setattr(pages, "picture", lambda name, alt, _: Picture(name, alt, "<svg></svg>", "<svg></svg>", b""))
    seen = 0
    for path, query in addresses_of_all(full):
        answer = full.answers(path, query)
        if answer is None or path == "/gates":  # whose page is that of `trend`
            continue
        found = Elements(text_of(answer))
        assert "script" not in found.tags, path
        assert "b" not in found.tags, path
        assert found.handlers == [], path
        assert [each for each in found.addresses if not re.match(r"/(?!/)|#|data:,$", each)] == [], path
        assert "script-src" not in answer.policy
        assert "default-src 'none'" in answer.policy
        seen += 1
    assert seen > 20


def test_a_script_in_a_name_is_shown_as_a_text(full: Site) -> None:
    page = text_of(full.answers("/", {}))
    assert page.count("&lt;script&gt;") > 3
    assert SCRIPT not in page


def test_each_link_of_the_list_leads_to_a_page(full: Site) -> None:
    with Server(full.answers) as server:
        assert asked(server, "/")[0] == 200
        links = {each for each in Elements(asked(server, "/")[1]).addresses if each.startswith("/")}
        assert len(links) > len(folders.USED)
        assert {each: status for each in links if (status := asked(server, each)[0]) not in (200, 400)} == {}


def asked(server: Server, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode(errors="replace")
    connection.close()
    return response.status, body


def test_a_page_that_fails_costs_no_other(
    site: Site, runs: Path, stored: Path, monkeypatch: pytest.MonkeyPatch, own_state: None
) -> None:
    folders.copied(stored, runs, RIGHT)
    monkeypatch.setattr(site.index, "entries", lambda: 1 // 0)
    with Server(site.answers) as server:
        status, body = asked(server, "/")
        assert (status, "ZeroDivisionError" in body, "Traceback" in body) == (500, True, False)
        assert asked(server, f"/run/runs/{RIGHT}")[0] == 200


def test_ten_readers_at_once_get_the_same_page(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, *folders.USED)
    with Server(site.answers) as server, ThreadPoolExecutor(10) as readers:
        got = list(readers.map(lambda _: asked(server, "/"), range(30)))
    assert {status for status, _ in got} == {200}
    assert len({body for _, body in got}) == 1
    assert site.index.read == len(folders.USED)


# ---------------------------------------------------------------- Stored files


def test_a_stored_page_is_in_a_sandbox_without_scripts(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    (runs / RIGHT / "report.html").write_text(f"<style>p {{ color: red }}</style>{SCRIPT}")
    answer = site.answers(f"/files/runs/{RIGHT}/report.html", {})
    assert answer is not None
    rules = dict(rule.strip().partition(" ")[::2] for rule in answer.policy.split(";"))
    assert (rules["default-src"], rules["style-src"], rules["sandbox"]) == (
        "'none'",
        "'unsafe-inline'",
        "allow-downloads",
    )
    assert not {"script-src", "connect-src"} & rules.keys()
    assert "http" not in answer.policy


def test_the_page_that_replays_a_run_may_run_its_own_scripts_and_no_other(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    (runs / RIGHT / "live").mkdir()
    (runs / RIGHT / "live" / "lines.jsonl").write_text('{"at_ms": 1, "kind": "phase", "name": "<script>load</script>"}')
    assert export.write(runs / RIGHT)
    answer = site.answers(f"/files/runs/{RIGHT}/live.html", {})
    rules = dict(rule.strip().partition(" ")[::2] for rule in answer.policy.split(";")) if answer else {}
    allowed = set(rules["script-src"].split())
    run = [digest(each) for each in re.findall(r"<script>(.*?)</script>", text_of(answer), re.DOTALL)]
    assert len(run) == 2
    assert set(run) == allowed
    assert digest("alert(1)") not in allowed
    assert rules["default-src"] == "'none'"
    assert rules["sandbox"] == "allow-downloads allow-scripts"  # and not allow-same-origin
    assert "connect-src" not in rules


def digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def test_a_run_in_progress_has_its_live_page(site: Site, runs: Path, stored: Path) -> None:
    run = folders.running(runs, stored)
    place = f"runs/{run.path.name}"
    assert f'href="/live/{place}/"' in text_of(site.answers("/", {}))
    assert f'href="/live/{place}/"' in text_of(site.answers(f"/run/{place}", {}))
    page = Elements(text_of(site.answers(f"/live/{place}/", {})))
    loaded = [each for each in page.addresses if each.endswith((".css", ".js"))]
    assert len(loaded) > 2
    assert [name for name in loaded if site.answers(f"/live/{place}/{name}", {}) is None] == []
    events = site.answers(f"/live/{place}/events", {})
    assert events is not None
    assert not isinstance(events.body, bytes)
    frames = iter(events.body)
    assert any(b'"run":' in next(frames) for _ in range(4))
    assert site.answers(f"/live/{place}/plan.json", {}) is not None
    for path in (f"/live/{place}/../secret.txt", "/live/runs/", "/live/runs/nothing/", "/live/", f"/live/{place}"):
        assert site.answers(path, {}) is None, path


def test_times_are_those_of_the_reader(site: Site, runs: Path, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the list, of a page and of two runs: `windows 15:06:44 UTC` and `2026-11-26 20:29` in the files."""
    folders.copied(stored, runs, RIGHT, DOUBLES)
    paths = [
        ("/", {}),
        (f"/run/runs/{DOUBLES}", {}),
        ("/compare", {"a": f"runs/{DOUBLES}", "b": f"runs/{RIGHT}"}),
    ]
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Asia/Kolkata")
            time.tzset()
            shown = [text_of(site.answers(path, query)) for path, query in paths]
    finally:
        time.tzset()
    for page in shown:
        assert "2026-11-27 01:59 +05:30" in page
        assert "windows 20:36:44 +05:30" in page
        assert " UTC" not in page


def test_an_experiment_in_progress_has_its_grid(site: Site, runs: Path, stored: Path) -> None:
    experiment = Folder.create(runs, "chaos")
    fault = {"engine": "fake", "sink": "absolute", "seed": 1}
    wanted = [{**fault, "fault": "none"}, {**fault, "fault": "kill@c3:batch=3"}, {**fault, "fault": "storm"}]
    experiment.save("chaos", wanted=wanted, done=[])
    with experiment.going_on("resume it"):
        run = folders.running(experiment.runs, stored)
        place = f"runs/{experiment.path.name}"
        assert f'href="/live/{place}/"' in text_of(site.answers("/", {}))
        assert f'href="/live/{place}/"' in text_of(site.answers(f"/in/{place}", {}))
        assert 'id="cases"' in text_of(site.answers(f"/live/{place}/", {}))
        events = site.answers(f"/live/{place}/events", {})
        assert events is not None
        assert not isinstance(events.body, bytes)
        frames = iter(events.body)
        grid = next(json.loads(each[6:])["set"]["experiment"] for each in frames if b'"experiment"' in each)
    assert [case["state"] for case in grid["cases"]] == ["waiting", "running", "waiting"]
    assert grid["cases"][1]["run"] == f"runs/{run.path.name}"
    (run.path / "report.html").write_text("<script>alert(1)</script>")
    report = site.answers(f"/live/{place}/runs/{run.path.name}/report.html", {})
    assert report is not None
    assert "sandbox" in report.policy
    assert site.answers(f"/live/{place}/runs/../../secret.txt", {}) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("report.html", "text/html; charset=utf-8"),
        ("verdict.json", "text/plain; charset=utf-8"),
        ("junit.xml", "text/plain; charset=utf-8"),
        ("history.jsonl", "text/plain; charset=utf-8"),
        ("figures/cells.svg", "image/svg+xml"),
        ("figures/cells.PNG", "image/png"),
        ("logs/engine", "text/plain; charset=utf-8"),
        ("logs/page.xhtml", "text/plain; charset=utf-8"),
        ("log.parquet", "application/octet-stream"),
        ("x.xhtml", "application/octet-stream"),
        ("x.js", "application/octet-stream"),
    ],
)
def test_a_type_is_never_guessed_from_the_content(name: str, kind: str) -> None:
    assert stored_files.content_type(Path("/runs/x") / name) == kind


def test_a_large_file_comes_in_pieces(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    content = b"0123456789abcdef" * ((stored_files.AT_ONCE * 5 // 2) // 16)
    (runs / RIGHT / "logs" / "engine.log").write_bytes(content)
    answer = site.answers(f"/files/runs/{RIGHT}/logs/engine.log", {})
    assert answer is not None
    assert not isinstance(answer.body, bytes)
    pieces = list(answer.body)
    assert (len(pieces), b"".join(pieces) == content) == (3, True)


# ---------------------------------------------------------------- Trends


def test_runs_of_one_plan_are_a_series_and_those_of_another_are_not(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT, DOUBLES, OLD, LOSES)
    folders.copied(stored, runs / "..", RIGHT)
    (runs / ".." / RIGHT).rename(runs / "right-again")
    page = text_of(site.answers("/trends", {}))
    assert page.count("/trend?series=") == 1
    assert site.answers("/trend", {"series": "no such one"}) is None


def made(name: str, at_ms: int, state: str = "PASS", p99_ms: float | None = None) -> Entry:
    return Entry(f"runs/{name}", "run", state, made_ms=at_ms, series="calm", figures=Figures(p99_ms, 100.0))


DAY_MS = 86_400_000


def test_a_series_has_its_newest_value_beside_the_median_of_those_before() -> None:
    entries = [made("c", 3 * DAY_MS, p99_ms=40.0), made("a", DAY_MS, p99_ms=10.0), made("b", 2 * DAY_MS, p99_ms=20.0)]
    (found,) = series.found([*entries, made("d", 4 * DAY_MS, "torn"), made("e", 5 * DAY_MS, "FAIL")])
    assert [each.name for each in found.entries] == ["a", "b", "c", "e"]
    assert found.row(series.METRICS[0]) == "40 ms (median before: 15 ms)"
    assert found.row(series.METRICS[2]) == ""
    assert series.outcomes(found.entries) == {"PASS": 3, "FAIL": 1}
    assert series.found(entries[:1]) == []


def test_runs_of_one_day_are_told_apart_by_their_time() -> None:
    assert series.times([made("a", DAY_MS), made("b", 2 * DAY_MS)]) == ["1970-01-02", "1970-01-03"]
    assert series.times([made("a", DAY_MS), made("b", DAY_MS + 60_000)]) == ["00:00", "00:01"]


def test_a_history_of_gates_in_the_folder_has_its_page(site: Site, runs: Path) -> None:
    (runs / "gates.jsonl").write_bytes(b"".join(map(history.encoded, histories.many(2))) + b'{"schema": 1, "at')
    (runs / "other.jsonl").write_text('{"a": 1}\n')
    page = text_of(site.answers("/trends", {}))
    assert "/gates?history=runs%2Fgates.jsonl" in page
    assert "other.jsonl" not in page
    gates = text_of(site.answers("/gates", {"history": "runs/gates.jsonl"}))
    assert "Trend of gates" in gates
    assert "it is cut off" in gates
    assert "Otava" not in gates
    assert site.answers("/gates", {"history": "runs/other.jsonl"}) is None


def test_a_run_that_ends_meanwhile_gets_its_verdict(site: Site, runs: Path, stored: Path) -> None:
    run = folders.running(runs, stored)
    assert "In progress:" in text_of(site.answers("/", {}))
    assert 'http-equiv="refresh"' in text_of(site.answers("/", {}))
    Store(run.path).tell("ended early", how="interrupted", why="by Ctrl-C")
    (run.path / "owner.json").write_text('{"schema": 4, "mark": "0:0:elsewhere"}')
    page = text_of(site.answers("/", {}))
    assert ("In progress:" in page, "interrupted" in page, 'http-equiv="refresh"' in page) == (False, True, False)
