"""What stands before a job in Java: it looks at the files of a history, and becomes Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from harness.engines.shipped import jobs_folder
from harness.install.origin import ROOT

JOB = jobs_folder("ad_impressions") / "java_job.py"
EVENT = b'{"ad_id": "a", "event_type": "view", "event_time": "1"}\n'


def begun(tmp_path, history):
    written = tmp_path / "engine.json"
    written.write_text(json.dumps({"history": history}))
    line = [sys.executable, str(JOB), str(written), "/bin/echo", "-cp", "JARS", "Job"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(line, capture_output=True, text=True, check=False, env=env)


def history_of(tmp_path, content):
    file = tmp_path / "history" / "2026-11-24" / "0-000000000000-000000000012.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return {"folder": str(tmp_path / "history"), "ends": [12], "begins": [9], "until_ms": None}


@pytest.mark.parametrize("reads_files", [False, True])
def test_java_gets_its_words_and_the_orders(tmp_path, reads_files):
    done = begun(tmp_path, history_of(tmp_path, 12 * EVENT) if reads_files else None)

    assert (done.returncode, done.stdout) == (0, f"-cp JARS Job {tmp_path / 'engine.json'}\n")


def test_a_file_that_is_torn_is_named_and_java_never_begins(tmp_path):
    done = begun(tmp_path, history_of(tmp_path, (12 * EVENT)[:-9]))

    assert (done.returncode, done.stdout) == (1, "")
    assert "0-000000000000-000000000012.json is torn: its last line, 12 of 12, has no end" in done.stderr
    assert "Nothing was read." in done.stderr
