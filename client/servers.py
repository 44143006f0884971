"""A Kafka and a Redis for tests, without Docker.

They end with the process that asked for them, also if that one is killed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .program import ProgramError, command


@dataclass(frozen=True)
class Servers:
    """The addresses of a Kafka and a Redis that belong to this process alone."""

    kafka: str  # HOST:PORT
    redis: str  # redis://HOST:PORT


@contextmanager
def servers() -> Iterator[Servers]:
    """Start a Kafka and a Redis on loopback, and stop them at the end."""
    words = [*command(), "up", "--attached", "--json"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        # Leaving the block closes standard input, which ends them, and waits for that.
        yield _addresses(child.stdout.readline() if child.stdout else "")


def _addresses(line: str) -> Servers:
    answer = json.loads(line) if line.strip() else {"error": "see standard error"}
    if "error" in answer:
        raise ProgramError(f"Kafka and Redis did not come up: {answer['error']}")
    return Servers(answer["kafka"], answer["redis"])
