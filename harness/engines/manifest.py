"""Manifests: how an engine is started, and what its job claims, read from TOML.

A shipped engine has two kinds of files: its manifest describes the engine, and a file per workload, beside the job,
holds the claims of that job. A user's own engine has both in one:

    id = "mine"
    command = ["{python}", "job.py", "{config}"]
    [[sinks]]
    name = "default"
    late = "drop"
    guarantee = "exactly-once"

Users write manifests, so each mistake is answered by a sentence that names the file, the key, the value, what is
allowed and the nearest valid word.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter
from typing import Any, get_args

from harness.engines import fake, template
from harness.install import jvm
from harness.model import (
    AD_IMPRESSIONS,
    CRASH_POINTS,
    EVENT_TIME,
    ConfigFormat,
    EngineManifest,
    Guarantee,
    Late,
    LateEvidence,
    SinkClaim,
    Time,
    UsageError,
    WindowKey,
)
from harness.util import toml_reader
from harness.util.suggest import home, is_file, nearest, short
from harness.util.texts import shown
from harness.util.toml_key import TomlKey, quoted
from harness.util.toml_reader import (
    MistakeError,
    expected,
    flag,
    one_of,
    parsed,
    some_of,
    table_of_texts,
    text,
    text_of,
    texts,
)

Keys = Mapping[str, TomlKey]
HERE = Path(__file__).parent
WORKLOADS = HERE.parent.parent / "workloads"

# The shipped engines. Add one: a folder, and its line here. (The fake one has no files.)
IDS = (
    "reference",
    "spark",
    "spark-rtm",
    "spark-tws",
    "spark-batch",
    "spark-pandas",
    "flink",
    "flink-standalone",
    "flink-java",
    "flink-batch",
    "kafka-streams",
    "quix",
)
SHIPPED = {name: HERE / name / "manifest.toml" for name in IDS}

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
FILE, JOB = "manifest.toml", ".py"
TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")


@dataclass(frozen=True)
class Versions:
    """An engine that is available in other versions than the shipped one."""

    name: str
    example: str
    oldest: tuple[int, int, int]
    why: str  # the reason why older ones do not work


VERSIONS = {
    "spark": Versions("Spark", "4.1.1", (4, 0, 0), "the job creates a table from Arrow and uses try_cast"),
    "flink": Versions("Flink", "2.2.1", (2, 2, 0), "its Kafka connector was built for that version"),
}
IN_VERSIONS = tuple(f"{name}@VERSION" for name in VERSIONS)


def load(engine: str, workload: str = "") -> EngineManifest:
    """Return the manifest of a shipped engine by its id, or of a user's engine by the path of its file, its folder, or
    a job beside it, with its claims for this workload. "" selects a workload that it has a job for, preferably the ads.
    """
    name, at, version = engine.partition("@")
    if at and name in SHIPPED:
        return _in_version(load(name, workload), version)
    if engine == fake.FAKE:
        _refuse_without_job(engine, workload or fake.MANIFEST.workload)
        return fake.MANIFEST
    return _shipped(engine, workload) if engine in SHIPPED else _own(engine, workload)


def in_any_folder(engine: str) -> str:
    """Make a path absolute, for reproducing the run from another folder."""
    path = home(Path(engine))
    is_path = engine and engine.partition("@")[0] not in (*SHIPPED, fake.FAKE) and path.exists()
    return str(path.resolve()) if is_path else engine


def _shipped(engine: str, workload: str) -> EngineManifest:
    workload = workload or workloads_of(engine)[0]
    _refuse_without_job(engine, workload)
    with _named(SHIPPED[engine]):
        values = _of_engine(engine)
    with _named(job_file(engine, workload)):
        values = {**values, "understands": (), **_of_job(engine, workload), "workload": workload}
        manifest = _made(values, SHIPPED[engine], shipped=True)
        _check_command(manifest)
    return manifest


def _own(engine: str, workload: str) -> EngineManifest:
    path = _find(engine)
    with _named(path):
        manifest = read(_toml(path), path, workload)
        if engine.endswith(JOB):
            manifest = _with_job(manifest, home(Path(engine)))
        _check_command(manifest)
    return manifest


def read(table: Mapping[str, Any], path: Path, workload: str = "") -> EngineManifest:
    """Read a user's manifest, which may inherit keys from the shipped engine that it extends."""
    wanted = _id("workload", table.get("workload", workload or AD_IMPRESSIONS))
    inherited = _inherited(table, wanted)
    values = {"workload": wanted, **inherited, **_known(table, MANIFEST_KEYS, has=inherited)}
    manifest = _made({**values, "extends": inherited.get("extends", "")}, path, shipped=False)
    if workload and manifest.workload != workload:
        raise MistakeError(
            f"its job is for the workload {manifest.workload}, but the run uses {workload}. Give the run a "
            f"scenario of {manifest.workload}, or --workload; or leave the key 'workload' out."
        )
    return manifest


def _inherited(table: Mapping[str, Any], workload: str) -> dict[str, Any]:
    base = table.get("extends")
    if not isinstance(base, str) or base not in SHIPPED:
        return {}
    engine = _of_engine(base)
    if not job_file(base, workload).is_file() and not ("command" in table and "sinks" in table):
        _refuse_without_job(base, workload)
    job = _of_job(base, workload) if job_file(base, workload).is_file() else {}
    if "command" in table:  # another job may read other options
        job.pop("understands", None)
        engine.pop("settings", None)
    return {**engine, **job, "extends": engine["extends"] or base}


def _of_engine(engine: str) -> dict[str, Any]:
    """Return a shipped manifest's keys, with those inherited along its `extends` chain."""
    table = _toml(SHIPPED[engine])
    base = table.get("extends")
    inherited = _of_engine(base) if base else {}
    values = {**inherited, **_known(table, ENGINE_KEYS, has=inherited)}
    return {**values, "extends": inherited.get("extends") or base or ""}  # the first of the chain has the job


def _of_job(engine: str, workload: str) -> dict[str, Any]:
    """Return the keys of the files beside the jobs, along the same chain."""
    base = _toml(SHIPPED[engine]).get("extends")
    inherited = _of_job(base, workload) if base else {}
    return {**inherited, **_known(_toml(job_file(engine, workload)), JOB_KEYS, has=inherited)}


def _with_job(manifest: EngineManifest, job: Path) -> EngineManifest:
    """Replace the job in the manifest: several jobs may share a manifest."""
    jobs = [word for word in manifest.command if word.endswith(JOB)]
    if len(jobs) != 1:
        named = ", ".join(jobs) or "none"
        raise MistakeError(
            f"command names {named}, and {job.name} can replace only one {JOB} file. Give the path of the manifest "
            f"itself, or name one job in it."
        )
    path = str(job.resolve())
    own = path.replace("{", "{{").replace("}", "}}")  # escape braces: words have placeholders
    command = tuple(own if word == jobs[0] else word for word in manifest.command)
    return replace(manifest, command=command, path=path)


def _in_version(manifest: EngineManifest, version: str) -> EngineManifest:
    """Switch to another version of the engine. Its first use checks whether that version exists."""
    name = f"{manifest.id}@{version}"
    if manifest.id not in VERSIONS:
        able = " and ".join(VERSIONS)
        raise UsageError(f"{name} is not an engine. Only {able} have other versions, such as spark@4.1.1.")
    of = VERSIONS[manifest.id]
    numbers = VERSION.fullmatch(version)
    if not numbers:
        example = f"{manifest.id}@{of.example}"
        raise UsageError(f"{name} is not an engine. A version of {of.name} has three numbers, such as {example}.")
    if tuple(map(int, numbers.groups())) < of.oldest:
        oldest = ".".join(map(str, of.oldest))
        raise UsageError(
            f"{name} is too old: {of.why}. The oldest supported version is {oldest}. Give that or a newer one."
        )
    return replace(manifest, id=name, extends=manifest.id, packages=name, ivy=name)


def jobs_folder(workload: str) -> Path:
    return WORKLOADS / workload / "jobs"


def job_file(engine: str, workload: str) -> Path:
    """Return the file with a shipped engine's claims for a workload, which may not exist."""
    return jobs_folder(workload) / f"{_stem(engine)}.toml"


def job_path(manifest: EngineManifest) -> Path:
    """Return the value of `{job}`."""
    return jobs_folder(manifest.workload) / (manifest.program or f"{_stem(manifest.job)}{JOB}")


def program_of(manifest: EngineManifest) -> Path:
    """Return the file of its job: the one in its command, or the shipped one."""
    beside = (Path(manifest.home) / word.replace("{home}/", "") for word in manifest.command)
    named = () if any("{job}" in word for word in manifest.command) else beside
    return next((path for path in named if path.is_file()), job_path(manifest))


def _stem(engine: str) -> str:
    """A job is usually a Python module, so dashes become underscores."""
    return engine.replace("-", "_")


def workloads_of(engine: str) -> list[str]:
    """Return the workloads that a shipped engine has a job for."""
    if engine == fake.FAKE:
        return [fake.MANIFEST.workload]
    return [path.parent.parent.name for path in sorted(WORKLOADS.glob(f"*/jobs/{_stem(engine)}.toml"))]


def _refuse_without_job(engine: str, workload: str) -> None:
    if workload in workloads_of(engine):
        return
    able = [name for name in (*IDS, fake.FAKE) if workload in workloads_of(name)]
    told = f"Those that have one: {', '.join(able)}. Choose one of them, or" if able else "No shipped engine has one:"
    raise UsageError(
        f"The engine {engine} has no job for the workload {workload}. {told} give --engine the path of a "
        "manifest whose command names your own job."
    )


def lock_file(packages: str) -> Path:
    """Return the pinned list of packages for a separate environment."""
    folder = jvm.pins_folder(packages) if jvm.is_version(packages) else HERE / packages
    return folder / "requirements.lock"


def _check_command(manifest: EngineManifest) -> None:
    """Check before the start that the program exists, and the job that it names."""
    if any("{job}" in word for word in manifest.command) and not job_path(manifest).is_file():
        jobs = ", ".join(sorted(SHIPPED))
        raise MistakeError(
            f"command uses {{job}}, but there is no shipped job for id = {manifest.job!r} (there are {jobs}). Write "
            f"the path of your own job, such as '{{home}}/job.py'."
        )
    program = manifest.command[0].replace("{home}", manifest.home)
    if "{" in program or shutil.which(program) or (Path(manifest.home) / program).is_file():
        return
    raise MistakeError(
        f"command[0] = {program!r} is not a program: it is neither on PATH nor a file in {manifest.home}."
    )


def _find(engine: str) -> Path:
    path = home(Path(engine))
    if is_file(path) and path.suffix != JOB:
        return path
    if is_file(path / FILE):
        return path / FILE
    if path.suffix == JOB and is_file(path.parent / FILE) and is_file(path):
        return path.parent / FILE
    if "/" in engine or engine.endswith((".toml", JOB)):
        raise UsageError(
            f"The manifest {shown(str(path))} does not exist. An engine is an id ({', '.join(SHIPPED)}) or the path "
            f"of a "
            f"{FILE}, of a folder that holds one, or of a job ({JOB}) beside one."
        )
    raise UsageError(
        f"Unknown engine {short(engine)}: the ids are {', '.join(SHIPPED)}"
        f"{nearest(engine, SHIPPED)}. Name your own engine by the path of its manifest.toml."
    )


def _toml(path: Path) -> dict[str, Any]:
    return parsed(text_of(path))


def _known(table: Any, keys: Keys, where: str = "", *, has: Collection[str] = ()) -> dict[str, Any]:
    """`has` lists keys that are already set."""
    optional = {name for name, key in keys.items() if not key.required or name in has}
    return toml_reader.read(table, {name: key.read for name, key in keys.items()}, where, optional=optional)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the manifest's path to a mistake."""
    try:
        yield
    except MistakeError as mistake:
        raise UsageError(f"The manifest {path}: {mistake}") from mistake


def _made(values: dict[str, Any], path: Path, *, shipped: bool) -> EngineManifest:
    tables = values.pop("sinks")
    sinks = tuple(SinkClaim(**_known(sink, SINK_KEYS, f"sinks[{index}]")) for index, sink in enumerate(tables))
    names = [sink.name for sink in sinks]
    if doubled := {name for name in names if names.count(name) > 1}:
        raise MistakeError(f"the sink name {min(doubled)!r} is used twice. Give each sink a different name.")
    values |= _window_key(values)
    if group := _group_of(values.get("progress")):
        values |= {"progress": True, "progress_group": group}
    manifest = EngineManifest(**values, sinks=sinks, home=str(path.resolve().parent), shipped=shipped)
    if not shipped:
        manifest = replace(manifest, path=str(path.resolve()))
        _check_own(manifest)
        _check_points(manifest)
        _check_group(manifest)
    _check_results(manifest)
    return manifest


def _window_key(values: Mapping[str, Any]) -> dict[str, Any]:
    """A pattern itself may show which moment of a window names its results."""
    named = template.WINDOW_KEYS.get(template.number_of(f"{values.get('key', '')}{values.get('field', '')}"))
    if named is None:
        return {}
    if values.get("window_key", named) != named:
        raise MistakeError(
            f"window_key = {values['window_key']!r}, and the pattern says {named}: leave window_key out."
        )
    return {"window_key": named}


def _check_own(manifest: EngineManifest) -> None:
    """Check that a user's engine can't be taken for a shipped one, and gets its config."""
    taken = {_plain(name): name for name in (*SHIPPED, fake.FAKE)}
    if (name := _plain(manifest.id)) in taken:
        raise expected("id", manifest.id, f"an id of your own ({taken[name]} is a shipped engine)")
    if not any("config" in _placeholders("command", word) for word in manifest.command):
        raise expected(
            "command",
            list(manifest.command),
            "{config}, the path of the engine's config, as one of its words: the config names the topic to read,",
        )


def _check_points(manifest: EngineManifest) -> None:
    """After a kill at a point, the run waits until that batch is done."""
    points = [point for sink in manifest.sinks for point in sink.crash_points]
    if points and not manifest.progress and manifest.evidence == "none":
        raise MistakeError(
            f"crash_points = {points} and progress = false: without progress it is unknown when the killed batch is "
            f"done. Let the job report its progress, or leave crash_points out."
        )


def _check_group(manifest: EngineManifest) -> None:
    """Committed offsets show progress, but no batches and checkpoints."""
    if not manifest.progress_group:
        return
    progress = f"progress = {GROUP + manifest.progress_group!r}"
    if any(sink.crash_points for sink in manifest.sinks) or manifest.states:
        key = "states" if manifest.states else "crash_points"
        raise MistakeError(
            f"{progress} and {key}: committed offsets do not show which batch is done. Let the job write its "
            f"progress, or leave {key} out."
        )
    if manifest.evidence != "none":
        raise MistakeError(
            f"{progress} and evidence = {manifest.evidence!r}: the progress is read from the checkpoint. Leave "
            f"progress out."
        )


def _plain(name: str) -> str:
    """Normalise an id: ids that differ only in these characters could be confused, and share folders and jobs."""
    return re.sub(r"[._-]+", "-", name.lower())


def _check_results(manifest: EngineManifest) -> None:
    """Check that a results source has all keys it needs, and no others."""
    is_template, is_command = manifest.results == "redis:template", manifest.results == "command"
    if is_template and (mistake := template.mistake(manifest.key, manifest.field)):
        raise MistakeError(
            f"key = {manifest.key!r} and field = {manifest.field!r} are not a template of redis:template: {mistake}; "
            f"{template.EXAMPLE}"
        )
    if any(sink.in_order for sink in manifest.sinks) and not manifest.results_topic:
        raise MistakeError(
            f"in_order = true, and results = {manifest.results!r}: only a topic, such as 'kafka:outputs', keeps the "
            f"order of the results."
        )
    for name, value, wanted in (("key", manifest.key, is_template), ("read", manifest.read, is_command)):
        if bool(value) != wanted:
            does = "needs" if wanted else "has no use for"
            raise MistakeError(f"results = {manifest.results!r} {does} the key {name!r}.")


def _id(key: str, value: Any) -> str:
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise expected(key, value, "up to 60 letters, digits, dots, dashes and underscores: folders are named by it")
    return value


def _progress(key: str, value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    if not (group := _group_of(value)):
        raise expected(key, value, f"true, false or '{GROUP}NAME', the consumer group to which the job commits")
    for name in _placeholders(key, group):
        if name not in GROUP_PLACEHOLDERS:
            raise expected(key, value, "no placeholder but {run}, {topic}", nearest(name, GROUP_PLACEHOLDERS))
    return str(value)


def _group_of(progress: Any) -> str:
    """Return the name of the group, or ""."""
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
        for name in _placeholders(key, word):
            if name not in PLACEHOLDERS:
                allowed = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
                raise expected(key, word, f"no placeholder but {allowed}", nearest(name, PLACEHOLDERS))
    return words


def _placeholders(key: str, word: str) -> list[str]:
    try:
        return [name for _, name, _, _ in Formatter().parse(word) if name is not None]
    except ValueError as error:
        raise expected(key, word, f"a brace that is no placeholder written twice ({error}), so it") from error


def _results(key: str, value: Any) -> str:
    if not isinstance(value, str) or not RESULTS.fullmatch(value):
        raise expected(key, value, "a source of results, such as redis:compact or kafka:TOPIC")
    if value.startswith("kafka:") and not TOPIC_NAME.fullmatch(value[6:]):
        raise expected(key, value, "kafka:TOPIC, where TOPIC is a name of letters, digits, '.', '_' and '-', so it")
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
        one_of(*get_args(Late)),
        "Whether the job drops events that come after the watermark, or counts them.",
        takes=quoted(get_args(Late)),
        required=True,
        example='late = "drop"',
    ),
    "guarantee": TomlKey(
        one_of(*get_args(Guarantee)),
        "The guarantee that you claim for its counts. A FAIL report says whether the wrong counts are within it.",
        takes=quoted(get_args(Guarantee)),
        required=True,
        example='guarantee = "exactly-once"',
    ),
    "crash_points": TomlKey(
        some_of(*CRASH_POINTS),
        "The crash points at which the job waits when `crash_path` orders it. The job has to report its progress.",
        "none",
        f"a list of {quoted(CRASH_POINTS, 'and')}",
        'crash_points = ["c3"]',
    ),
    "bookkeeping": TomlKey(
        texts,
        "Patterns of Redis keys that belong to the job and hold no results. Without it such a key is a `phantom`.",
        "none",
        example='bookkeeping = ["fence:*"]',
    ),
    "final": TomlKey(
        flag,
        "A result is written once, when the watermark has passed the end of its window (Spark's append mode).",
        "`false`",
        example="final = true",
    ),
    "in_order": TomlKey(
        flag,
        "Outputs of a key leave in the order of their events' times. Only for results in a topic.",
        "`false`",
        example="in_order = true",
    ),
    "times": TomlKey(
        some_of(*get_args(Time)),
        "The times by which the job can count, for the scenario key `time`.",
        f'`["{EVENT_TIME}"]`',
        f"a list of {quoted(get_args(Time), 'and')}",
        'times = ["event", "processing"]',
    ),
}

# Keys of an engine, for all workloads.
ENGINE_KEYS: Keys = {
    "id": TomlKey(
        _id,
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
        one_of(*get_args(LateEvidence)),
        "Where the run reads which events were dropped as late: in the checkpoint of a Spark query with one stateful "
        "operator. The progress is read there as well.",
        '`"none"`',
        quoted(get_args(LateEvidence)),
        'evidence = "spark-checkpoint"',
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
        flag,
        "Processes of their own do the work, and the job restarts them when they die.",
        "`false`",
        example="executors = true",
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
        "`false`",
        example="archive = true",
    ),
    "waits_for_services": TomlKey(
        flag,
        "The job may start before Kafka and Redis answer. While `bootstrap` in its run config is empty, it reads the "
        "file again and touches neither.",
        "`false`",
        example="waits_for_services = true",
    ),
    "env": TomlKey(
        table_of_texts,
        "Environment variables of the process. They take precedence over those of your shell.",
        "none",
        example='env = { TZ = "UTC" }',
    ),
    "extends": TomlKey(
        one_of(*SHIPPED),
        "A shipped engine whose keys, job and Java sources apply where this manifest gives none.",
        "none",
        quoted(SHIPPED),
        'extends = "spark"',
    ),
    "build": TomlKey(
        _command,
        "The command by which `gate` builds the job in a checkout of a commit, in the folder of the manifest.",
        "none",
        "a list of texts with placeholders",
        'build = ["mvn", "-q", "package"]',
    ),
    "ivy": TomlKey(
        _ivy,
        "A set of jars that comes with this program. The job gets it as `jars` and in `{classpath}`.",
        "none",
        "the id of an engine with jars",
        'ivy = "spark"',
    ),
    "packages": TomlKey(
        _packages,
        "A list of Python packages that comes with this program. `{python}` then has these packages instead of ours.",
        "none",
        "the id of an engine with packages",
        'packages = "quix"',
    ),
    "jars_inside": TomlKey(
        text,
        "A folder of these Python packages with jars. The Java sources are compiled against them, and they belong to "
        "the class path of the class archive.",
        "none",
        example='jars_inside = "pyspark/jars"',
    ),
    "orders": TomlKey(
        one_of(*get_args(ConfigFormat)),
        "The format of the run config. `yahoo` is the YAML file of the original benchmark; Redis is then at port 6379.",
        '`"json"`',
        quoted(get_args(ConfigFormat)),
        'orders = "yahoo"',
    ),
    "group": TomlKey(
        text,
        "A consumer group that is set to the beginning of the topic, for a job that would start at its end.",
        "none",
        example='group = "my-group"',
    ),
    "logs": TomlKey(
        texts,
        "Patterns of log files that the job writes itself, absolute or relative to the manifest. Their new lines are "
        "searched for an exception and copied to `logs/own/` of the run.",
        "none",
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
    "checksum": TomlKey(
        flag, "The job can also sum the ids of the events of each cell.", "`false`", example="checksum = true"
    ),
    "history": TomlKey(
        flag, "The job reads older events from files that its run config names.", "`false`", example="history = true"
    ),
    "early": TomlKey(
        text,
        "In words: why counts of an open window can be seen. The page of `compare` shows it.",
        "none",
        example='early = "each micro-batch writes totals"',
    ),
    "java": TomlKey(
        texts,
        "Java sources beside the manifest, which are compiled into the first of the jars.",
        "none",
        example='java = ["MySink.java"]',
    ),
    "options": TomlKey(
        table_of_texts,
        "Options of the job. `--conf` takes precedence.",
        "none",
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
        one_of(*get_args(WindowKey)),
        "Whether results name a window by its start or by its end. By the end, all windows need the same length.",
        '`"start"`',
        quoted(get_args(WindowKey)),
        'window_key = "end"',
    ),
    "key": TomlKey(
        text,
        "The key of a result, as a pattern. Only for `redis:template`, which needs it.",
        "none",
        "a text with names in braces",
        'key = "counts:{campaign}"',
    ),
    "field": TomlKey(
        text,
        "The field of a result in its hash, as a pattern. Without it each result is a string. Only for "
        "`redis:template`.",
        "none",
        "a text with names in braces",
        'field = "{window}"',
    ),
    "read": TomlKey(
        _command,
        "The command that prints the results. Only for `command`, which needs it.",
        "none",
        "a list of texts with placeholders",
        'read = ["{home}/read.sh", "{config}"]',
    ),
    "states": TomlKey(
        _command,
        "The command that reads copies of the job's checkpoints. It gets two more words: the folder of the copies, and "
        "the file to write.",
        "none",
        "a list of texts with placeholders",
        'states = ["{java}", "-cp", "{classpath}", "ReadState"]',
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
        _id,
        "The one workload that the job answers. A run of another one is refused.",
        "any",
        "the id of a workload",
        'workload = "ad_impressions"',
    ),
}
