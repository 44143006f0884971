"""Installs packages by pip or uv from pinned lists, step by step.

Each step shows what it does and for how long, and writes a log; steps that don't need each other run side by side. A
failure ends in one sentence: the failed step, the cause, advice, and the log's path. All output goes to stderr: stdout
belongs to the command. Standard library only, because the launcher uses this before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from harness.host import disk_space
from harness.install.progress import Part, Progress
from harness.model import HarnessError

BOOTSTRAP = Path(__file__).with_name("bootstrap.lock")  # the packages that must be installed first
ROOM_NEEDED = 2_700_000_000  # the peak, while Spark is unpacked; less than 1 GB stays
# pyspark comes as source. Its build tools are pinned in bootstrap.lock, which an isolated build would ignore. Its
# 400 MB of jars are compressed already, so compressing them again in the wheel wastes time.
BUILDING = ("--no-build-isolation", "--config-settings-package", "pyspark:--build-option=--compression=stored")
POLL_S = 0.1

# ---------------------------------------------------------------- pip and its settings

WHEELS_OF_DISTRIBUTIONS = "/usr/share/python-wheels"  # Debian, Ubuntu, Fedora


def pip_command(python: str | Path) -> list[str]:
    """Return the command that runs pip with this Python: from the wheel that comes with Python, if there is one, so
    that nothing is installed for it."""
    wheel = bundled_pip()
    return [str(python), "-I", str(wheel / "pip")] if wheel else [str(python), "-m", "pip"]


def bundled_pip() -> Path | None:
    """Return the wheel of pip from which this Python would install one; None if it has none."""
    import sysconfig

    ensurepip = importlib.util.find_spec("ensurepip")
    inside = [f"{place}/_bundled" for place in (ensurepip and ensurepip.submodule_search_locations) or ()]
    for place in (sysconfig.get_config_var("WHEEL_PKG_DIR"), *inside, WHEELS_OF_DISTRIBUTIONS):
        if place and (wheels := sorted(Path(place).glob("pip-*.whl"))):
            return wheels[-1]
    return None


def index_settings(python: str | Path) -> dict[str, str]:
    """Translate index, proxy and certificates from the settings of this Python's pip for uv, which does not read them.
    Without a pip, uv installed the program and has its settings already."""
    asked = [*pip_command(python), "config", "list"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)
    return translate_pip_settings(said.stdout, os.environ)


# A setting of pip -> the variable of uv, and the separator of several values.
_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "no-index": ("UV_NO_INDEX", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
    "proxy": ("ALL_PROXY", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
}
_SECTIONS = ("global", "install", ":env:")  # each overrides the one before


def translate_pip_settings(listed: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Parse the output of `pip config list`. The user's own settings of uv take precedence."""
    found: dict[str, str] = {}
    for section in _SECTIONS:
        for key, shown in re.findall(rf"^{section}\.([\w-]+)=(.*)$", listed, re.MULTILINE):
            if key in _VARIABLES and _VARIABLES[key][0] not in environment:
                name, separator = _VARIABLES[key]
                found[name] = separator.join(_values(key, shown))
    return {name: value for name, value in found.items() if value}


def _values(key: str, shown: str) -> list[str]:
    """Split a setting into its values. uv would fail over a folder of find-links that is not there, pip goes on."""
    import ast

    try:
        text = str(ast.literal_eval(shown))
    except (ValueError, SyntaxError):
        text = shown
    values = text.split()
    if key == "find-links":
        return [value for value in values if "://" in value or Path(value).exists()]
    return values


# ---------------------------------------------------------------- Steps


@dataclass(frozen=True)
class Step:
    """One command of an installation. Its output goes to the log; its part has bytes that can be counted."""

    what: str
    command: Sequence[str]
    log: Path
    more: Mapping[str, str] = field(default_factory=dict)  # variables
    part: Part | None = None


class StepError(HarnessError):
    """A step failed. `passing` means that the network or the disk was the cause, and not what was fetched so far."""

    def __init__(self, sentence: str, *, passing: bool) -> None:
        super().__init__(sentence)
        self.passing = passing


def run_step(what: str, command: list[str], lock: TextIO, log: Path, more: Mapping[str, str] | None = None) -> None:
    """Run one installation command, with its output in the log. It inherits the lock, in case we are killed."""
    run_side_by_side([Step(what, command, log, more or {})], lock)


def run_side_by_side(steps: Sequence[Step], lock: TextIO) -> list[StepError]:
    """Run several steps at the same time. The first one matters most: if it fails, the others are ended and its error
    is raised. The errors of the others are returned when all have ended."""
    what = " and ".join(step.what for step in steps)
    jobs: list[_Job] = []
    with Progress(what, [step.part for step in steps if step.part]) as progress:
        try:
            for step in steps:
                jobs.append(_Job(step, lock))  # one by one: if this one can't start, the others are ended
            while [job for job in jobs if job.runs()] and not jobs[0].error:
                progress.tick()
                time.sleep(POLL_S)
        finally:
            for job in jobs:
                job.end()
    if jobs[0].error:
        raise jobs[0].error
    return [job.error for job in jobs[1:] if job.error]


class _Job:
    """A running step, in a process group of its own, which is ended as a whole."""

    def __init__(self, step: Step, lock: TextIO) -> None:
        self._step = step
        self.error: StepError | None = None
        with step.log.open("a", encoding="utf-8") as output:
            output.write(f"$ {shlex.join(step.command)}\n")
            output.flush()
            self._began = output.tell()
            self._child = subprocess.Popen(
                step.command,
                cwd=step.log.parent,
                env=clean_environment(os.environ) | dict(step.more),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[lock.fileno()],
                process_group=0,
            )
        self._ended = False

    def runs(self) -> bool:
        if not self._ended and self._child.poll() is not None:
            self._ended = True
            if self._child.returncode != 0:
                self.error = self._explained()
        return not self._ended

    def end(self) -> None:
        if not self._ended:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGTERM)
            self._child.wait()
            self._ended = True

    def _explained(self) -> StepError:
        step, code = self._step, self._child.returncode
        said = step.log.read_bytes()[self._began :].decode(errors="replace")
        return StepError(explain(step.what, code, said, step.log), passing=is_passing(said, step.log.parent))


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Remove variables with which the installers would install other packages or into other folders."""
    confusing = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PYSPARK_HADOOP_VERSION"}
    kept = {name: value for name, value in environment.items() if name not in confusing}
    return kept | {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_PYTHON_DOWNLOADS": "never"}


# ---------------------------------------------------------------- Why a step failed

_MISMATCH = r"(?i)hash(es)? mismatch|do not match the hashes"
_UNREACHED = (
    r"(?i)name resolution|dns error|error sending request|failed to fetch|connection refused|connection broken|"
    r"timed out|network is unreachable|from versions: none|proxyerror|certificate"
)
_CAUSES = (
    (
        _MISMATCH,
        "a downloaded package is not the pinned one",
        "try once more; if it repeats, the index or a proxy gives out other files than the project was tested with",
    ),
    (
        _UNREACHED,
        "the package index was not reached",
        "check the network (behind a proxy set HTTPS_PROXY; an index of your own is taken from the settings of pip "
        "or uv)",
    ),
)


def explain(what: str, code: int, said: str, log: Path) -> str:
    """Explain a failed command to the user in one sentence, from the command's output."""
    own_words = re.findall(r"^streamgauge: (.*)$", said, re.MULTILINE)
    if own_words:
        return str(own_words[-1])
    cause, remedy = _cause(code, said, log.parent)
    again = "and start the same command again"
    return f"Preparing failed while {what}: {cause}. To go on, {remedy}, {again}. Log: {log}"


def is_passing(said: str, folder: Path) -> bool:
    """Return whether the same command can succeed with the files that were fetched so far."""
    unreached = re.search(_UNREACHED, said) and not re.search(_MISMATCH, said)
    return bool(unreached) or disk_space.ended_of_full(said, folder)


def _cause(code: int, said: str, folder: Path) -> tuple[str, str]:
    if disk_space.ended_of_full(said, folder):
        needed = f"{ROOM_NEEDED / 1e9:.1f} GB"
        return "the disk is full", f"free about {needed} on the disk of {folder}, and some where temporary files go"
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["none"]
    return next(
        ((cause, remedy) for pattern, cause, remedy in _CAUSES if re.search(pattern, said)),
        (f"it ended with exit code {code}, last words: {lines[-1]}", "read the log"),
    )
