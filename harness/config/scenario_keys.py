"""Every key of a scenario, which is also a flag of the same name: its reader, its default, its help.

A reader converts a value from TOML or the command line for a RunSpec, or raises MistakeError with the allowed values;
harness/config/plan.py adds the source.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, get_args

from generators.disorder import PRESETS
from generators.profiles import PROFILES
from harness.engines.fake import FAKE
from harness.engines.shipped import IDS, IN_VERSIONS
from harness.model import (
    AD_IMPRESSIONS,
    EVENT_TIME,
    MAX_SERVERS,
    MOST_WORKERS,
    Client,
    Cut,
    RecountedBy,
    Required,
    Time,
)
from harness.util import toml_reader
from harness.util.suggest import nearest
from harness.util.toml_reader import MistakeError, OneOf, WholeNumber, expected, flag
from workloads.shipped import WORKLOADS

CLIENTS: tuple[Client, ...] = get_args(Client)
Group = Literal["load", "disorder", "fault", "engine", "sink", "environment"]
MOST_SEED = 2**63 - 1
MOST_DIGITS, MOST_LETTERS = 30, 4000
MOST_CORES, LEAST_PART = 4096, 0.1
TIME = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*(ms|s|m|h)", re.ASCII)
UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
SHORT = {"millisecond": "ms", "second": "s", "minute": "m", "hour": "h"}
LONGEST_MS = 24 * 3_600_000
MOST_LOAD_WORKERS = 256


@dataclass(frozen=True)
class Reader:
    """Converts a value for a RunSpec, or raises MistakeError."""

    take: toml_reader.Reader
    shape: str = ""  # the placeholder of the value in `--help`
    allowed: str = ""  # the allowed values in `--help`

    def __call__(self, value: Any, key: str = "the value") -> Any:
        return self.take(key, value)


@dataclass(frozen=True)
class Key:
    """One key of a scenario and the flag of the same name, with its default."""

    read: Reader
    default: Any
    help: str
    usual: str = ""  # the default in words, if the value itself is not clear
    _: KW_ONLY
    group: Group  # the part of docs/reference/scenario-keys.md
    example: str  # a whole line of a scenario file
    more: str = ""  # further sentences of that page, in Markdown without links

    def explained(self, usual: str = "") -> str:
        """Return the help text of the flag. `usual` is a command's default if it differs from the key's."""
        allowed = f": {self.read.allowed}" if self.read.allowed else ""
        own = f"{self.default:g}" if isinstance(self.default, float) else str(self.default or "")
        default = usual or self.usual or own
        return f"{self.help[0].upper()}{self.help[1:]}{allowed}" + (f" [default: {default}]" if default else "")


def _text(shape: str, allowed: str = "") -> Reader:
    def read(key: str, value: Any) -> str:
        if not isinstance(value, str) or len(value) > MOST_LETTERS or not value.isprintable():
            raise expected(key, value, f"a text of up to {MOST_LETTERS:,} characters on one line")
        return value

    return Reader(read, shape, allowed)


def _integer(low: int, high: int) -> Reader:
    return Reader(WholeNumber(low, high, as_whole), "N", f"{low:,} to {high:,}")


def _cores(key: str, value: Any) -> int | float:
    """A part has at most two decimals, and no quota of less than a tenth of a core lets an engine start."""
    number = as_number(value)
    if number is not None and 0 <= number <= MOST_CORES:
        if number == int(number):
            return int(number)
        if number >= LEAST_PART and number == round(number, 2):
            return number
    raise expected(key, value, f"a number of cores from 0 to {MOST_CORES:,}, such as 2, 0.5 or 1.5")


def _above_zero(what: str, high: float, shape: str) -> Reader:
    def read(key: str, value: Any) -> float:
        number = as_number(value)
        if number is None or not 0 < number <= high:
            raise expected(key, value, f"{what} above 0 and up to {high:,.0f}")
        return number

    return Reader(read, shape, f"above 0, up to {high:,.0f}")


def _ms(value: Any) -> float | None:
    """A time with its unit in milliseconds; None if it is invalid."""
    match = TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * UNIT_MS[match[2]] if match else None


def _duration_ms(key: str, value: Any) -> int:
    ms = _ms(value)
    if ms is None or not 1 <= ms <= LONGEST_MS:
        raise expected(key, value, "a time with its unit, such as 500ms, 10s or 2m, from 1ms to 24h,")
    return round(ms)


def _lateness_ms(key: str, value: Any) -> int:
    """Also allows no lateness: `0`, with or without a unit."""
    ms = 0.0 if not isinstance(value, bool) and value in (0, "0") else _ms(value)
    if ms is None or (ms and not 1 <= ms <= LONGEST_MS):
        raise expected(key, value, "0, or a time with its unit, such as 500ms, 10s or 2m, from 1ms to 24h,")
    return round(ms)


def _trigger(key: str, value: Any) -> str:
    """A time in Spark's words, which may also be the input: `2 seconds`."""
    words = re.fullmatch(r"(\S+) (millisecond|second|minute|hour)s?", value.strip()) if isinstance(value, str) else None
    try:
        ms = _lateness_ms(key, f"{words[1]}{SHORT[words[2]]}" if words else value)
    except MistakeError:
        raise expected(key, value, "0, or a time such as 500ms, 10s or 2 seconds, from 1ms to 24h,") from None
    return f"{ms} milliseconds" if ms % 1000 else f"{ms // 1000} seconds"


def as_whole(value: Any) -> int | None:
    """Return a whole number exactly as it was written, else None. Digits are not parsed as a float, which can't hold
    2^53 + 1.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= 2**53 else None
    try:
        number = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation:
        return None
    if not number.is_finite() or number.adjusted() > MOST_DIGITS or number != int(number):
        return None
    return int(number)


def as_number(value: Any) -> float | None:
    """Return a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _choice(words: tuple[str, ...]) -> Reader:
    return Reader(OneOf(words), "|".join(words))


def _conf(where: str, value: Any) -> dict[str, str]:
    """A table in a file; `k=v` texts as flags."""
    if isinstance(value, Mapping):
        pairs = [(str(key), each) for key, each in value.items()]
    else:
        texts = value if isinstance(value, list | tuple) else [value]
        pairs = [(key, each) for key, _, each in (text.partition("=") for text in texts if isinstance(text, str))]
        if len({key for key, _ in pairs}) < len(texts):
            raise expected(where, value, "k=v, each key once,")
    said = [(key, _said(each)) for key, each in pairs]
    if any(not key or not text or not f"{key}{text}".isprintable() for key, text in said):
        raise expected(where, value, "k=v with a key and a value")
    return dict(said)


def _said(value: Any) -> str:
    """A value of a setting in the engine's form; "" if it is invalid."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if value.bit_length() < 10 * MOST_DIGITS else ""
    return str(value) if isinstance(value, str | float) else ""


def _limit(key: str, value: Any) -> int | None:
    if value == "any":
        return None
    try:
        return int(_integer(0, 2**53)(value))
    except MistakeError:
        raise expected(key, value, f'a whole number from 0 to {2**53:,}, or "any",') from None


def _some(words: Collection[str]) -> Reader:
    def read(key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each in words for each in value):
            raise expected(key, value, f"a list of some of {', '.join(words)}")
        return tuple(value)

    return Reader(read, "NAME", ", ".join(words))


def _profile(key: str, value: Any) -> Any:
    kind = value.get("kind") if isinstance(value, Mapping) else value
    if not isinstance(kind, str) or kind not in PROFILES:
        near = nearest(kind, PROFILES) if isinstance(kind, str) else ""
        raise expected(key, value, f"one of {', '.join(PROFILES)}, or a table with that as its `kind`", near)
    return value


def _disorder(key: str, value: Any) -> Any:
    if not isinstance(value, str | Mapping):
        raise expected(key, value, f"a preset ({', '.join(PRESETS)}) or a table of dials")
    return value


TIMES = "a number with ms, s, m or h, up to 24h"
FIRST_SINK = "the engine's first"

KEYS: dict[str, Key] = {
    "engine": Key(
        _text("ENGINE", f"{', '.join((*IDS, FAKE, *IN_VERSIONS))}, or the path of a manifest.toml"),
        "spark",
        "the system under test",
        group="engine",
        example='engine = "path/to/manifest.toml"',
        more="A path names your own job: its manifest, the folder of the manifest, or a job beside it.",
    ),
    "workload": Key(
        _text("ID", f"{', '.join(WORKLOADS)}, or the folder of a workload.toml"),
        AD_IMPRESSIONS,
        "the query to run",
        group="load",
        example='workload = "page_visits"',
        more="It decides which events are sent and what the right answer is. The engine needs a job for it.",
    ),
    "sink": Key(
        _text("NAME", "`streamgauge engines` lists them"),
        "",
        "the engine's sink",
        FIRST_SINK,
        group="sink",
        example='sink = "increment"',
        more="`spark` has `absolute`, `fenced`, `increment` and `increment-retrying`.",
    ),
    "rate": Key(
        _above_zero("a number of events per second", 10_000_000, "EVENTS/S"),
        10_000.0,
        "events sent per second",
        group="load",
        example="rate = 50_000",
        more="The shape of the load (`profile`) is relative to it. Probes are sent in addition.",
    ),
    "duration": Key(
        Reader(_duration_ms, "TIME", TIMES), "30s", "length of the load", group="load", example='duration = "90s"'
    ),
    "warm_up": Key(
        Reader(_lateness_ms, "TIME", f"{TIMES}, or 0 for none"),
        "0s",
        "load before the measured load; it is judged but not measured",
        group="load",
        example='warm_up = "60s"',
        more="It has the same rate and disorder. Not together with `backlog` or `history`.",
    ),
    "backlog": Key(
        Reader(_lateness_ms, "TIME", f"{TIMES}, or 0 for none"),
        "0s",
        "load that is already in Kafka when the engine starts, unevenly spread over the partitions",
        group="load",
        example='backlog = "2m"',
    ),
    "history": Key(
        Reader(_lateness_ms, "TIME", f"{TIMES}, or 0 for none"),
        "0s",
        "older events, which are in JSON files and no longer in Kafka",
        group="load",
        example='history = "1m"',
        more="The last quarter of them is in the files and in Kafka. The job needs `history = true` in its manifest.",
    ),
    "seam": Key(
        _choice(get_args(Cut)),
        "offset",
        "where files end and Kafka begins: at an offset or at an event time",
        group="load",
        example='seam = "time"',
        more="Only with `history`.",
    ),
    "backfill": Key(
        _text("ENGINE", "an engine that keeps late events, such as spark-batch or flink-batch"),
        "",
        "count all events again afterwards, in a batch job",
        "none",
        group="engine",
        example='backfill = "spark-batch"',
    ),
    "backfill_kill": Key(
        Reader(flag),
        False,
        "kill the batch job when it has written half, and start it again",
        group="fault",
        example="backfill_kill = true",
        more="Only with `backfill`.",
    ),
    "profile": Key(
        Reader(_profile, "KIND", ", ".join(PROFILES)),
        "steady",
        "shape of the rate over time",
        group="load",
        example='profile = { kind = "burst", factor = 10, burst_ms = 10_000 }',
        more="A table sets the numbers of a profile; see below.",
    ),
    "seed": Key(
        _integer(0, MOST_SEED),
        1,
        "seed of all randomness",
        group="load",
        example="seed = 42",
        more="Equal seeds and keys give equal events, delays and fault plans on every machine.",
    ),
    "servers": Key(
        _integer(1, MAX_SERVERS),
        10,
        "number of event senders",
        group="load",
        example="servers = 20",
        more="A silence or a wrong clock of the disorder is that of single senders.",
    ),
    "campaigns": Key(
        _integer(1, 100_000),
        100,
        "number of campaigns, each with 10 ads",
        group="load",
        example="campaigns = 1000",
        more="Only for the workload `ad_impressions`.",
    ),
    "probes": Key(
        _integer(0, 100_000),
        300,
        "number of extra campaigns with one view per window, to measure latency",
        group="load",
        example="probes = 0",
        more="`0` sends none. Only for the workload `ad_impressions`.",
    ),
    "partitions": Key(
        _integer(1, 1000), 4, "number of partitions of the topic", group="load", example="partitions = 8"
    ),
    "window": Key(
        Reader(_duration_ms, "TIME", TIMES),
        "10s",
        "length of a tumbling window",
        group="load",
        example='window = "1m"',
        more="Only for the workload `ad_impressions`. The job gets it as `window_ms`.",
    ),
    "watermark": Key(
        Reader(_lateness_ms, "TIME", f"{TIMES}, or 0 for none"),
        "10s",
        "allowed lateness of an event",
        group="load",
        example='watermark = "20s"',
        more="The job gets it as `watermark_ms`.",
    ),
    "time": Key(
        _choice(get_args(Time)),
        EVENT_TIME,
        "the time that assigns an event to a window",
        "event",
        group="load",
        example='time = "processing"',
        more="The event's own time, the time of sending (`ingestion`), Kafka's time (`append`) or the engine's clock "
        "(`processing`). The sink has to list it under `times`.",
    ),
    "disorder": Key(
        Reader(_disorder, "PRESET", f"{', '.join(PRESETS)}; append settings as ,dial=value"),
        "mobile",
        "disorder of the event times",
        group="disorder",
        example='disorder = "mobile,duplicate_share=0.01,duplicate_gap=50"',
        more="A table of dials is allowed as well, with `preset` for the preset. Presets and dials: see below.",
    ),
    "late_dropped_max": Key(
        Reader(_limit, "N", "a number of events, or any"),
        None,
        "number of events that may be dropped as late",
        "any for yahoo, late and storm; 0 for other disorder",
        group="disorder",
        example="late_dropped_max = 100",
        more="Each dropped event has to be explained in any case.",
    ),
    "fault": Key(
        _text("PLAN", "such as kill@c3:batch=3, or none; `streamgauge chaos --list` shows all"),
        "",
        "a fault or a plan of faults",
        "a kill at the engine's most critical point",
        group="fault",
        example='fault = "kill@t>=8s; redis-flush@batch>=+2"',
        more="That point is `kill@c3:batch=3` if the sink has this crash point, else `kill@offset=50%`; without "
        "progress in lines it is the middle of the load, and `none` for an engine that can't resume.",
    ),
    "states": Key(
        _integer(0, 100),
        0,
        "number of random batches of a Spark job whose state is stored and judged",
        "none",
        group="engine",
        example="states = 10",
        more="For `flink-java`: of its checkpoints.",
    ),
    "client": Key(
        _choice(CLIENTS),
        "confluent",
        "Kafka client of the generator",
        group="environment",
        example='client = "kafka-python"',
        more="Both send the same bytes.",
    ),
    "requires": Key(
        _some(get_args(Required)),
        [],
        "preconditions of the scenario; if one is missing, the run is UNKNOWN",
        group="load",
        example='requires = ["late"]',
        more="Where the plan rules one out, the run is refused with exit code 2; see below.",
    ),
    "lag_budget_ms": Key(
        _above_zero("a number of ms", 3_600_000, "MS"),
        100.0,
        "fail the load check if p99.9 of sending lag is above this",
        group="environment",
        example="lag_budget_ms = 500",
        more="A failed load check withholds all figures of speed. It changes no verdict on counts.",
    ),
    "objective_p99_ms": Key(
        _above_zero("a number of ms", 86_400_000, "MS"),
        None,
        "fail the run if p99 latency is above this",
        "none",
        group="engine",
        example="objective_p99_ms = 10_000",
        more="The run is UNKNOWN `no speed` if latency can't be measured.",
    ),
    "trigger": Key(
        Reader(_trigger, "TIME", f"{TIMES}, or 0 for none"),
        "0 seconds",
        "trigger interval of the engine",
        group="engine",
        example='trigger = "500ms"',
        more="For `spark-rtm` it is the time between commits, 5 s or more.",
    ),
    "master": Key(
        _text("MASTER", "local[N], local-cluster[...], spark://, yarn or k8s://"),
        "local[*]",
        "Spark master",
        group="engine",
        example='master = "local[2]"',
        more="A remote master needs `kafka`, `redis` and `checkpoint` as well.",
    ),
    "cluster": Key(
        _integer(1, MOST_WORKERS),
        None,
        "start a Spark master and so many workers for this run, each with a core and an executor",
        "none",
        group="engine",
        example="cluster = 2",
        more="Instead of `master`. They listen on this machine only; an embedded Kafka gets three brokers. With "
        "`flink-standalone` it is a JobManager, and so many TaskManagers with a slot each.",
    ),
    "checkpoint": Key(
        _text("FOLDER"),
        "",
        "folder of the engine's checkpoint",
        "a folder of the run",
        group="engine",
        example='checkpoint = "/mnt/shared/checkpoint"',
    ),
    "cores": Key(
        Reader(_cores, "N", f"0 to {MOST_CORES:,}; a part such as 0.5 or 1.5 is a quota"),
        0,
        "number of cores that the engine may use",
        "all",
        group="engine",
        example="cores = 1",
        more="The engine is pinned to the last cores of this machine (Linux). Kafka, Redis and the load are not. A "
        "part of a core takes a control group that this program may make. `streamgauge scale` compares several "
        "numbers.",
    ),
    "conf": Key(
        Reader(_conf, "K=V", "may be repeated"),
        {},
        "setting for the engine",
        group="engine",
        example='conf = { "spark.sql.shuffle.partitions" = 4 }',
        more="A flag sets one of them and keeps the scenario's others.",
    ),
    "kafka": Key(
        _text("HOST:PORT"),
        "",
        "bootstrap servers of an existing Kafka",
        "an embedded one",
        group="environment",
        example='kafka = "broker:9093"',
    ),
    "kafka_config": Key(
        _text("FILE"),
        "",
        "properties file with the security settings of --kafka",
        "none",
        group="environment",
        example='kafka_config = "client.properties"',
        more="As Java or librdkafka names them. A value may be `${env:NAME}`.",
    ),
    "redis": Key(
        _text("URL", "redis:// or rediss://"),
        "",
        "an existing Redis",
        "an embedded one",
        group="environment",
        example='redis = "redis://host:6379/4"',
        more="`${env:NAME}` in it is replaced, such as for a password.",
    ),
    "redis_prefix": Key(
        _text("TEXT"),
        "",
        "prefix of all keys of the run in --redis",
        "none",
        group="environment",
        example='redis_prefix = "bench:"',
        more="For a database that others use too.",
    ),
    "sql": Key(
        _text("URL", "postgresql://"),
        "",
        "an existing PostgreSQL, for engines that write to one",
        "an embedded one",
        group="environment",
        example='sql = "postgresql://bench:${env:PASSWORD}@host/shop"',
        more="The run makes a schema of its own and drops it. `${env:NAME}` is replaced, such as for a password.",
    ),
    "reset": Key(
        Reader(flag),
        False,
        "empty the database of --redis first, if streamgauge used it before",
        group="environment",
        example="reset = true",
    ),
    "repeat": Key(
        _integer(1, 1000),
        1,
        "number of runs, each with the next seed",
        group="environment",
        example="repeat = 5",
        more="They share one folder. The result has medians with bootstrap intervals.",
    ),
    "patience": Key(
        _above_zero("a factor", 100, "FACTOR"),
        1.0,
        "multiply all deadlines by this on a slow machine",
        group="environment",
        example="patience = 3",
    ),
    "checksum": Key(
        Reader(flag),
        False,
        "also sum event ids, to find a loss that a duplicate hides; speed is not measured",
        group="sink",
        example="checksum = true",
        more="Only for the workload `ad_impressions`. The job needs `checksum = true` in its manifest.",
    ),
    "archive": Key(
        Reader(flag),
        True,
        "start Java faster from class archives, which the first run writes",
        "on",
        group="engine",
        example="archive = false",
        more="As a flag: `--no-archive`.",
    ),
    "recount": Key(
        _choice(get_args(RecountedBy)),
        "auto",
        "who reads the log back after the load: this machine, or Spark with a task for each partition",
        group="environment",
        example='recount = "spark"',
        more="`auto` is Spark if the plan has more than 50 million records and `master` or `cluster` names a cluster.",
    ),
    "workers": Key(
        _integer(1, MOST_LOAD_WORKERS),
        None,
        "number of processes that send the load",
        "one",
        group="environment",
        example="workers = 2",
        more="They run on this machine, or on other hosts with `bind`.",
    ),
    "bind": Key(
        _text("HOST:PORT"),
        "",
        "let the workers of --workers join here, from hosts where `streamgauge worker` is started",
        "they run on this machine",
        group="environment",
        example='bind = "10.0.0.5:5557"',
        more="An address of this machine. Locust's channel there is neither authenticated nor encrypted.",
    ),
}
# Keys and flags of older versions, each with what to use now.
REMOVED = {
    "web": "Locust's page is gone, because one click on it could stop a run. Use --live, which shows the whole run."
}
