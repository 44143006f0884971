"""The pages on jobs of one's own say what the files of their examples say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines import manifest as manifests

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("own-flink", "own-kafka-streams")
PAGES = {"own-flink": "flink.md", "own-kafka-streams": "kafka-streams.md", "own-engine": "python.md"}


def folder_of(name: str) -> Path:
    return ROOT / "examples" / name


def page_of(name: str) -> str:
    return (ROOT / "docs" / "test" / PAGES[name]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_what_it_shows_of_its_manifest_stands_there(name):
    manifest = (folder_of(name) / "manifest.toml").read_text(encoding="utf-8")
    shown = re.findall(r"```toml\n(.*?)```", page_of(name), re.DOTALL)

    assert shown
    assert all(block in manifest for block in shown)


@pytest.mark.parametrize("name", PAGES)
def test_the_example_names_its_page(name):
    assert f"docs/test/{PAGES[name]}" in (folder_of(name) / "README.md").read_text(encoding="utf-8")
    assert f"docs/test/{PAGES[name]}" in (folder_of(name) / "manifest.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_wrong_variant_is_the_same_job_and_claims_the_same(name):
    right, wrong = (manifests.load(str(folder_of(name) / variant)) for variant in (".", "increments"))
    command = tuple(word.replace("{home}/..", "{home}") for word in wrong.command)
    sinks = (replace(wrong.sinks[0], name=right.sinks[0].name),)

    assert wrong.options["job.increments"] == "true"
    assert right == replace(
        wrong,
        id=name,
        home=right.home,
        path=right.path,
        command=command,
        build=right.build,
        sinks=sinks,
        options=right.options,
        progress=right.progress,
        progress_group=right.progress_group,
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_option_that_makes_it_wrong_is_explained_and_there(name):
    job = (folder_of(name) / "src/main/java/example/CampaignViews.java").read_text(encoding="utf-8")
    wrong = (folder_of(name) / "increments/manifest.toml").read_text(encoding="utf-8")
    given = re.findall(r"--conf '?(job\.[a-z-]+)=", page_of(name)) + re.findall(r'"(job\.[a-z-]+)" =', wrong)

    assert {*given} == {*re.findall(r'"(job\.[a-z-]+)"', job)}


@pytest.mark.parametrize("name", NAMES)
def test_its_libraries_are_those_of_the_engine_that_comes_with_the_program(name):
    """So that its verdict can be held against that engine's."""
    pom = (folder_of(name) / "pom.xml").read_text(encoding="utf-8")
    engine = {"own-flink": "flink-java", "own-kafka-streams": "kafka-streams"}[name]
    shipped = (ROOT / "harness/engines" / engine / "ivy.xml").read_text(encoding="utf-8")
    revisions = dict(re.findall(r'name="([a-z0-9-]+)" rev="([^"]+)"', shipped))
    properties = dict(re.findall(r"<(flink\.version)>([^<]+)<", pom))
    found = re.findall(r"<artifactId>([a-z0-9-]+)</artifactId>\s*<version>([^<]+)<", pom)
    used = {artifact: properties.get(version.strip("${}"), version) for artifact, version in found}

    assert {"own-flink": "flink-clients", "own-kafka-streams": "kafka-streams"}[name] in used
    assert all(used[artifact] == revisions[artifact] for artifact in used.keys() & revisions.keys())
