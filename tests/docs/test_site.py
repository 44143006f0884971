"""The site of docs/: built strictly, with links that lead somewhere, readable without a network. And `docs` serves it.

mkdocs reports broken links and pages outside of the navigation; the checks below see what it does not. Each of them is
shown a page with what it has to find. The first test that builds installs the pinned packages in the user's cache.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest

from harness.cli import app, docs
from harness.engines import environments
from harness.model import Exit, HarnessError
from harness.services import owners
from harness.terminal.command_end import ended
from reports import project_url
from reports.figures.style import COLOURS
from tools import run_diagram, site_markdown

ROOT = Path(__file__).resolve().parents[2]
CSS_OF_REPORTS = ROOT / "reports" / "templates" / "page.css.j2"
ADDRESS = "https://forge.example/project"
FETCHING = ("img", "script", "iframe", "source", "audio", "video")
LOADED = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload"}  # kinds of <link>
QUIET = ("pre", "code", "script", "style")  # text in them is shown as it is, or not at all
# Markdown that a reader would see as it was typed.
TYPED = re.compile(r"\]\(|\*\*|```|\[!|\n *(?:[-*+] |\|)")

pytestmark = pytest.mark.timeout(300)  # the first one installs packages


# ---------------------------------------------------------------- What is seen in a page


class Page(HTMLParser):
    """What a page of the site shows, links to, and fetches from elsewhere."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.without_alt: list[str] = []
        self.fetched: list[str] = []
        self.typed: list[str] = []
        self._depth = dict.fromkeys(("article", *QUIET), 0)
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        if tag in self._depth:
            self._depth[tag] += 1
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        url = given.get("src") or given.get("href") or ""
        if url:
            self.links.append(url)
        if tag == "img" and self._depth["article"] and not given.get("alt", "").strip():
            self.without_alt.append(url)
        loads = tag in FETCHING or (tag == "link" and LOADED & set(given.get("rel", "").split()))
        if loads and re.match(r"(?:https?:)?//", url):
            self.fetched.append(url)
        # The theme draws the first with a script from elsewhere, and asks a forge for figures of the second.
        if "mermaid" in given.get("class", "").split() or given.get("data-md-component") == "source":
            self.fetched.append(f"<{tag}> {attrs}")

    def handle_endtag(self, tag):
        if tag in self._depth:
            self._depth[tag] -= 1

    def handle_data(self, data):
        if self._depth["article"] and not any(self._depth[tag] for tag in QUIET) and TYPED.search(data):
            self.typed.append(data.strip())


def pages_in(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.resolve().rglob("*.html"))}


def broken_links(site: Path) -> list[str]:
    """Of raw HTML too, which mkdocs does not look at."""
    site, pages, found = site.resolve(), pages_in(site), []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            base = site if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            if not target.is_file() or (fragment and target in pages and fragment not in pages[target].ids):
                found.append(f"{path.relative_to(site)}: {link}")
    return found


def styles_from_elsewhere(site: Path) -> list[str]:
    loads = re.compile(r"(?:url\(|@import )[\"']?(?:https?:)?//")
    return [path.name for path in site.rglob("*.css") if loads.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("html", "seen", "what"),
    [
        ("<article><img src=a.png></article>", "without_alt", ["a.png"]),
        ('<article><img src=a.png alt=" "></article>', "without_alt", ["a.png"]),
        ('<article><img src=a.png alt="a curve"></article>', "without_alt", []),
        ("<script src=https://cdn.example/x.js></script>", "fetched", ["https://cdn.example/x.js"]),
        ("<link rel=stylesheet href=//fonts.example/x>", "fetched", ["//fonts.example/x"]),
        ("<link rel=canonical href=https://docs.example/x>", "fetched", []),
        ("<a href=https://docs.example/x>x</a>", "fetched", []),
        ("<article><p>It has:\n- a list</p></article>", "typed", ["It has:\n- a list"]),
        ("<article><p>See [x](y.md)</p></article>", "typed", ["See [x](y.md)"]),
        ("<article><p>See</p><pre>[x](y.md)</pre></article>", "typed", []),
    ],
)
def test_what_is_wrong_with_a_page_is_seen(html, seen, what):
    assert getattr(Page(html), seen) == what


def test_what_a_page_would_load_by_a_script_is_seen():
    assert Page('<div class="mermaid"></div>').fetched
    assert Page('<a data-md-component="source" href="x">x</a>').fetched


def test_a_link_that_leads_nowhere_is_seen(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b/c.html#there">x</a> <img src="no.png"> <a href="#gone">x</a>'
    )
    (tmp_path / "b" / "c.html").write_text('<p id="there"><a href="../a.html#here">x</a> <a href="/a.html">x</a>')
    (tmp_path / "x.css").write_text("p { background: url('https://elsewhere.example/x.png') }")

    assert broken_links(tmp_path) == ["a.html: no.png", "a.html: #gone"]
    assert styles_from_elsewhere(tmp_path) == ["x.css"]


# ---------------------------------------------------------------- Markdown of a forge


@pytest.fixture
def project(tmp_path):
    """A project with docs/, and files beside it."""
    (tmp_path / "docs" / "start").mkdir(parents=True)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "a job.py").touch()
    (tmp_path / "README.md").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("link", "led"),
    [
        ("[x](../../README.md#first)", f"[x]({ADDRESS}/blob/main/README.md#first)"),
        ("[`x`](../../README.md)", f"[`x`]({ADDRESS}/blob/main/README.md)"),
        ("[x](../../examples)", f"[x]({ADDRESS}/tree/main/examples)"),
        ('<a href="../../README.md">x</a>', f'<a href="{ADDRESS}/blob/main/README.md">x</a>'),
        ("[x](../../missing.py)", "[x](../../missing.py)"),
        ("[x](../../../outside.md)", "[x](../../../outside.md)"),
        ("[x](../break/chaos.md)", "[x](../break/chaos.md)"),
        ("[x](https://elsewhere.example/README.md)", "[x](https://elsewhere.example/README.md)"),
        ("[x](#first)", "[x](#first)"),
        ("`[x](../../README.md)`", "`[x](../../README.md)`"),
        ("```\n[x](../../README.md)\n```", "```\n[x](../../README.md)\n```"),
    ],
)
def test_a_link_that_leaves_the_documents_leads_to_the_repository(link, led, project):
    assert site_markdown.with_links_out(link, "start/page.md", project / "docs", ADDRESS) == led


def test_the_address_of_the_repository_is_at_one_place():
    address = site_markdown.repository()

    assert address.startswith("https://")
    assert address in (ROOT / "pyproject.toml").read_text()
    assert address not in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize(
    ("forge", "site"),
    [
        ("It has:\n- a\n- b", "It has:\n\n- a\n- b"),
        ("It has:\n| a |\n| - |", "It has:\n\n| a |\n| - |"),
        ("In the year\n1973. It rained.", "In the year\n1973\\. It rained."),
        ("- a\n  more\n  - b\n- c", "- a\n    more\n    - b\n- c"),
        ("1. a\n   - b\n\n   more", "1. a\n    - b\n\n    more"),
        ("- a\n\n  ```sh\n  x\n    y\n  ```\n\nend", "- a\n\n    ```sh\n    x\n      y\n    ```\n\nend"),
        ("- a\n\nend\n\n    - code", "- a\n\nend\n\n    - code"),
        ("```\n- a\n  - b\n```", "```\n- a\n  - b\n```"),
        ("| `a\\|b` | c \\| d |", "| `a|b` | c \\| d |"),
        ("# Head\ntext\n\n    code\n", "# Head\ntext\n\n    code\n"),
    ],
)
def test_lists_and_tables_are_read_as_on_a_forge(forge, site):
    assert site_markdown.lists_of_a_forge(forge).rstrip("\n") == site.rstrip("\n")


# ---------------------------------------------------------------- The site itself


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the whole site, and what mkdocs found wrong with the documents."""
    folder = tmp_path_factory.mktemp("site")
    return folder, docs.build_site(docs.CONFIG, folder, strict=True)


def test_the_documents_have_no_broken_link_and_no_page_outside_of_the_navigation(site):
    folder, faults = site

    assert faults == []
    assert broken_links(folder) == []


@pytest.mark.parametrize("seen", ["without_alt", "fetched", "typed"])
def test_every_page_describes_its_pictures_needs_no_network_and_is_whole(seen, site):
    folder, _ = site
    found = {path.relative_to(folder.resolve()): getattr(page, seen) for path, page in pages_in(folder).items()}

    assert len(found) > 1
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert styles_from_elsewhere(folder) == []


def test_every_page_can_be_searched_and_read_in_light_and_in_dark(site):
    folder, _ = site
    entries = json.loads((folder / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    first = (folder / "index.html").read_text(encoding="utf-8")
    pages = {str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in (ROOT / "docs").rglob("*.md")}

    assert {entry["location"].partition("#")[0] for entry in entries} >= pages - {"README.html"}
    for scheme in ("default", "slate"):
        assert f'data-md-color-scheme="{scheme}"' in first


# ---------------------------------------------------------------- Small documents, right and wrong


@pytest.fixture
def written(project, monkeypatch):
    """Documents of the words given, as those that the command builds."""

    def write(**pages: str) -> Path:
        for name, text in pages.items():
            (project / "docs" / f"{name}.md").write_text(text)
        config: Path = project / "mkdocs.yml"
        hook = ROOT / "tools" / "site_markdown.py"
        lines = [f"INHERIT: {ROOT / 'mkdocs.yml'}", f"hooks: ['{hook}']", "extra_css: []", "nav: [README.md]"]
        config.write_text("\n".join(lines) + "\n")
        monkeypatch.setattr(docs, "CONFIG", config)
        return config

    return write


WRONG = "# Title\n\n[a](missing.md) [b](#nowhere) [c](../missing.py) [d](start/) ![](picture.png)\n"


def test_what_is_wrong_with_documents_is_found(written, project, tmp_path):
    (project / "docs" / "picture.png").touch()
    folder = tmp_path / "built"

    faults = docs.build_site(written(README=WRONG, stray="# Stray"), folder, strict=True)

    said = "\n".join(faults)
    for word in ("missing.md", "#nowhere", "../missing.py", "start/", "stray.md"):
        assert word in said
    assert len(faults) == 5
    assert Page((folder / "index.html").read_text()).without_alt == ["picture.png"]


def test_right_documents_are_built_and_lead_to_the_repository(written, tmp_path):
    text = "# Title\n\nIt has:\n- [a](../README.md)\n  - b\n\n## A `word` - here\n\n[c](#a-word---here)\n"

    faults = docs.build_site(written(README=text), tmp_path / "built", strict=True)

    page = Page((tmp_path / "built" / "index.html").read_text())
    assert (faults, page.typed, page.fetched) == ([], [], [])
    assert f"{site_markdown.repository()}/blob/main/README.md" in page.links
    assert "a-word---here" in page.ids


# ---------------------------------------------------------------- The command


@pytest.fixture
def call(monkeypatch, tmp_path, capsys):
    """How the command ends, and what it prints."""
    monkeypatch.setattr(owners, "sweep", list)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def called(*words):
        code = ended(["docs", *words], lambda: app.called(["docs", *words]))
        said = capsys.readouterr()
        return code, said.out, said.err

    return called


@pytest.fixture
def unbuilt(monkeypatch):
    """A command that must not begin to build."""

    def begins(*_: object, **__: object) -> None:
        raise AssertionError("it builds")

    monkeypatch.setattr(docs, "build_site", begins)


def test_it_builds_into_a_folder_and_replaces_an_earlier_site(call, written, tmp_path):
    target = tmp_path / "site"
    written(README="# Title", more="# More\n")
    assert call("--build", str(target))[0] == Exit.BROKEN, "a page is outside of the navigation"
    assert not target.exists()

    written(README="# Title\n\n[more](more.md)\n")
    docs.CONFIG.write_text(docs.CONFIG.read_text().replace("[README.md]", "[README.md, more.md]"))
    assert call("--build", str(target))[0] == Exit.PASS
    (target / "stale.html").touch()
    code, out, _ = call("--build", str(target), "--json")

    assert json.loads(out) == {"command": "docs", "site": str(target), "pages": 2, "exit": Exit.PASS}
    assert code == Exit.PASS
    assert {path.name for path in target.glob("*.html")} == {"index.html", "more.html", "404.html"}


def test_it_names_what_is_wrong_with_the_documents(call, written, tmp_path):
    written(README=WRONG)

    code, out, err = call("--build", str(tmp_path / "site"))

    assert (code, out) == (Exit.BROKEN, "")
    assert "missing.md" in err
    assert "The documents have" in err


def test_it_deletes_nothing_of_others(call, unbuilt, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")

    for target in (mine, mine / "notes.txt"):
        code, _, err = call("--build", str(target))
        assert code == Exit.USAGE
        assert "empty folder" in err
    assert (mine / "notes.txt").read_text() == "mine"


def test_a_port_that_is_taken_is_refused_before_anything_is_built(call, unbuilt):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = call("--port", str(port))

    assert (code, out) == (Exit.USAGE, "")
    assert f"Port {port} of 127.0.0.1 can't be served on: Address already in use" in err
    assert str(Path("docs", "README.md")) in err


@pytest.mark.parametrize("words", [["--build", "x", "--port", "8000"], ["--json"]], ids=" ".join)
def test_what_does_not_go_together_is_refused(words, call, unbuilt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert call(*words)[0] == Exit.USAGE
    assert not (tmp_path / "x").exists()


def test_without_its_packages_and_offline_it_says_where_the_markdown_is(call, tmp_path, monkeypatch):
    def offline(what, *_):
        raise HarnessError(f"Preparing failed while {what}: the package index was not reached. Log: x.log")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "run_step", offline)
    monkeypatch.setattr(environments, "index_settings", lambda _: {})

    code, out, err = call()

    assert (code, out) == (Exit.BROKEN, "")
    assert "the package index was not reached" in err
    assert str(Path("docs", "README.md")) in err


def test_a_wheel_has_no_documents_and_says_where_they_are(call, unbuilt, monkeypatch):
    told = Message()
    told["Project-URL"] = f"Repository, {ADDRESS}"
    monkeypatch.setattr(docs, "IS_CHECKOUT", False)
    monkeypatch.setattr(project_url, "IS_CHECKOUT", False)
    monkeypatch.setattr(project_url, "distributions", lambda **_: [SimpleNamespace(metadata=told)])
    monkeypatch.setattr(project_url, "_of_project", project_url._of_project.__wrapped__)  # without what it has kept

    code, out, err = call()

    assert (code, out) == (Exit.USAGE, "")
    assert f"{ADDRESS}/tree/main/docs" in err


def test_it_serves_the_site_until_ctrl_c(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-E", "-m", "harness", "docs"],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout
        line = program.stdout.readline()
        found = re.search(r"http://(127\.0\.0\.1:\d+)/", line)
        if found:
            connection = http.client.HTTPConnection(found[1], timeout=20)
            connection.request("GET", "/")
            answer = connection.getresponse()
            page = answer.read().decode()
            connection.close()
        program.send_signal(signal.SIGINT)
        try:
            _, err = program.communicate(timeout=60)
        finally:
            program.kill()  # one that ignores Ctrl-C, as its parent may have chosen, would be waited for without end

    assert found, line + err
    assert (answer.status, program.returncode) == (200, 128 + signal.SIGINT)
    assert "<title>streamgauge" in page
    assert "Stopped by Ctrl-C" in err
    assert "Traceback" not in err


# ---------------------------------------------------------------- Packages, colours, the diagram


def test_its_packages_are_pinned_by_hash_and_belong_to_no_run():
    folder = ROOT / "requirements"
    pinned = re.findall(r"^([\w-]+)==\S+.*\\\n +--hash=sha256:", (folder / "docs.lock").read_text(), re.MULTILINE)
    wanted = re.findall(r"^([\w-]+)==", (folder / "docs.in").read_text(), re.MULTILINE)

    assert wanted
    assert set(wanted) <= set(pinned)
    for other in ("run.lock", "test.lock"):
        assert not [name for name in wanted if f"{name}==" in (folder / other).read_text()]


@pytest.mark.parametrize("file", ["site.css", "pictures/run.svg"])
def test_its_colours_are_those_of_the_reports(file):
    of_reports = {*COLOURS.values(), *re.findall(r"#[0-9a-f]{6}", CSS_OF_REPORTS.read_text())}
    used = set(re.findall(r"#[0-9a-f]{6}", (ROOT / "docs" / file).read_text()))

    assert used
    assert used <= of_reports


def test_the_diagram_of_a_run_is_the_one_that_its_script_draws():
    assert run_diagram.PICTURE.read_text(encoding="utf-8") == run_diagram.drawing()
