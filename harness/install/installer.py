"""Installs packages by pip or uv from pinned lists, step by step.

Each step shows what it does and for how long, and writes a log. A failure ends in one sentence: the failed step, the
cause, advice, and the log's path. All output goes to stderr: stdout belongs to the command. Standard library only,
because the launcher uses this before anything is installed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from harness.host import disk_space
from harness.model import HarnessError

BOOTSTRAP = Path(__file__).with_name("bootstrap.lock")  # the packages that must be installed first
ROOM_NEEDED = 2_700_000_000  # the peak, while Spark is unpacked; less than 1 GB stays
# pyspark comes as source. Its build tools are pinned in bootstrap.lock, which an isolated build would ignore. Its
# 400 MB of jars are compressed already, so compressing them again in the wheel wastes time.
BUILDING = ("--no-build-isolation", "--config-settings-package", "pyspark:--build-option=--compression=stored")


def index_settings(python: str | Path) -> dict[str, str]:
    """Translate mirror and certificate from the settings of this Python's pip for uv, which does not read them. Without
    a pip, uv installed the program and has its settings already."""
    said = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    return translate_pip_settings(said.stdout, os.environ)


def translate_pip_settings(listed: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Parse the output of `pip config list`. The user's own settings of uv take precedence."""
    names = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "cert": "SSL_CERT_FILE"}
    found = re.findall(r"^\S*\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    return {names[key]: value for key, value in found if key in names and names[key] not in environment}


def run_step(what: str, command: list[str], lock: TextIO, log: Path, more: Mapping[str, str] | None = None) -> None:
    """Run one installation command, with its output in the log. It inherits the lock, in case we are killed."""
    with log.open("a", encoding="utf-8") as output, Progress(what) as progress:
        output.write(f"$ {shlex.join(command)}\n")
        output.flush()
        began = output.tell()
        child = subprocess.Popen(
            command,
            cwd=log.parent,
            env=clean_environment(os.environ) | dict(more or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[lock.fileno()],
        )
        try:
            while _still_runs(child):
                progress.tick()
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if child.returncode != 0:
        said = log.read_bytes()[began:].decode(errors="replace")
        raise HarnessError(explain(what, child.returncode, said, log))


def _still_runs(child: subprocess.Popen[bytes]) -> bool:
    try:
        child.wait(timeout=0.25)
    except subprocess.TimeoutExpired:
        return True
    return False


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Remove variables with which the installers would install other packages or into other folders."""
    confusing = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PYSPARK_HADOOP_VERSION"}
    kept = {name: value for name, value in environment.items() if name not in confusing}
    return kept | {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_PYTHON_DOWNLOADS": "never"}


_CAUSES = (
    (
        r"(?i)hash(es)? mismatch|do not match the hashes",
        "a downloaded package is not the pinned one",
        "try once more; if it repeats, the index or a proxy gives out other files than the project was tested with",
    ),
    (
        r"(?i)name resolution|dns error|error sending request|failed to fetch|connection refused|connection broken|"
        r"timed out|network is unreachable|from versions: none|proxyerror|certificate",
        "the package index was not reached",
        "check the network (behind a proxy set HTTPS_PROXY; a mirror is taken from the settings of pip or uv)",
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


def _cause(code: int, said: str, folder: Path) -> tuple[str, str]:
    if disk_space.ended_of_full(said, folder):
        needed = f"{ROOM_NEEDED / 1e9:.1f} GB"
        return "the disk is full", f"free about {needed} on the disk of {folder}, and some where temporary files go"
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["none"]
    return next(
        ((cause, remedy) for pattern, cause, remedy in _CAUSES if re.search(pattern, said)),
        (f"it ended with exit code {code}, last words: {lines[-1]}", "read the log"),
    )


# ---------------------------------------------------------------- Messages


def tell(sentence: str) -> None:
    print(f"streamgauge: {sentence}", file=sys.stderr, flush=True)


class Progress:
    """Shows a step and its duration: a counter on a terminal, a line now and then in a pipe."""

    def __init__(self, what: str, every_s: float = 15.0) -> None:
        self.what, self.every_s = what, every_s
        self.began = time.monotonic()
        self.next_line = self.began + every_s
        self.terminal = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        if not self.terminal:
            tell(f"{self.what} ...")
        return self

    def tick(self) -> None:
        now = time.monotonic()
        if self.terminal:
            print(f"\rstreamgauge: {self.what} ... {now - self.began:.0f} s ", end="", file=sys.stderr, flush=True)
        elif now >= self.next_line:
            tell(f"{self.what} ... {now - self.began:.0f} s so far")
            self.next_line = now + self.every_s

    def __exit__(self, *_: object) -> None:
        if self.terminal:
            self.tick()
            print(file=sys.stderr)
