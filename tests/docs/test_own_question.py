"""docs/test/own-question.md: its code is that of examples/payments, which anybody can check, copy and plan."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config import plan
from harness.engines import manifest as manifests
from workloads.declared import checked, declaration

ROOT = Path(__file__).resolve().parents[2]
PAYMENTS = ROOT / "examples" / "payments"
PAGE = (ROOT / "docs" / "test" / "own-question.md").read_text(encoding="utf-8")
SHOWN = ("workload.toml", "job.py", "manifest.toml", "fixed/job.py", "fixed/manifest.toml")
LEFT_OUT = "# ..."


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_it_shows_its_files_as_they_are():
    """Each line of its code is one of theirs; a difference begins with a sign."""
    lines = {line.strip() for name in SHOWN for line in (PAYMENTS / name).read_text().splitlines()}
    for line in "".join(blocks("(?:python|toml|diff)")).splitlines():
        assert line == LEFT_OUT or re.sub("^[+-]", "", line).strip() in lines


def test_the_declaration_that_it_shows_is_that_of_the_example(tmp_path):
    event, oracle, _ = blocks("toml")
    (tmp_path / "workload.toml").write_text(event + oracle)

    shown, whole = declaration.load(tmp_path), declaration.load(PAYMENTS)

    assert replace(shown, text="") == replace(whole, text="")


def test_the_manifest_that_it_shows_could_be_copied(tmp_path):
    (tmp_path / "manifest.toml").write_text(blocks("toml")[2])

    shown, whole = manifests.load(str(tmp_path), "payments"), manifests.load(str(PAYMENTS), "payments")

    assert shown == replace(
        whole, home=shown.home, path=shown.path, env={}, ready_s=shown.ready_s, drain_s=shown.drain_s
    )


def test_what_it_shows_of_the_check_is_what_the_check_says():
    (sample,) = re.findall(r"\$ streamgauge workload check payments\n(.*?)  \.\.\.\n", PAGE, re.DOTALL)

    assert "\n".join(checked.lines(checked.check(declaration.load(PAYMENTS)))).startswith(sample)


@pytest.mark.parametrize("engine", ["payments", "payments/fixed"])
def test_a_copy_far_from_the_checkout_can_be_planned(tmp_path, monkeypatch, engine):
    shutil.copytree(PAYMENTS, tmp_path / "payments")
    monkeypatch.chdir(tmp_path)

    name, keys = plan.read_scenario("late")
    spec, manifest = plan.resolve(name, keys, {"workload": "payments", "engine": engine}, manifests.load)

    assert (spec.workload, spec.title, spec.sink) == ("payments", "payments-late", "totals")
    assert manifest.workload == "payments"


def test_the_job_and_its_fix_differ_in_one_line():
    job, fixed = ((PAYMENTS / name).read_text().splitlines() for name in ("job.py", "fixed/job.py"))

    assert len(job) == len(fixed)
    assert sum(one != other for one, other in zip(job, fixed, strict=True)) == 1
