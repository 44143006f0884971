"""The keys of a manifest: what each takes, its default and the sentence about it in the reference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any, get_args

from harness.engines.shipped import HERE, SHIPPED
from harness.model import CRASH_POINTS, EVENT_TIME, TABLES, ConfigFormat, Guarantee, Late, LateEvidence, Time, WindowKey
from harness.util.suggest import nearest
from harness.util.toml_key import TomlKey
from harness.util.toml_reader import OneOf, SomeOf, expected, flag, table_of_texts, text, texts

Keys = Mapping[str, TomlKey]

# The placeholders of a command, with their values in Markdown.
PLACEHOLDERS = {
    "classpath": "the jars, joined as `-cp` wants them",
    "config": "the path of the run config",
    "home": "the folder of the manifest",
    "java": "a Java that is new enough",
    "java_options": "the options for it, such as its class archive",
    "job": "the job of the shipped engine that the manifest extends",
    "python": "our Python, with `confluent-kafka`, `redis`, `pyspark` and `fastavro`; or the one of `packages`",
}
GROUP, GROUP_PLACEHOLDERS = "group:", ("run", "topic")
RESULTS = re.compile(r"[a-z]+(:\S+)?")  # harness/results/registry.py lists the valid ones
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}(/[A-Za-z_][A-Za-z0-9_]{0,60})?")


def identifier(key: str, value: Any) -> str:
    """Read an id by which folders are named."""
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise expected(key, value, "up to 60 letters, digits, dots, dashes and underscores: folders are named by it")
    return value


def _progress(key: str, value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    if not (group := group_of(value)):
        raise expected(key, value, f"true, false or '{GROUP}NAME', the consumer group to which the job commits")
    for name in placeholders(key, group):
        if name not in GROUP_PLACEHOLDERS:
            raise expected(key, value, "no placeholder but {run}, {topic}", nearest(name, GROUP_PLACEHOLDERS))
    return str(value)


def group_of(progress: Any) -> str:
    """Return the consumer group in a value of `progress`, or ""."""
    return progress.removeprefix(GROUP) if isinstance(progress, str) and progress.startswith(GROUP) else ""


def _seconds(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise expected(key, value, "a number of seconds above 0")
    return float(value)


def _command(key: str, value: Any) -> tuple[str, ...]:
    words = texts(key, value)
    if not words:
        raise expected(key, value, "a list with the program and its arguments")
    for word in words:
        for name in placeholders(key, word):
            if name not in PLACEHOLDERS:
                allowed = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
                raise expected(key, word, f"no placeholder but {allowed}", nearest(name, PLACEHOLDERS))
    return words


def placeholders(key: str, word: str) -> list[str]:
    """Return the names in braces."""
    try:
        return [name for _, name, _, _ in Formatter().parse(word) if name is not None]
    except ValueError as error:
        raise expected(key, word, f"a brace that is no placeholder written twice ({error}), so it") from error


def _results(key: str, value: Any) -> str:
    if not isinstance(value, str) or not RESULTS.fullmatch(value):
        raise expected(key, value, "a source of results, such as redis:compact or kafka:TOPIC")
    if value.startswith("kafka:") and not TOPIC_NAME.fullmatch(value[6:]):
        raise expected(key, value, "kafka:TOPIC, where TOPIC is a name of letters, digits, '.', '_' and '-', so it")
    source, colon, name = value.partition(":")
    if source in TABLES and (colon or source != "sql") and not TABLE_NAME.fullmatch(name):
        raise expected(key, value, f"{source}:TABLE, where TABLE is a name of letters, digits and '_', so it")
    return value


def _ivy(key: str, value: Any) -> str:
    known = sorted(path.parent.name for path in HERE.glob("*/ivy.xml"))
    if value not in known:
        raise expected(key, value, f"one of the shipped sets of jars: {', '.join(known)}")
    return str(value)


def _packages(key: str, value: Any) -> str:
    known = sorted(path.parent.name for path in HERE.glob("*/requirements.lock"))
    if not isinstance(value, str) or value not in known:
        raise expected(key, value, f"one of the shipped lists: {', '.join(known)}")
    return value


def _sinks(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise expected(key, value, "at least one [[sinks]] table")
    return value


SINK_KEYS: Keys = {
    "name": TomlKey(text, "The name by which `--sink` chooses it.", required=True, example='name = "totals"'),
    "late": TomlKey(
        OneOf(get_args(Late)),
        "Whether the job drops events that come after the watermark, or counts them.",
        required=True,
        example='late = "drop"',
    ),
    "guarantee": TomlKey(
        OneOf(get_args(Guarantee)),
        "The guarantee that you claim for its counts. A FAIL report says whether the wrong counts are within it.",
        required=True,
        example='guarantee = "exactly-once"',
    ),
    "crash_points": TomlKey(
        SomeOf(CRASH_POINTS),
        "The crash points at which the job waits when `crash_path` orders it. The job has to report its progress.",
        example='crash_points = ["c3"]',
    ),
    "bookkeeping": TomlKey(
        texts,
        "Patterns of Redis keys that belong to the job and hold no results. Without it such a key is a `phantom`.",
        example='bookkeeping = ["fence:*"]',
    ),
    "final": TomlKey(
        flag,
        "A result is written once, when the watermark has passed the end of its window (Spark's append mode).",
        example="final = true",
    ),
    "in_order": TomlKey(
        flag,
        "Outputs of a key leave in the order of their events' times. Only for results in a topic.",
        example="in_order = true",
    ),
    "whole_batches": TomlKey(
        flag,
        "A reader sees the outputs of a batch all at once or not at all. Only for outputs of events in a table.",
        example="whole_batches = true",
    ),
    "times": TomlKey(
        SomeOf(get_args(Time)),
        "The times by which the job can count, for the scenario key `time`.",
        f'`["{EVENT_TIME}"]`',
        example='times = ["event", "processing"]',
    ),
}

# Keys of an engine, for all workloads.
ENGINE_KEYS: Keys = {
    "id": TomlKey(
        identifier,
        "The name of the engine in results and folders. The ids of shipped engines are taken.",
        takes="up to 60 letters, digits, dots, dashes and underscores",
        required=True,
        example='id = "my-job"',
    ),
    "command": TomlKey(
        _command,
        "The program and its arguments. The program is on `PATH` or beside the manifest, whose folder is the working "
        "directory. One word holds `{config}`. A run builds nothing: a jar has to exist.",
        takes="a list of texts with placeholders",
        required=True,
        example='command = ["{python}", "job.py", "{config}"]',
    ),
    "evidence": TomlKey(
        OneOf(get_args(LateEvidence)),
        "Where the run reads which events were dropped as late: in the checkpoint of a Spark query with one stateful "
        "operator. The progress is read there as well.",
        '`"none"`',
        example='evidence = "spark-checkpoint"',
    ),
    "progress": TomlKey(
        _progress,
        "Whether the job reports its progress: in lines of `progress_path`, or as offsets that it commits to a "
        "consumer group. `{run}` and `{topic}` in the name of the group are those of the run config. Crash points, "
        "`states` and moments such as `batch>=3` need lines.",
        "`true`",
        f'`true`, `false` or `"{GROUP}NAME"`',
        'progress = "group:my-group"',
    ),
    "resumes": TomlKey(
        flag,
        "The job may be killed, and goes on where it was when it is started again. With `false` nothing is killed.",
        "`true`",
        example="resumes = false",
    ),
    "executors": TomlKey(
        flag, "Processes of their own do the work, and the job restarts them when they die.", example="executors = true"
    ),
    "ready_s": TomlKey(
        _seconds,
        "Deadline for the answer to the opening events, after each start.",
        "120 s",
        "seconds above 0",
        "ready_s = 300",
    ),
    "drain_s": TomlKey(
        _seconds,
        "How long nothing may move after the last event before the engine is `stuck`.",
        "120 s",
        "seconds above 0",
        "drain_s = 300",
    ),
    "retention_s": TomlKey(
        _seconds,
        "How long results are kept at least. Their keys may then have a time to live, which is `vanishing` otherwise.",
        "for good",
        "seconds above 0",
        "retention_s = 3600",
    ),
    "archive": TomlKey(
        flag,
        "The JVM of the job takes `java_options` of the run config and ends in order at SIGTERM, so that it can start "
        "from a class archive.",
        example="archive = true",
    ),
    "waits_for_services": TomlKey(
        flag,
        "The job may start before Kafka and Redis answer. While `bootstrap` in its run config is empty, it reads the "
        "file again and touches neither.",
        example="waits_for_services = true",
    ),
    "env": TomlKey(
        table_of_texts,
        "Environment variables of the process. They take precedence over those of your shell.",
        example='env = { TZ = "UTC" }',
    ),
    "extends": TomlKey(
        OneOf(tuple(SHIPPED)),
        "A shipped engine whose keys, job and Java sources apply where this manifest gives none.",
        example='extends = "spark"',
    ),
    "build": TomlKey(
        _command,
        "The command by which `gate` builds the job in a checkout of a commit, in the folder of the manifest.",
        takes="a list of texts with placeholders",
        example='build = ["mvn", "-q", "package"]',
    ),
    "ivy": TomlKey(
        _ivy,
        "A set of jars that comes with this program. The job gets it as `jars` and in `{classpath}`.",
        takes="the id of an engine with jars",
        example='ivy = "spark"',
    ),
    "packages": TomlKey(
        _packages,
        "A list of Python packages that comes with this program. `{python}` then has these packages instead of ours.",
        takes="the id of an engine with packages",
        example='packages = "quix"',
    ),
    "jars_inside": TomlKey(
        text,
        "A folder of these Python packages with jars. The Java sources are compiled against them, and they belong to "
        "the class path of the class archive.",
        example='jars_inside = "pyspark/jars"',
    ),
    "orders": TomlKey(
        OneOf(get_args(ConfigFormat)),
        "The format of the run config. `yahoo` is the YAML file of the original benchmark; Redis is then at port 6379.",
        '`"json"`',
        example='orders = "yahoo"',
    ),
    "group": TomlKey(
        text,
        "A consumer group that is set to the beginning of the topic, for a job that would start at its end.",
        example='group = "my-group"',
    ),
    "logs": TomlKey(
        texts,
        "Patterns of log files that the job writes itself, absolute or relative to the manifest. Their new lines are "
        "searched for an exception and copied to `logs/own/` of the run.",
        example='logs = ["logs/*.log"]',
    ),
    "settings": TomlKey(
        texts,
        "Which settings of `--conf` reach the engine, as patterns, and which of the keys `trigger` and `master`. "
        "Others are refused before the start.",
        "any",
        example='settings = ["spark.*", "trigger"]',
    ),
}

# Keys and claims of a job for one workload.
CLAIM_KEYS: Keys = {
    "sinks": TomlKey(
        _sinks,
        "One table for each way in which the job writes its results. The first one is the default.",
        takes="at least one `[[sinks]]` table",
        required=True,
        example='sinks = [{ name = "totals", late = "drop", guarantee = "exactly-once" }]',
    ),
    "checksum": TomlKey(flag, "The job can also sum the ids of the events of each cell.", example="checksum = true"),
    "history": TomlKey(
        flag, "The job reads older events from files that its run config names.", example="history = true"
    ),
    "early": TomlKey(
        text,
        "In words: why counts of an open window can be seen. The page of `compare` shows it.",
        example='early = "each micro-batch writes totals"',
    ),
    "java": TomlKey(
        texts,
        "Java sources beside the manifest, which are compiled into the first of the jars.",
        example='java = ["MySink.java"]',
    ),
    "options": TomlKey(
        table_of_texts,
        "Options of the job. `--conf` takes precedence.",
        example='options = { "job.parallelism" = "4" }',
    ),
    "understands": TomlKey(
        texts,
        "Which options that begin with `streamgauge.` the job reads, and their values after `=`. Others are refused "
        "before the start.",
        "any",
        example='understands = ["streamgauge.parser=fast|safe", "streamgauge.batch=N"]',
    ),
    "results": TomlKey(
        _results,
        "Where the results are; see below.",
        '`"redis:compact"`',
        "a source of results",
        'results = "kafka:counts"',
    ),
    "window_key": TomlKey(
        OneOf(get_args(WindowKey)),
        "Whether results name a window by its start or by its end. By the end, all windows need the same length.",
        '`"start"`',
        example='window_key = "end"',
    ),
    "key": TomlKey(
        text,
        "The key of a result, as a pattern. Only for `redis:template`, which needs it.",
        takes="a text with names in braces",
        example='key = "counts:{campaign}"',
    ),
    "field": TomlKey(
        text,
        "The field of a result in its hash, as a pattern. Without it each result is a string. Only for "
        "`redis:template`.",
        takes="a text with names in braces",
        example='field = "{window}"',
    ),
    "read": TomlKey(
        _command,
        "The command that prints the results. Only for `command`, which needs it.",
        takes="a list of texts with placeholders",
        example='read = ["{home}/read.sh", "{config}"]',
    ),
    "query": TomlKey(
        text,
        "The query that returns a row for each cell. Only for `sql`, instead of a table.",
        example='query = "SELECT city, opens, sum(n) AS trips FROM parts GROUP BY city, opens"',
    ),
    "columns": TomlKey(
        table_of_texts,
        "The columns of a table that have other names than the question: our name, and the column. Only for tables.",
        example='columns = { campaign = "campaign_id", opens = "window_start", count = "views" }',
    ),
    "sums": TomlKey(
        flag,
        "The value of a cell is the sum of all its rows. Without it a second row is `ambiguous`. Only for tables.",
        example="sums = true",
    ),
    "states": TomlKey(
        _command,
        "The command that reads copies of the job's checkpoints. It gets two more words: the folder of the copies, and "
        "the file to write.",
        takes="a list of texts with placeholders",
        example='states = ["{java}", "-cp", "{classpath}", "ReadState"]',
    ),
}

# Keys of the file beside a shipped job. A query may leave other evidence than the engine's: the job's key wins.
JOB_KEYS: Keys = {
    **CLAIM_KEYS,
    "evidence": ENGINE_KEYS["evidence"],
    "program": TomlKey(text, "The file of the job.", "the id of the engine and `.py`", example='program = "count.py"'),
}

# Keys of a user's manifest, which has one job.
MANIFEST_KEYS: Keys = {
    **ENGINE_KEYS,
    **CLAIM_KEYS,
    "workload": TomlKey(
        identifier,
        "The one workload that the job answers. A run of another one is refused.",
        "any",
        "the id of a workload",
        'workload = "ad_impressions"',
    ),
}
