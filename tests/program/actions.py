"""A composite action, done as a runner of GitHub does it: step by step, with its files, its variables and its shell.

Of its expressions only those are known that action.yml uses: a name, or names compared with texts and joined by &&.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


def read(path: Path) -> Any:
    return YAML(typ="safe").load(path)


@dataclass
class Job:
    """What is known while an action goes on, and what is left when it is over."""

    place: Path  # of the runner's own files
    workspace: Path  # the user's checkout
    action: Path  # where the action itself lies
    environment: Mapping[str, str]
    outputs: dict[str, str] = field(default_factory=dict)  # `steps.ID.outputs.NAME` -> value
    uses: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)  # each other action, and what it was given
    log: str = ""
    summary: str = ""
    failed: int = 0  # the exit code of the step that failed

    def run(self, action: Mapping[str, Any], inputs: Mapping[str, str]) -> None:
        assert inputs.keys() <= action["inputs"].keys(), "GitHub would warn of an input that there is none of"
        given = {f"inputs.{name}": inputs.get(name, each["default"]) for name, each in action["inputs"].items()}
        self.outputs = {**given, "github.job": "gate"}
        for step in action["runs"]["steps"]:
            if self._wanted(step.get("if", "success()")):
                self._step(step)

    def filled(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self._value(found[1]), text)

    def _value(self, name: str) -> str:
        assert re.fullmatch(r"(inputs|github|steps)\.[\w.-]+", name), (
            f"an expression that this runner does not know: {name}"
        )
        return self.outputs.get(name, "")

    def _wanted(self, condition: str) -> bool:
        parts = [part.strip() for part in condition.split("&&")]
        if "always()" not in parts and self.failed:
            return False
        return all(self._holds(part) for part in parts if part not in ("always()", "success()"))

    def _holds(self, part: str) -> bool:
        shape = re.fullmatch(r"(\S+) (==|!=) '(.*)'", part)
        assert shape, f"a condition that this runner does not know: {part}"
        return (self._value(shape[1]) == shape[3]) is (shape[2] == "==")

    def _step(self, step: Mapping[str, Any]) -> None:
        if "uses" in step:
            self.uses.append((step["uses"], {name: self.filled(text) for name, text in step["with"].items()}))
            return
        assert step["shell"] == "bash"
        files = {name: self.place / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
        for file in files.values():
            file.write_text("")
        script = self.place / "step.sh"
        script.write_text(step["run"])
        own = {name: self.filled(text) for name, text in step.get("env", {}).items()}
        environment = {
            **self.environment,
            **own,
            **{name: str(file) for name, file in files.items()},
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.place),
            "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64",
        }
        done = subprocess.run(
            [*SHELL, str(script)],
            cwd=self.workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log += done.stdout
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        self.environment = {**self.environment, **_pairs(files["GITHUB_ENV"])}
        told = _pairs(files["GITHUB_OUTPUT"])
        self.outputs |= {f"steps.{step.get('id', '')}.outputs.{name}": value for name, value in told.items()}
        self.failed = self.failed or done.returncode


def _pairs(file: Path) -> dict[str, str]:
    """`name=value`, or `name<<end`, lines, and `end`."""
    found, lines = {}, iter(file.read_text().splitlines())
    for line in lines:
        name, sign, rest = re.match(r"([\w-]+)(=|<<)(.*)", line).groups()  # type: ignore[union-attr]
        found[name] = rest if sign == "=" else "\n".join(iter(lambda: next(lines), rest))
    return found
