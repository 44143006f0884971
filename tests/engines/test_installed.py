"""The program as a wheel brings it: with no checkout near, no home and no cache before.

One Python is tried always. The program's environment borrows the packages of the tests' own, so that nothing is
fetched; the program itself comes from the wheel. `--all` does what users do: `uv tool install`, with each Python that
is here, and all is fetched. uv's own cache is used for that, where Spark is unpacked once for all of them.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.engines.versions import UV
from harness.faults.registry import FAULTS
from harness.install import jvm
from harness.install.installer import index_settings
from harness.model import Exit
from tests.program.wheels import ROOT, built, copied

EXAMPLE = ROOT / "examples" / "own-engine"
LOCK = ROOT / "requirements" / "run.lock"
SMALL = ("--rate", "500", "--duration", "3s", "--window", "1s", "--campaigns", "10", "--fault", "none", "--no-archive")
PYENV = Path.home() / ".pyenv" / "versions"  # its names on PATH run only for the version that was chosen

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("installed")]  # one installation for all of them


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(copied(tmp_path_factory.mktemp("checkout")), tmp_path_factory.mktemp("dist"))


@dataclass(frozen=True)
class Installed:
    """A program that somebody installed, and who that is."""

    program: Path
    environment: Path  # the folder in which it lies
    home: Path

    def call(self, *words: object, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), *map(str, words)]
        env, place = self.shell | more, cwd or self.home
        return subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=280, check=False)

    @property
    def shell(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "JAVA_HOME")}
        return kept | uv_settings() | {"HOME": str(self.home)}

    def run(self, folder: Path, *words: object) -> dict[str, Any]:
        done = self.call("run", "calm", *SMALL, *words, "--json", cwd=folder)
        assert done.stdout, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        assert answer["verdict"], answer
        return answer

    def files(self) -> dict[str, tuple[int, int]]:
        """Of the environment, but what Python itself makes of a module that it imports."""
        found = (path for path in self.environment.rglob("*") if "__pycache__" not in path.parts)
        seen = ((path, path.lstat()) for path in found if not path.is_dir())
        return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in seen}


WHERE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from harness.install import prepare
print(json.dumps([str(prepare.VENV), prepare.wanted({}, "")]))
"""


@pytest.fixture(scope="module")
def borrowing(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, and nothing else."""
    base = tmp_path_factory.mktemp("some body")  # as people's folders are called
    uv(base, "venv", "--python", sys.executable, "environment")
    return borrowed(base, wheel, "--no-index")


def borrowed(base: Path, wheel: Path, *how: str) -> Installed:
    """The wheel in the environment of this folder. The packages of its program lie in the tests' environment."""
    environment, home = base / "environment", base / "home"
    python = environment / "bin" / "python"
    uv(base, "pip", "install", *how, "--python", str(python), str(wheel))
    (site,) = environment.glob("lib/python*/site-packages")
    folder = jvm.jar_folder("services")
    shutil.copytree(jvm.jars("services"), home / ".cache" / "streamgauge" / "jars" / folder.name)
    installed = Installed(environment / "bin" / "streamgauge", environment, home)
    make_its_environment(installed, site / "streamgauge" / "program")
    return installed


def make_its_environment(installed: Installed, program: Path) -> None:
    """As its first use would, but with borrowed packages."""
    asked = [str(installed.environment / "bin" / "python"), "-I", "-B", "-c", WHERE, str(program)]
    done = subprocess.run(asked, env=installed.shell, capture_output=True, text=True, check=True)
    place, stamp = json.loads(done.stdout)
    uv(installed.home, "venv", "--python", sys.executable, place)
    (site,) = Path(place).glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(f"{program}\n{sysconfig.get_path('purelib')}\n")
    (Path(place) / "bin" / "uv").symlink_to(UV)
    (Path(place) / "streamgauge.json").write_text(json.dumps(stamp))


@functools.cache
def uv_settings() -> dict[str, str]:
    """From where packages come on this machine, as somebody would have told uv who installs programs with it."""
    own = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))}
    return own | index_settings(sys.executable) | {"UV_PYTHON_DOWNLOADS": "never"}


def uv(home: Path, *words: str, **more: str) -> None:
    env = {**os.environ, **uv_settings(), "HOME": str(home), **more}
    done = subprocess.run([str(UV), *words], env=env, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def counts_what_it_shall(installed: Installed, folder: Path, served: Sequence[str]) -> None:
    """A run with the reference, and one with somebody's own manifest from another folder, on servers that are there."""
    mine, empty = folder / "my engine", folder / "empty"
    shutil.copytree(EXAMPLE, mine)
    empty.mkdir()
    installed.call("--version")
    before = installed.files()
    assert len(before) > 200

    for engine, services in (("reference", ()), ("../my engine/manifest.toml", served)):
        answer = installed.run(empty, "--engine", engine, "--live", *services)
        assert (answer["verdict"], answer["exit"]) == ("PASS", Exit.PASS), answer["sentence"]
        assert (Path(answer["run"]) / "live.html").exists()
        page = (Path(answer["run"]) / "report.html").read_text()
        assert "streamgauge run calm" in page
        assert "./streamgauge" not in page, "there is no launcher"

    assert installed.files() == before, "nothing is written beside an installed program"
    assert {path.name for path in empty.iterdir()} == {"runs"}
    assert sorted(path.name for path in mine.iterdir()) == sorted(path.name for path in EXAMPLE.iterdir())


def test_it_judges_engines_and_writes_nothing_beside_its_code(borrowing, tmp_path, served):
    counts_what_it_shall(borrowing, tmp_path, served)


def test_it_finds_all_that_it_opens(borrowing):
    """Each of these reads files that are no modules."""
    told = {
        "engines": ("kafka-streams", "quix"),
        "run --list": ("ad-impressions", "storm"),
        "tape --disorder storm --rate 1000": ("digest",),
        "chaos --list": (f"{len(FAULTS)} of them seen landing", "harness/faults/evidence.jsonl"),
        "doctor": ("packages: ok", "Redis server: ok"),
    }
    for line, words in told.items():
        done = borrowing.call(*line.split())
        assert [word for word in words if word not in done.stdout] == [], done.stdout + done.stderr


def test_it_is_called_from_python_in_the_environment_of_somebody_else(borrowing, tmp_path):
    """Where none of its packages is: only the program's own environment has them."""
    text = """
import importlib.util, streamgauge
assert importlib.util.find_spec("pyspark") is None and importlib.util.find_spec("harness") is None
result = streamgauge.run("calm", engine="fake", duration="3s", window="1s", fault="none", quiet=True)
print(result.verdict, streamgauge.load(result.folder) == result)
"""
    python = str(borrowing.environment / "bin" / "python")
    done = subprocess.run(
        [python, "-c", text], env=borrowing.shell, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "PASS True\n", done.stderr


OTHERS = {"pyspark": "4.1.3", "pandas": "2.3.3", "pydantic": "2.13.5"}  # none of them is the program's own
BESIDE = """
import pandas, pydantic, pyspark, streamgauge
result = streamgauge.run("calm", engine="fake", duration="3s", window="1s", fault="none", quiet=True)
print(result.verdict, len(result.to_pandas("cells")) > 0, pyspark.__version__, pandas.__version__, pydantic.VERSION)
"""


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_it_lives_beside_another_pyspark_pandas_and_pydantic(wheel, tmp_path):
    pins = dict(line.split(" ")[0].split("==") for line in LOCK.read_text().splitlines() if "==" in line)
    assert not [name for name, version in OTHERS.items() if pins.get(name) == version]
    uv(tmp_path, "venv", "--seed", "--python", sys.executable, "environment")
    python = tmp_path / "environment" / "bin" / "python"
    pinned = [f"{name}=={each}" for name, each in OTHERS.items()]
    uv(tmp_path, "pip", "install", "--python", str(python), *pinned, UV_CACHE_DIR=uv_cache())
    before = asked_of(python, "-m", "pip", "freeze")
    installed = borrowed(tmp_path, wheel)

    said = asked_of(python, "-c", BESIDE, env=installed.shell, cwd=tmp_path)

    assert said.split() == ["PASS", "True", *OTHERS.values()]
    assert asked_of(python, "-m", "pip", "check") == "No broken requirements found.\n"
    added = set(asked_of(python, "-m", "pip", "freeze").splitlines()) - set(before.splitlines())
    assert [line.partition(" ")[0] for line in added] == ["streamgauge"]


def asked_of(python: Path, *words: str, **how: Any) -> str:
    done = subprocess.run([str(python), *words], capture_output=True, text=True, check=False, **how)
    assert done.returncode == 0, done.stdout + done.stderr
    output: str = done.stdout
    return output


def test_its_tests_lie_in_the_checkout(borrowing):
    done = borrowing.call("test", "quick")

    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert "tests lie in its checkout, and this program was installed from a wheel" in done.stderr


def test_modules_of_the_same_names_on_pythonpath_are_not_taken_for_its_own(borrowing, tmp_path):
    for name in ("reports", "workloads", "generators", "redis"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')")

    done = borrowing.call("run", "calm", "--engine", "fake", "--duration", "1s", cwd=tmp_path, PYTHONPATH=str(tmp_path))

    assert "the wrong one" not in done.stderr
    assert done.returncode == Exit.PASS, done.stderr


def uv_cache() -> str:
    return subprocess.run([UV, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()


def python_of(version: str) -> Path:
    """As uv finds it, or as pyenv keeps it."""
    path = os.pathsep.join([*(str(each / "bin") for each in sorted(PYENV.glob(f"{version}.*"))), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "UV_PYTHON_DOWNLOADS": "never"}
    asked = [str(UV), "python", "find", "--no-project", "--system", version]
    done = subprocess.run(asked, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"there is no Python {version} on this machine: NOT TRIED with it")
    return Path(done.stdout.strip())


def as_a_tool(wheel: Path, python: str | Path, home: Path) -> Installed:
    """By uv, into an empty home."""
    home.mkdir()
    uv(home, "tool", "install", "--python", str(python), str(wheel), UV_CACHE_DIR=uv_cache())
    return Installed(home / ".local/bin/streamgauge", home / ".local/share/uv/tools/streamgauge", home)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_uv_tool_install_brings_a_program_that_works(wheel, tmp_path, version, served):
    installed = as_a_tool(wheel, python_of(version), tmp_path / "home")

    first = installed.call("doctor")
    assert f"Python: ok, {version}" in first.stdout
    assert "packages: ok" in first.stdout
    assert "JVM artifacts of services: ok" in first.stdout
    counts_what_it_shall(installed, tmp_path, served)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_an_engine_with_packages_of_its_own_is_installed_in_the_cache_and_gets_none_of_ours(wheel, tmp_path):
    """Of confluent-kafka it has another version than this program, whose packages lie beside the jobs it imports."""
    installed = as_a_tool(wheel, sys.executable, tmp_path / "home")
    installed.call("--version")
    before = installed.files()

    answer = installed.run(tmp_path, "--engine", "quix")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert installed.files() == before
    (own,) = (installed.home / ".cache/streamgauge/engines").glob("quix-*/bin")
    environment = json.loads((Path(answer["run"]) / "environment.json").read_text())
    assert "quixstreams" in environment["packages of the engine"]
    assert own.is_dir()
