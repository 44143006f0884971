"""What is shown of an engine's log: its last exception and where it arose, never a progress bar or boilerplate."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines import complaint
from harness.engines.own_logs import OwnLogs
from harness.engines.process import ProcessEngine
from harness.model import EngineManifest, SinkClaim
from harness.services.logs import HEAD_BYTES, MOST_BYTES, Log, copy_end
from harness.util.wait import wait_until
from tests.quick.cases import placed

LOGS = Path(__file__).parents[1] / "logs"  # as engines wrote them, whole

HEAP = """\
26/11/25 12:00:01 ERROR Executor: Exception in task 0.0 in stage 41.0 (TID 82)
java.lang.OutOfMemoryError: Java heap space
\tat org.apache.spark.sql.catalyst.expressions.UnsafeRow.copy(UnsafeRow.java:447)
26/11/25 12:00:02 ERROR SparkUncaughtExceptionHandler: Uncaught exception in thread Thread[#62,Executor task,5,main]
java.lang.OutOfMemoryError: Java heap space
Traceback (most recent call last):
  File "/home/me/job.py", line 12, in <module>
    query.isActive
ConnectionRefusedError: [Errno 111] Connection refused
"""
PYTHON = """\
reading settings
Traceback (most recent call last):
  File "/home/me/job.py", line 12, in <module>
    client.ping()
  File "/home/me/.venv/lib/python3.12/site-packages/redis/client.py", line 559, in execute_command
    return self._execute_command(*args, **options)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.
"""
OWN_NAME = """\
Traceback (most recent call last):
  File "/home/me/job.py", line 3, in main
    raise TableMissing("impressions")
__main__.TableMissing: impressions

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/me/job.py", line 5, in main
    raise GaveUp
__main__.GaveUp
"""
JAVA = """\
12:00:01 ERROR o.a.k.c.NetworkClient - [Consumer clientId=x] Bootstrap broker 127.0.0.1:1 disconnected
Exception in thread "main" java.lang.IllegalStateException: the job ended
\tat com.example.Job.main(Job.java:12)
\tSuppressed: java.io.IOException: Stream closed
\t\tat java.base/java.io.Reader.close(Reader.java:1)
Caused by: java.lang.RuntimeException: java.net.UnknownHostException: kafka.example
\tat org.apache.kafka.clients.ClientUtils.parse(ClientUtils.java:9)
\tat com.example.Source.open(Source.java:77)
\t... 12 more
Caused by: java.net.UnknownHostException: kafka.example
\tat java.base/java.net.InetAddress.getAllByName(InetAddress.java:1)
\t... 13 more
[Stage 7:==========================>                               (96 + 2) / 200]
"""


def test_spark_tells_the_exception_of_the_job_and_its_line_not_its_plan():
    assert of("spark-foreach-batch.log") == (
        "ValueError: no such table: impressions",
        'File "/home/me/job/job.py", line 51, in save',
    )


def test_kafka_streams_tells_which_setting_was_wrong():
    assert of("kafka-streams-setting.log") == (
        'Exception in thread "main" org.apache.kafka.common.config.ConfigException: '
        "Invalid value abc for configuration max.poll.interval.ms: Not a number of type INT",
        "at KafkaStreamsJob.main(KafkaStreamsJob.java:73)",
    )


def test_flink_tells_the_last_of_its_nested_causes_and_what_it_is_the_cause_of():
    assert of("flink-setting.log") == (
        "Caused by: org.apache.flink.util.DynamicCodeLoadingException: "
        "Cannot find configured state backend factory class: nope",
        "Caused by: java.lang.ClassNotFoundException: nope",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            PYTHON,
            (
                "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
                'File "/home/me/job.py", line 12, in <module>',
            ),
        ),
        (OWN_NAME, ("__main__.GaveUp", 'File "/home/me/job.py", line 5, in main')),
        (
            JAVA,
            (
                "Caused by: java.lang.RuntimeException: java.net.UnknownHostException: kafka.example",
                "Caused by: java.net.UnknownHostException: kafka.example",
            ),
        ),
        (
            "Caused by: org.rocksdb.RocksDBException: block mismatch\n\tat org.rocksdb.RocksDB.get(Native Method)",
            ("Caused by: org.rocksdb.RocksDBException: block mismatch",),
        ),
        (
            "panic: no such table: views\n\ngoroutine 1 [running]:\nmain.main()\n\t/home/me/job.go:7\nexit status 2",
            ("panic: no such table: views",),
        ),
        (
            "thread 'main' panicked at src/main.rs:4:5:\nno such table: impressions\n"
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
            ("thread 'main' panicked at src/main.rs:4:5:", "no such table: impressions"),
        ),
        (
            "/home/me/job.js:3\nthrow new TypeError('no table');\n^\n\nTypeError: no table\n"
            "    at Object.<anonymous> (/home/me/job.js:3:7)\n\nNode.js v22.1.0",
            ("TypeError: no table",),
        ),
        (
            "26/11/25 12:49:28 ERROR MicroBatchExecution: Query terminated with error\n"
            "org.apache.spark.state.ValueSchemaNotCompatible: [STATE_SCHEMA] it does not match.\nCheck the fields.\n"
            "\tat org.apache.spark.state.Errors$.schema(Errors.scala:170)\ncom.example.Job: all is well\n",
            ("org.apache.spark.state.ValueSchemaNotCompatible: [STATE_SCHEMA] it does not match.",),
        ),
        (HEAP, ("java.lang.OutOfMemoryError: Java heap space",)),
        (
            "Terminating due to java.lang.OutOfMemoryError: Java heap space\n"
            'Traceback (most recent call last):\n  File "/home/me/job.py", line 12, in <module>\n    query.isActive\n'
            "ConnectionRefusedError: [Errno 111] Connection refused",
            ("Terminating due to java.lang.OutOfMemoryError: Java heap space",),
        ),
        ("INFO starting\nERROR no licence\nINFO waiting\n", ("ERROR no licence",)),
        ("\x1b[31mERROR\x1b[0m no licence\n", ("ERROR no licence",)),
        ("INFO Retrying after TimeoutException: x\nall well\n", ()),
    ],
    ids=[
        "python",
        "python, a name of its own",
        "java",
        "rocksdb",
        "go",
        "rust",
        "node",
        "java, a name of its own",
        "a heap that was used up, and what follows from it",
        "a JVM that ends when its heap is used up",
        "logged",
        "coloured",
        "chatter",
    ],
)
def test_the_last_exception_is_found(text, words):
    assert complaint.exception(text.splitlines()) == words


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (HEAP.splitlines(), "OutOfMemoryError: Java heap space"),
        (
            ["Caused by: java.lang.OutOfMemoryError: GC overhead limit exceeded"],
            "OutOfMemoryError: GC overhead limit exceeded",
        ),
        (["MemoryError"], "MemoryError"),
        (PYTHON.splitlines(), ""),
        ([], ""),
    ],
)
def test_a_program_that_used_up_its_memory_says_so(lines, words):
    assert complaint.used_up(lines) == words


def test_without_an_exception_what_says_something_is_left_once_each():
    text = """\
OpenJDK 64-Bit Server VM warning: Options -Xverify:none are deprecated
SLF4J: Failed to load class "org.slf4j.impl.StaticLoggerBinder".
Setting default log level to "WARN".
Setting Spark log level to "ERROR".
waiting for a licence
[Stage 0:>                                                          (0 + 2) / 2]
 45%|####      | 9/20 [00:01<00:01]

12:00:01 WARN Connection to node -1 could not be established
12:00:02 WARN Connection to node -1 could not be established
12:00:03 INFO Metrics reporters closed
\tauto.commit.interval.ms = 5000
"""

    assert complaint.last(text.splitlines()) == (
        "waiting for a licence",
        "12:00:02 WARN Connection to node -1 could not be established",
    )
    assert complaint.last(["12:00:03 INFO all that there is"]) == ("12:00:03 INFO all that there is",)


# As Flink ends that was given a state of another job: its dispatcher warns of a job that it can't tidy up.
REFUSED = """\
[main] WARN WebMonitorUtils - Log file environment variable 'log.file' is not set.
[Thread-17] ERROR LocalExecutor - Failed to submit job graph to local mini cluster.
java.util.concurrent.CompletionException: JobInitializationException: Could not start the JobMaster.
\tat org.apache.flink.client.deployment.executors.LocalExecutor.execute(LocalExecutor.java:80)
Caused by: java.lang.IllegalStateException: Cannot map savepoint state for operator cbc357.
\tat org.apache.flink.runtime.checkpoint.Checkpoints.loadAndValidateCheckpoint(Checkpoints.java:199)
\t... 27 more
"""
TIDIES_UP = """\
[dispatcher-4] WARN StandaloneDispatcher - Could not properly mark job 7513f2 result as clean.
java.util.concurrent.CompletionException: java.util.concurrent.CancellationException
\tat org.apache.flink.runtime.dispatcher.Dispatcher.onStop(Dispatcher.java:805)
Caused by: java.util.concurrent.CancellationException
\t... 27 more
"""


def test_what_a_program_warns_of_when_it_ends_is_not_why_it_ends():
    refused, alone = (complaint.reason(text.splitlines()) for text in (REFUSED + TIDIES_UP, TIDIES_UP))

    assert refused[-1] == "Caused by: java.lang.IllegalStateException: Cannot map savepoint state for operator cbc357."
    assert alone[-1] == "Caused by: java.util.concurrent.CancellationException"


def test_what_nobody_caught_is_no_warning_though_one_stands_above_it():
    text = REFUSED + 'WARN Client - the last try\nException in thread "main" java.io.IOException: gone\n'

    assert complaint.reason(text.splitlines())[-1] == 'Exception in thread "main" java.io.IOException: gone'


def test_of_several_logs_the_one_with_an_exception_is_shown():
    quiet, loud = ("logs/engine-1.log", ["submitted"]), ("logs/own/worker.log", PYTHON.splitlines())

    assert complaint.most_telling([quiet, loud]).log == "logs/own/worker.log"
    assert complaint.most_telling([("logs/engine-1.log", []), quiet]).lines == ("submitted",)
    assert complaint.most_telling([quiet, ("logs/own/other.log", ["a line"])]).log == "logs/engine-1.log"
    assert complaint.most_telling([("logs/engine-1.log", [])]).lines == ()


def test_further_logs_are_of_this_run_only_and_are_copied(tmp_path):
    home, elsewhere, run = tmp_path / "job", tmp_path / "var", tmp_path / "run"
    for folder in (home / "logs", elsewhere):
        folder.mkdir(parents=True)
    (home / "logs" / "old.log").write_text("ValueError: of yesterday\n")
    (home / "logs" / "added.log").write_text("ValueError: of yesterday\n")
    (home / "logs" / "anew.log").write_text("ValueError: of yesterday, and long\n")
    own = OwnLogs(("logs/*.log", f"{elsewhere}/*.log", "none/*"), home)

    with (home / "logs" / "added.log").open("a") as file:
        file.write("added\n")
    (home / "logs" / "anew.log").write_text("anew\n")
    (elsewhere / "jm.log").write_text("elsewhere\n")
    own.copy(run)

    absolute = str(elsewhere / "jm.log").strip("/").replace("/", "_")
    copied = {path.name: path.read_text() for path in (run / "own").iterdir()}
    assert copied == {"logs_added.log": "added\n", "logs_anew.log": "anew\n", absolute: "elsewhere\n"}
    assert dict(own.tails(5)) == {f"own/{name}": [text.strip()] for name, text in copied.items()}


@pytest.mark.parametrize("shift", range(0, 60, 7))
def test_last_words_are_whole_lines_and_the_last_ones_where_nothing_else_was_logged(tmp_path, shift):
    """The rest of a line has no level any more, and would be the only one that is no chatter."""
    lines = [f"12:00:00.{number:03} INFO Engine: step {number} of many is done now" for number in range(3000)]
    (tmp_path / "log").write_text("x" * shift + "\n" + "\n".join(lines) + "\n")

    tail = Log(tmp_path / "log").tail(complaint.REMEMBERED)

    assert tail == lines[-len(tail) :]
    assert len(tail) > 100
    assert complaint.last(tail)[-1] == lines[-1]


def test_a_log_without_any_line_end_shows_its_end(tmp_path):
    (tmp_path / "log").write_text("x" * 70_000 + "y" * 100_000)

    assert Log(tmp_path / "log").tail(1)[0].startswith("yyy")


@pytest.mark.parametrize("begins", ["copied", "cut"])
def test_what_is_kept_of_a_long_log_goes_on_with_a_whole_line(tmp_path, begins):
    path, kept = tmp_path / "log", tmp_path / "copy"
    path.write_bytes(b"12:00:00.000 INFO Engine: one more step is done\n" * (MOST_BYTES // 47))

    if begins == "copied":
        copy_end(path, kept, 0)
    else:
        kept = path
        Log(path).cut()

    lines = set(kept.read_bytes()[HEAD_BYTES if begins == "cut" else 0 :].split(b"\n")[2:])
    assert lines <= {b"12:00:00.000 INFO Engine: one more step is done", b""}
    assert begins == "cut" or kept.read_bytes().startswith(b"12:")


def test_of_a_long_further_log_the_end_is_kept(tmp_path):
    own = OwnLogs(("*.log",), tmp_path)
    with (tmp_path / "worker.log").open("wb") as file:
        file.seek(MOST_BYTES)
        file.write(b"\nlast words\n")

    own.copy(tmp_path / "run")

    copy = tmp_path / "run" / "own" / "worker.log"
    assert copy.stat().st_size == MOST_BYTES
    assert copy.read_bytes().endswith(b"\nlast words\n")


def test_an_engine_that_logs_elsewhere_has_its_exception_shown_from_there_and_copied(tmp_path):
    (tmp_path / "job.sh").write_text("echo submitted; echo 'ValueError: no such table' > worker.log; exit 1")
    claim = SinkClaim("s", "keep", "none")
    manifest = EngineManifest("mine", ("sh", "job.sh"), str(tmp_path), False, (claim,), logs=("worker.log",))
    engine = started(manifest, tmp_path)

    wait_until(lambda: not engine.alive(), deadline_s=60, what="the end of the job")

    words = engine.last_words()
    assert (words.log, words.lines) == ("logs/own/worker.log", ("ValueError: no such table",))
    engine.stop()
    assert (tmp_path / words.log).read_text() == "ValueError: no such table\n"
    assert replace(manifest, logs=()).logs == ()


def started(manifest, folder):
    for name in ("private", "evidence"):
        (folder / name).mkdir()
    config = placed(folder)
    folders = {"logs": folder / "logs", "evidence": folder / "evidence", "private": folder / "private"}
    engine = ProcessEngine(manifest, config, env=dict(os.environ), **folders)
    engine.start()
    return engine


def of(name: str) -> tuple[str, ...]:
    return complaint.exception(Log(LOGS / name).tail(2000))
