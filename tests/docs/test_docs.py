"""What the documents say exists, and what exists is in the documents."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from harness.cli import app
from harness.engines.environments import ROOM_NEEDED
from harness.engines.manifest import load
from harness.experiments.chaos import tiers
from harness.faults.registry import FAULTS
from harness.install.prepare import first_help
from harness.model import Exit

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ("job.py", "manifest.toml", "fixed/job.py", "fixed/manifest.toml")
LEFT_OUT = "# ..."
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("**/*.md"))
}


@pytest.mark.parametrize("command", app.COMMANDS)
def test_the_help_before_the_first_installation_lists_every_command(command):
    assert f"\n  {command}\n" in first_help(DOCUMENTS["docs/reference/commands.md"])


def test_the_page_of_faults_names_the_tiers_that_there_are():
    chaos_page = DOCUMENTS["docs/break/chaos.md"]

    assert re.findall(r"^\| `(\w+)` \|", chaos_page.split("## Tiers")[1].split("## ")[0], re.MULTILINE) == [*tiers()]


def test_the_room_that_an_installation_needs_is_named():
    assert f"{ROOM_NEEDED / 1e9:.0f} GB have to be free" in DOCUMENTS["docs/reference/engines.md"]


def test_exit_codes_are_the_same_in_the_readme():
    """If it lists them at all; docs/reference/exit-codes.md always does."""
    told = re.findall(r"\*\*(\d)\*\*", README)

    assert told in ([], [str(code) for code in (Exit.PASS, Exit.FAIL, Exit.USAGE, Exit.UNKNOWN, Exit.BROKEN)])


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.[a-z]+)?)`", ARCHITECTURE))))
def test_every_path_of_the_map_exists(path):
    assert (ROOT / path).exists()


LINK = re.compile(r'(?:\]\(|src=")([^)#:"]+)[)#"]')
TO_HEADING = re.compile(r"\]\(([^):]*#[^)]+)\)")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document):
    links = LINK.findall(DOCUMENTS[document])

    assert [link for link in links if not ((ROOT / document).parent / link).exists()] == []


@cache
def anchors(document: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_to_a_heading_finds_it(document):
    links = [link.partition("#") for link in TO_HEADING.findall(DOCUMENTS[document])]
    place = ROOT / document
    there = [(place.parent / path if path else place, heading) for path, _, heading in links]

    assert [f"{path}#{heading}" for path, heading in there if heading not in anchors(path.resolve())] == []


@pytest.mark.parametrize("pattern", [LINK, TO_HEADING])
def test_links_are_found(pattern):
    assert sum(len(pattern.findall(text)) for text in DOCUMENTS.values()) > 100


@pytest.mark.parametrize("picture", sorted(set(re.findall(r'<img src="([^"]+)"', README))))
def test_the_readme_shows_pictures_that_load_at_once(picture):
    assert 0 < (ROOT / picture).stat().st_size < 150_000


PUBLISHED = sorted((ROOT / "docs").rglob("*.html"))


@pytest.mark.parametrize("page", PUBLISHED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_published_page_leads_somewhere(page):
    """`streamgauge report FOLDER` takes the dead ones away."""
    text = page.read_text(encoding="utf-8")
    ids = set(re.findall(r' id="([^"]+)"', text))

    for link in re.findall(r'<a href="([^"]+)"', text):
        assert link[1:] in ids if link.startswith("#") else (page.parent / link).exists(), link


def test_the_tutorial_shows_its_jobs_as_they_are():
    """Each line of its code is one of theirs; a difference begins with a sign."""
    jobs = "".join((ROOT / "examples" / "spark-job" / name).read_text() for name in SHOWN)
    for block in re.findall(r"```(?:python|toml|diff)\n(.*?)```", DOCUMENTS["docs/start/tutorial.md"], re.DOTALL):
        for line in block.splitlines():
            assert line == LEFT_OUT or line.lstrip("+-").strip() in jobs


def test_the_tutorial_shows_a_manifest_that_could_be_copied(tmp_path):
    """What it leaves out is said there, and a job would start without it."""
    (shown,) = re.findall(r"```toml\n(.*?)```", DOCUMENTS["docs/start/tutorial.md"], re.DOTALL)
    (tmp_path / "manifest.toml").write_text(shown)

    manifest, whole = load(str(tmp_path)), load(str(ROOT / "examples" / "spark-job"))

    assert manifest == replace(
        whole, home=manifest.home, path=manifest.path, env={}, ready_s=manifest.ready_s, drain_s=manifest.drain_s
    )
    assert LEFT_OUT in shown.splitlines()


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_what_each_fault_showed_stands_in_the_findings(fault):
    assert re.search(rf"`{fault}[(@`]", DOCUMENTS["docs/break/findings.md"])


def test_the_changelog_names_the_commands():
    for command in app.COMMANDS:
        assert f"`{command}`" in CHANGELOG or f"`streamgauge {command}`" in CHANGELOG
