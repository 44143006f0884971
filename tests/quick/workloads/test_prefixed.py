"""Each command that a job sends to Redis is one of which the keys are known: another would end a run with a prefix."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from workloads.prefixed import ALL, FIRST, NO_KEY, PAIRS, SCRIPTS, below, client_of, prefix_of

JOBS = sorted((Path(__file__).parents[3] / "workloads").rglob("jobs/*.py"))
CLIENTS = ("client", "pipe", "pipeline", "transaction")
COMMANDS = NO_KEY | FIRST | ALL | {PAIRS, *SCRIPTS}
# Methods of the client that send other commands, or none.
SENT = {
    "scan_iter": "SCAN",
    "sscan_iter": "SSCAN",
    "pipeline": "MULTI",
    "execute": "EXEC",
    "register_script": "EVALSHA",
}


def sent(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            if isinstance(of, ast.Name) and of.id in CLIENTS:
                yield SENT.get(node.func.attr, node.func.attr.upper())


def test_no_job_sends_a_command_whose_keys_are_unknown():
    found = {(path.name, command) for path in JOBS for command in sent(path.read_text())}
    assert {"HSET", "EVAL", "SCAN", "SMEMBERS"} <= {command for _, command in found}
    assert [each for each in sorted(found) if each[1] not in COMMANDS] == []
    assert set(sent("client.rename(a, b)")) - COMMANDS == {"RENAME"}


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (("GET", "a"), ("GET", "p:a")),
        (("HSET", b"a", "field", "value"), ("HSET", b"p:a", "field", "value")),
        (("DEL", "a", "b"), ("DEL", "p:a", "p:b")),
        (("MSET", "a", "1", "b", "2"), ("MSET", "p:a", "1", "p:b", "2")),
        (("EVAL", "return", 2, "a", "b", "c"), ("EVAL", "return", 2, "p:a", "p:b", "c")),
        (("PING",), ("PING",)),
    ],
)
def test_the_keys_of_a_command_get_the_prefix(words, there):
    assert below("p:", words) == there


def test_the_keys_of_a_pipeline_get_the_prefix_of_its_client():
    client = client_of("redis://nowhere:1", "p:")
    pipeline = client.pipeline()
    pipeline.set("a", "1")

    assert [words for words, _ in pipeline.command_stack] == [("SET", "p:a", "1")]
    assert prefix_of(client) == "p:"
    assert prefix_of(client_of("redis://nowhere:1")) == ""
