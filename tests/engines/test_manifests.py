"""The matrix of the manifest on a real Kafka and a real Redis: a right job is PASS whatever its manifest says of it.

tests/program/engines/test_manifests.py has the same of the fake engine, where any three fields meet. Here any two do.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.engines.test_runs import EXAMPLES, run
from tests.program.covering import covering, meetings

pytestmark = pytest.mark.timeout(400)
JOB = Path(__file__).parent / "manifests"
# Where its results are: the source, and key and field of a hash or a string.
COMPACT = ("redis:compact", "{value}:{city}", "{opens}")
BY_CELL = ("redis:template", "rides:{city}:{end}", "{value}")
BY_KEY = ("redis:template", "{value}/{city}", "at {opens}")
STRINGS = ("redis:template", "{city}@{end}.{value}", "")
TOPIC, PRINTED = ("kafka:rides", "", ""), ("command", "", "")
FIELDS: Mapping[str, tuple[Any, ...]] = {
    "results": (COMPACT, BY_CELL, BY_KEY, STRINGS, TOPIC, PRINTED),
    "progress": ("file", "group", "none"),
    "final": (True, False),
    "late": ("drop", "keep"),
    "evidence": ("none", "named"),
    "fault": ("none", "kill@t>=5s"),
    "disorder": ("none", "mobile", "late"),
}
MATRIX = covering(FIELDS, strength=2)
# A hash for each cell and offsets of a group; a topic that is written when windows close, by a job that is killed.
ALWAYS = ((BY_CELL, "group"), (TOPIC, "file"))
PROGRESS = {"file": "true", "group": '"group:counts-{run}"', "none": "false"}


def manifest_of(choice: Mapping[str, Any]) -> str:
    results, key, inner = choice["results"]
    lines = [
        'id = "manifold"',
        'workload = "rides"',
        'command = ["{python}", "{home}/job.py", "{config}"]',
        f'results = "{results}"',
        f"progress = {PROGRESS[choice['progress']]}",
    ]
    if results == "redis:template":
        lines += [f'{name} = "{text}"' for name, text in (("key", key), ("field", inner)) if text]
    if results == "command":
        lines.append('read = ["{python}", "{home}/printed.py", "{config}"]')
    told = {**choice, "results": results, "key": key, "field": inner}
    lines += ["[options]", *(f'{name} = "{value}"' for name, value in told.items() if value != "")]
    lines += ["[[sinks]]", 'name = "totals"', f'late = "{choice["late"]}"', 'guarantee = "exactly-once"']
    return "\n".join([*lines, f"final = {str(choice['final']).lower()}"])


def test_any_two_choices_meet():
    met = {meeting for choice in MATRIX for meeting in meetings(choice, 2)}

    assert len(met) == sum(len(a) * len(b) for a, b in combinations(FIELDS.values(), 2))
    assert len(MATRIX) < 25


def rows() -> list[Any]:
    always = [next(row for row in MATRIX if (row["results"], row["progress"]) == each) for each in ALWAYS]
    return [
        pytest.param(
            row,
            id=" ".join(map(str, (":".join(row["results"]), *list(row.values())[1:]))),
            marks=() if row in always else pytest.mark.thorough,
        )
        for row in MATRIX
    ]


@pytest.mark.parametrize("choice", rows())
def test_a_right_job_passes(tmp_path, served, choice):
    for name in ("job.py", "printed.py"):
        shutil.copy(JOB / name, tmp_path)
    (tmp_path / "manifest.toml").write_text(manifest_of(choice))
    load = ("--rate", "400", "--duration", "12s", "--disorder", choice["disorder"], "--fault", choice["fault"])
    answer = run(
        tmp_path / "runs", *load, *served, "--workload", EXAMPLES / "rides", "--engine", tmp_path / "manifest.toml"
    )

    assert answer["verdict"] == "PASS", answer.get("sentence") or answer["error"]
