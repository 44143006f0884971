"""An example of each command for its help. Each can be typed as it stands."""

from __future__ import annotations

from typing import Any

from harness.terminal.command_end import PROGRAM

RUN = "runs/20261122-102030-calm-spark"
# The words of a command -> an example. "" is the program itself.
EXAMPLES = {
    "": "run --sink increment",
    "run": "run --engine examples/spark-job",
    "recheck": f"recheck {RUN}",
    "report": f"report {RUN}",
    "ls": "ls runs",
    "rm": "rm --older-than 7d --dry-run",
    "serve": "serve runs",
    "tape": "tape storm --rate 1000",
    "backlog": "backlog --rate 100000 --backlog 10m --topic clicks",
    "bench": "bench --quick",
    "search": "search --quick --engine spark",
    "chaos": "chaos --tier pr --jobs 2",
    "compare": "compare spark reference --quick",
    "scale": "scale --engine spark --cores 1,2",
    "gate": "gate --base main --head HEAD --engine jobs/ad-counts",
    "trend": "trend bench/gates.jsonl",
    "upgrade": "upgrade --from spark --to spark@4.1.3",
    "live": f"live {RUN}",
    "replay": f"replay {RUN}",
    "selftest": "selftest --clean 10",
    "audit": "audit results/ --total-rate 50000",
    "worker": "worker --master 10.0.0.5:5557",
    "docs": "docs --build site",
    "up": "up",
    "down": "down",
    "doctor": "doctor",
    "manifests": "manifests --image sg:1 --kafka k:9092 --redis redis://r",
    "completion": "completion bash --install",
    "test": "test quick",
    "engines": "engines",
    "engines add": "engines add flink",
    "engines rm": "engines rm flink",
    "workload": "workload",
    "workload new": "workload new payments",
    "workload check": "workload check payments",
}


def add_to(command: Any, words: str = "") -> None:
    """Add the examples to the end of the help of a command and of its subcommands."""
    if words in EXAMPLES:
        command.epilog = text(words)
    for name, below in getattr(command, "commands", {}).items():
        add_to(below, f"{words} {name}".strip())


def text(words: str) -> str:
    """Write the line with the example of a command."""
    return f"Example: {PROGRAM} {EXAMPLES[words]}"
