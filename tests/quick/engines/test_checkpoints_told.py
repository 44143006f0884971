"""What an engine tells of its checkpoints is read line by line, and nothing is judged by it."""

from __future__ import annotations

from harness.engines import checkpoints
from harness.model import Checkpoint

TOLD = b"""
{"at": 1000, "took_ms": 20, "bytes": 300}
{"at": 1500, "took_ms": 20, "bytes": 300, "written_bytes": 30}
{"at": 2000, "took_ms": 900, "bytes": 400, "in_flight_bytes": 100, "failed": true, "more": "of its own"}
"""


def test_each_line_is_a_checkpoint(tmp_path):
    (tmp_path / checkpoints.FILE).write_bytes(TOLD)

    assert [*checkpoints.stored(tmp_path / checkpoints.FILE)] == [
        Checkpoint(1000, 20, 300),
        Checkpoint(1500, 20, 300, written_bytes=30),
        Checkpoint(2000, 900, 400, 100, failed=True),
    ]


def test_a_line_that_is_none_costs_only_itself(tmp_path):
    odd = [b"[]", b'{"at": "soon"}', b'{"at": 1, "took_ms": -5, "bytes": 3}', b"[" * 5000, b"\xff", b'{"at": 10']
    (tmp_path / checkpoints.FILE).write_bytes(b"\n".join([*odd, TOLD]))

    assert [each.at_ms for each in checkpoints.stored(tmp_path / checkpoints.FILE)] == [1000, 1500, 2000]


def test_there_need_not_be_any(tmp_path):
    assert [*checkpoints.stored(tmp_path / checkpoints.FILE)] == []
