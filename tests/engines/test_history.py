"""Older events lie in files and newer ones in Kafka, as one input: right, killed, and wrong at the seam."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.engines.job import History
from harness.kafka_log import recount
from harness.model import FileSeam
from harness.rundir.store import Store
from harness.runner.world.history_files import as_lines
from harness.util.wait import wait_until
from tests.engines.test_runs import check, run, told
from tests.engines.trial import DEADLINE_S, SOON_UP
from tests.quick.spoiled import ENDS, spoil, write_files

HERE = Path(__file__).parent
SEAMS = {name: HERE / "seams" / name / "manifest.toml" for name in ("", "tws", "kafka-streams")}
SHORT = ("--rate", "1000", "--history", "36s", "--backlog", "10s", "--duration", "12s")
HISTORY = ("history", *SHORT, *SOON_UP)
WAY = "streamgauge.history="

pytestmark = pytest.mark.timeout(400)


@pytest.mark.thorough
def test_files_and_then_kafka_killed_among_the_files(tmp_path, served):
    """In each second file, of six; its state, its watermark and its numbers go over to Kafka."""
    answer = run(tmp_path, *HISTORY, *served, "--fault", "kill@c3:batch=2")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "which was replayed" in check(answer, "fault")["sentence"]
    assert "were moved into files" in check(answer, "log")["sentence"]


@pytest.mark.thorough
def test_a_seam_by_time_is_right_too(tmp_path, served):
    answer = run(tmp_path, *HISTORY, *served, "--fault", "none", "--seam", "time", "--history", "48s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("engine", "fault"),
    [
        ("spark-tws", "none"),
        ("spark-tws", "kill@c3:batch=0"),  # the batch that takes the state over
        ("kafka-streams", "none"),
        ("kafka-streams", "kill@batch>=2"),  # among the files
    ],
)
def test_a_stream_begins_with_the_state_that_files_have_made(tmp_path, served, engine, fault):
    answer = run(tmp_path, "bootstrap", *SHORT, *served, *soon_up(engine), "--engine", engine, "--fault", fault)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "were moved into files" in check(answer, "log")["sentence"]
    if fault == "kill@c3:batch=0":
        assert "batch 0, which was replayed" in check(answer, "fault")["sentence"]
    if fault == "kill@batch>=2":
        assert restored_by_the_second_start(answer["run"]) < in_files(answer["run"])


def soon_up(engine):
    """A JVM that does not optimise, where the engine's settings say so."""
    return SOON_UP if "tws" in str(engine) else ()


def restored_by_the_second_start(folder):
    lines = [json.loads(line) for line in (Path(folder) / "progress.jsonl").read_text().splitlines() if line.strip()]
    _, second = (line["restored"] for line in lines if "restored" in line)
    return sum(second.values())


def await_end(engine):
    wait_until(lambda: not engine.alive(), deadline_s=DEADLINE_S, what="it to end", state=lambda: str(engine.tail(5)))


def in_files(folder):
    return sum(next(Store(Path(folder)).history("history"))["seam"]["ends"])


@pytest.mark.thorough
def test_kafka_streams_takes_a_seam_by_time_too(tmp_path, served):
    by_time = ("--engine", "kafka-streams", "--seam", "time", "--history", "48s", "--fault", "kill@batch>=2")
    answer = run(tmp_path, "bootstrap", *SHORT, *served, *by_time)

    assert answer["verdict"] == "PASS", answer["sentence"]  # what it had dropped before the kill nobody knows: slack


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("fresh", ["lost", "non-monotonic"]),  # cells across the seam begin anew
        ("union", ["late-dropped"]),  # the watermark is that of Kafka
        ("union-each", []),  # nothing is ever late any more
    ],
)
def test_what_the_other_ways_make_of_it(tmp_path, served, way, words):
    answer = run(tmp_path, *HISTORY, *served, "--conf", f"{WAY}{way}")

    assert (answer["words"], answer["slack"]) == (words, 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("early", "duplicated: "),
        ("torn", "crashed: "),
        ("torn-unseen", "lost: "),
    ],
)
def test_who_is_wrong_at_the_seam_fails_by_its_right_name(tmp_path, served, bug, said):
    answer = run(tmp_path, *HISTORY, *served, "--engine", SEAMS[""], "--conf", f"streamgauge.bug={bug}")

    assert answer["verdict"] == "FAIL"
    assert answer["sentence"].startswith(said), answer["sentence"]
    assert ("at the seam" in answer["sentence"]) is (bug == "early")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("job", "bug", "said"),
    [
        ("tws", "early", "duplicated: "),
        ("tws", "stale", "lost: "),
        ("kafka-streams", "early", "duplicated: "),
        ("kafka-streams", "late", "lost: "),
        ("kafka-streams", "earliest", "duplicated: "),
        ("kafka-streams", "stale", "lost: "),  # the state without what the last file of each partition holds
    ],
)
def test_a_state_that_is_handed_over_wrongly_fails_by_its_right_name(tmp_path, served, job, bug, said):
    planted = ("--engine", SEAMS[job], "--conf", f"streamgauge.bug={bug}")
    answer = run(tmp_path, "bootstrap", *SHORT, *served, *soon_up(job), *planted)

    assert answer["verdict"] == "FAIL"
    assert answer["sentence"].startswith(said), answer["sentence"]
    assert ("at the seam" in answer["sentence"]) is (bug != "stale")


@pytest.mark.thorough
def test_kafka_streams_dies_when_it_has_counted_the_files_and_goes_on_where_they_end(trial):
    """The group has no member then, and no offset of the topic: Kafka knows only how far the files are counted."""
    trial.send(4000)
    ends = dict.fromkeys(trial.log, 600)
    values = recount.read_values(trial.kafka, trial.topic, ends)
    folder = trial.folder / "history"
    folder.mkdir()
    for partition, end in ends.items():
        (folder / f"{partition}-0-{end}.json").write_bytes(as_lines(values[partition], packed=False))
    seam = FileSeam(tuple(ends.values()), tuple(ends.values()))
    engine = trial.engine(str(SEAMS["kafka-streams"]), "highest")
    engine.change({"history": History(str(folder), seam), "options": {"streamgauge.bug": "dies"}})
    try:
        engine.start()
        await_end(engine)
        told_before = engine.progress()
        engine.restart()
        trial.await_drained(engine)
    finally:
        engine.stop()

    assert told_before is not None
    assert told_before.offsets == ends
    assert trial.results() == trial.expected()


@pytest.mark.thorough
def test_what_retention_took_is_in_the_files(tmp_path):
    """A broker of its own: how often it looks is a setting with which it starts. The first partition gets nothing in
    the first half of what waits, and is to have more than two segments that may go."""
    lengths = ["--history", "84s", "--backlog", "5s", "--duration", "12s", "--watermark", "2m"]
    arguments = ["run", "bootstrap", "--engine", "kafka-streams", *lengths, "--out", str(tmp_path), "--json"]
    command = [sys.executable, "-m", "tests.engines.by_retention", *arguments, "--conf", "streamgauge.late=named"]
    answer = told(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    seam = next(Store(Path(answer["run"])).history("history"))["seam"]
    broker = (Path(answer["run"]) / "logs" / "kafka.log").read_text()
    assert all(seam["begins"])
    assert "due to log retention size" in broker


@pytest.mark.thorough
def test_kafka_streams_never_begins_with_files_that_are_torn(trial):
    folder = trial.folder / "history"
    write_files(folder)
    spoil(folder, "torn")
    engine = trial.engine("kafka-streams", "highest")
    engine.change({"history": History(str(folder), FileSeam(ENDS, ENDS))})
    engine.start()
    await_end(engine)

    assert engine.exit_code() == 1
    assert "is torn: its last line, 100 of 100, has no end" in "\n".join(engine.tail(20))
    assert not (trial.folder / "engine_settings.json").exists(), "a JVM had begun"
