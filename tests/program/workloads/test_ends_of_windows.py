"""A job may name windows by their ends where all of them are equally long, and only there."""

from __future__ import annotations

import json

from harness.cli import app
from harness.model import Exit
from harness.services import owners
from harness.terminal.command_end import ended

SESSIONS = """
id = "visits"
asks = "how many visits each session has"
[event.fields]
visitor = { kind = "uuid", of = 50 }
seen_at = { kind = "time" }
[oracle]
keys = ["visitor", "opens"]
merge = true
cells = "SELECT event, visitor, seen_at AS opens, seen_at + 5000 AS closes FROM events"
fold = "SELECT visitor, opens, count(*) AS visits FROM cells GROUP BY ALL"
[oracle.values]
visits = "count"
"""
MANIFEST = """
id = "by-end"
command = ["{python}", "{home}/job.py", "{config}"]
window_key = "end"
[[sinks]]
name = "totals"
late = "keep"
guarantee = "exactly-once"
"""


def test_sessions_named_by_their_ends_are_refused_before_anything_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)
    for name, text in (("workload.toml", SESSIONS), ("manifest.toml", MANIFEST), ("job.py", "")):
        (tmp_path / name).write_text(text)
    words = ["run", "--workload", "workload.toml", "--engine", "manifest.toml", "--json"]

    code = ended(words, lambda: app.called(words))

    error = json.loads(capsys.readouterr().out)["error"]
    assert code == Exit.USAGE
    assert 'window_key = "end"' in error
    assert "the same length" in error
    assert not (tmp_path / "runs").exists()
