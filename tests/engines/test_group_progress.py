"""A job that writes no line of progress, and commits its offsets to a consumer group."""

from __future__ import annotations

from pathlib import Path

from harness.engines.progress import FILE, stored
from tests.engines.test_runs import EXAMPLES, check, run

OWN = EXAMPLES / "own-engine"
COMMITS = """    if not behind:  # all that was read is written
        done = [part for part in consumer.position(parts) if part.offset >= 0]
        if done:
            consumer.commit(offsets=done, asynchronous=False)
"""


def test_killed_at_half_of_what_it_committed_it_passes(tmp_path):
    job, manifest = (OWN / "job.py").read_text(), (OWN / "manifest.toml").read_text()
    job = job.replace("f\"{config['topic']}-own-engine\"", '"counts-" + config["run"]') + COMMITS
    (tmp_path / "job.py").write_text(job)
    (tmp_path / "manifest.toml").write_text(
        manifest.replace('"own-engine"', '"commits"').replace("progress = false", 'progress = "group:counts-{run}"')
    )
    load = ("--rate", "2000", "--duration", "12s", "--watermark", "10s", "--fault", "kill@offset=50%")
    answer = run(tmp_path / "runs", *load, "--engine", tmp_path)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "after the restart it went on to" in check(answer, "fault")["sentence"]
    lines = list(stored(Path(answer["run"]) / FILE))
    sums = [sum(line.offsets.values()) for line in lines]
    assert sums == sorted(set(sums)), "it never went back, and no line says the same again"
    assert sums[-1] >= 24_000
