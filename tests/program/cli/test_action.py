"""action.yml as a runner does it: each step in its order, in a shell, for a job of a user's in a repository of theirs.

The minutes of a gate are made up here; tests/engines/test_action.py makes a real one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import junitparser
import pytest

from tests.program import actions

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "action.yml"
ACTION = actions.read(FILE)
MANIFEST = """
id = "mine"
extends = "reference"
command = ["{python}", "{home}/job.py", "{config}"]
"""
SCENARIO = 'rate = 100\nduration = "12s"\nwindow = "4s"\ncampaigns = 5\nprobes = 20\nfault = "none"\n'
GATE = {"base": "before", "head": "HEAD", "engine": "jobs/count"}
RECIPES = ROOT / "examples" / "ci"
SCHEMAS = {
    FILE: "vendor.github-actions",
    RECIPES / "github.yml": "vendor.github-workflows",
    RECIPES / "gitlab-ci.yml": "vendor.gitlab-ci",
}


def git(place, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(place), *who, *words], check=True, capture_output=True)


@pytest.fixture
def workspace(tmp_path):
    """A repository with a job, before a change and after it."""
    place = tmp_path / "my jobs"
    (place / "jobs" / "count").mkdir(parents=True)
    (place / "jobs" / "count" / "manifest.toml").write_text(MANIFEST)
    (place / "small.toml").write_text(SCENARIO)
    git(tmp_path, "init", "--quiet", str(place))
    for tag in ("before", "after"):
        (place / "jobs" / "count" / "job.py").write_text(f"# {tag}\n")
        git(place, "add", "--all")
        git(place, "commit", "--quiet", "--message", tag)
        git(place, "tag", tag)
    return place


@pytest.fixture
def job(tmp_path, workspace):
    """Where the action lies is no part of the workspace, and its launcher starts what is tested."""
    action, temporary = tmp_path / "_actions" / "a copy", tmp_path / "temp"
    action.mkdir(parents=True)
    temporary.mkdir()
    for name in ("requirements", "harness"):
        (action / name).symlink_to(ROOT / name)
    program = shlex.join([sys.executable, str(Path(__file__).parents[1] / "made_up_gate.py")])
    launcher = action / "streamgauge"
    launcher.write_text(f'#!/bin/sh\n[ "$1" != doctor ] || exit 0\nexec {program} "$@"\n')
    launcher.chmod(0o755)
    state = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ROUNDS": "level"}
    return actions.Job(temporary, workspace, action, state)


@pytest.fixture
def listening(job):
    """The launcher only writes down what it is told."""
    (job.action / "streamgauge").write_text(
        '#!/bin/sh\n[ "$1" = doctor ] || printf "%s\\0" "$@" >"$RUNNER_TEMP/told"\n'
    )
    return job


def told(job):
    return (job.place / "told").read_text().split("\0")[:-1]


def run(job, rounds="level", **inputs):
    job.environment |= {"ROUNDS": rounds}
    job.run(ACTION, inputs)
    return job


def annotated(job):
    """Level, title and the first words of each."""
    return re.findall(r"^::(\w+) title=(.*?)::(.*)", job.log, re.MULTILINE)


def kept(job):
    """What is uploaded, however it ended."""
    [given] = [given for name, given in job.uses if name.startswith("actions/upload-artifact@")]
    assert given["name"] == f"gate-{Path(given['path']).name}"
    return Path(given["path"])


# ---------------------------------------------------------------- What each answer does to a job


@pytest.mark.parametrize(
    ("rounds", "policy", "code", "level", "title"),
    [
        ("level", "warn", 0, "notice", "streamgauge gate%3A OK"),
        ("slower", "warn", 1, "error", "streamgauge gate%3A REGRESSED"),
        ("wrong", "warn", 1, "error", "streamgauge gate%3A REGRESSED"),
        ("noisy", "warn", 0, "warning", "streamgauge gate%3A INCONCLUSIVE"),
        ("noisy", "fail", 3, "warning", "streamgauge gate%3A INCONCLUSIVE"),
    ],
)
def test_the_answer_of_a_gate_is_that_of_the_job(job, rounds, policy, code, level, title):
    run(job, rounds, **GATE, inconclusive=policy)

    assert job.failed == code, job.log
    [seen] = annotated(job)
    assert seen[:2] == (level, title)
    assert job.summary.startswith(f"## {title.replace('%3A', ':')}\n")
    folder = Path(job.outputs["steps.run.outputs.folder"])
    assert folder.parent == kept(job)
    assert len(list(junitparser.JUnitXml.fromfile(str(folder / "junit.xml")))) == 1
    assert "streamgauge.log" in {path.name for path in kept(job).iterdir()}


def test_a_threshold_that_can_not_be_told_is_a_mistake_with_an_answer_beside_it(job):
    run(job, "noisy", **GATE, threshold="3%", budget="2")

    assert job.failed == 2, job.log
    assert "--threshold 3% --budget 2`" in job.summary
    assert "Failed: usage error." in job.log


@pytest.mark.parametrize(
    ("rounds", "inputs", "code", "told"),
    [
        ("level", {"base": "main"}, 2, "CI needs fetch-depth: 0."),
        ("level", {"threshold": "-3%"}, 2, "--threshold"),
        ("broken", {}, 4, "The broker ended.%0AThe end of its log: 100%25"),
    ],
)
def test_where_no_answer_is_made_the_sentence_that_says_why_is_shown(job, rounds, inputs, code, told):
    run(job, rounds, **{**GATE, **inputs})

    assert job.failed == code, job.log
    [(level, title, text)] = annotated(job)
    assert (level, title) == ("error", f"streamgauge ended with {code}")
    assert told in text
    assert told.replace("%0A", "\n").replace("%25", "%") in job.summary
    assert (kept(job) / "streamgauge.log").read_text() in job.log


def test_a_scenario_is_one_run(job):
    run(job, scenario="small.toml", engine="fake")

    assert job.failed == 0, job.log
    assert annotated(job)[0][:2] == ("notice", "streamgauge run%3A PASS")
    assert job.summary.startswith("## streamgauge: PASS\n")
    assert (Path(job.outputs["steps.run.outputs.folder"]) / "report.html").is_file()


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "needs both base and head"),
        ({"base": "before"}, "needs both base and head"),
        ({"scenario": "calm", "base": "before"}, "A scenario is one run"),
        ({**GATE, "inconclusive": "maybe\n::error::x"}, r"$'maybe\n::error::x', and it has to be warn or fail"),
    ],
)
def test_what_can_not_be_meant_is_refused_before_anything_is_installed(job, inputs, told):
    run(job, **inputs)

    assert job.failed == 2
    [(level, _, text)] = annotated(job)
    assert level == "error"
    assert told in text
    assert job.uses == []


# ---------------------------------------------------------------- What is kept for the next job


def test_what_is_installed_is_kept_before_the_answer_is_known(listening):
    run(listening, **GATE)

    named = [name.partition("@")[0] for name, _ in listening.uses]
    assert named == ["actions/cache/restore", "actions/cache/save", "actions/upload-artifact"]
    (_, restored), (_, saved), _ = listening.uses
    assert restored == saved
    home = listening.environment["HOME"]
    assert restored["path"].splitlines() == [f"{listening.action}/.venv", f"{home}/.cache/streamgauge"]
    assert re.fullmatch(r"streamgauge-Linux-X64-[0-9a-f]{40}", restored["key"])


def test_another_list_of_packages_is_another_cache(listening):
    def key():
        listening.uses.clear()
        run(listening, **GATE)
        return listening.uses[0][1]["key"]

    first, again = key(), key()
    (listening.action / "requirements").unlink()
    (listening.action / "requirements").mkdir()
    (listening.action / "requirements" / "run.lock").write_text("numpy==1\n")

    assert first == again != key()


# ---------------------------------------------------------------- What a shell must not be told


EVIL = "-x$(touch pwned)`touch pwned`\";touch pwned;'${{ github.token }}\n::error::x"


def test_an_input_is_one_word_whatever_it_is(listening, workspace):
    """Somebody may call a branch anything."""
    names = ("engine", "threshold", "budget", "base", "head")
    run(listening, **{name: f"{name}{EVIL}" for name in names})
    command, _, *words = told(listening)
    assert (command, words) == ("gate", [f"--{name}={name}{EVIL}" for name in names])

    run(listening, scenario=EVIL)
    command, _, *words = told(listening)
    assert (command, words) == ("run", ["--", EVIL])
    assert [*workspace.parent.rglob("pwned")] == []


def test_no_step_has_an_expression_in_its_text():
    """Where it is put in before the shell reads it, as text of the shell."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_every_input_is_used_and_explained():
    text, document = FILE.read_text(), (ROOT / "docs" / "ci" / "github.md").read_text()
    for name in ACTION["inputs"]:
        assert f"${{{{ inputs.{name} }}}}" in text
        assert f"| `{name}` |" in document
    for name in ACTION["outputs"]:
        assert f"`{name}`" in document


# ---------------------------------------------------------------- The files, by the schemas of those who read them


def schema_says(schema, file):
    words = [sys.executable, "-E", "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda file: file.name)
def test_a_file_is_as_those_want_it_who_read_it(file, tmp_path):
    assert schema_says(SCHEMAS[file], file).returncode == 0

    broken = tmp_path / file.name
    broken.write_text(re.sub(r"\b(using|runs-on|script):", r"x\1:", file.read_text()))
    assert schema_says(SCHEMAS[file], broken).returncode == 1, "a key by a wrong name would be seen"


def test_a_workflow_gives_the_action_what_it_takes_and_takes_what_it_gives():
    text = (RECIPES / "github.yml").read_text()
    [step] = [
        step
        for step in actions.read(RECIPES / "github.yml")["jobs"]["gate"]["steps"]
        if step.get("uses", "").startswith("streamgauge/streamgauge@")
    ]

    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert set(re.findall(r"steps\.gate\.outputs\.([\w-]+)", text)) <= ACTION["outputs"].keys()


def test_the_lines_at_the_top_of_the_page_are_a_whole_workflow(tmp_path):
    file = tmp_path / "gate.yml"
    file.write_text(shown("github.md"))
    page, example = (actions.read(each)["jobs"]["gate"]["steps"] for each in (file, RECIPES / "github.yml"))

    assert schema_says(SCHEMAS[RECIPES / "github.yml"], file).returncode == 0
    assert [step["uses"] for step in page] == [step["uses"] for step in example if "uses" in step]
    for step, whole in zip(page, example, strict=False):
        assert step["with"].items() <= whole["with"].items()


def test_the_lines_of_the_page_for_gitlab_are_those_of_the_recipe():
    recipe = [line.partition(" #")[0] for line in (RECIPES / "gitlab-ci.yml").read_text().splitlines()]

    assert {line.partition(" #")[0] for line in shown("gitlab.md").splitlines()} <= set(recipe)


def shown(page):
    """Return the first workflow that it shows."""
    text = (ROOT / "docs" / "ci" / page).read_text()
    first, *_ = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return first


# ---------------------------------------------------------------- The recipes for others


@pytest.mark.parametrize("code", range(5))
def test_the_recipe_for_a_shell_passes_on_what_a_job_should_do(listening, workspace, code):
    launcher = listening.action / "streamgauge"
    launcher.write_text(f"{launcher.read_text()}exit {code}\n")
    own = {"STREAMGAUGE": str(launcher), "ENGINE": "jobs/count", "RUNNER_TEMP": str(listening.place)}

    done = subprocess.run(
        ["sh", str(RECIPES / "gate.sh"), "before"],
        env={**listening.environment, **own},
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told(listening) == ["gate", "--base", "before", "--head", "HEAD", "--engine", "jobs/count", "--out", "gate"]
    assert done.returncode == (0 if code == 3 else code), done.stderr
    assert done.stderr.startswith({0: "", 3: "Warning: "}.get(code, "Failed: "))


def test_the_recipe_for_gitlab_gates_the_commits_of_a_merge_request(job, workspace):
    """Its line is run as GitLab's shell would, and lets pass what its job lets pass."""
    recipe = actions.read(RECIPES / "gitlab-ci.yml")["gate"]
    (workspace / ".streamgauge").symlink_to(job.action)
    [line] = recipe["script"]
    commits = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "before", "CI_COMMIT_SHA": "after"}

    done = subprocess.run(
        ["sh", "-ec", line.replace("jobs/ad-counts", "jobs/count")],
        cwd=workspace,
        env={**job.environment, **commits, "ROUNDS": "noisy"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == recipe["allow_failure"]["exit_codes"], done.stderr
    [report] = workspace.glob(recipe["artifacts"]["reports"]["junit"])
    assert junitparser.JUnitXml.fromfile(str(report))
