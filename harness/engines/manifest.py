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
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.engines import fake, template
from harness.engines.manifest_keys import (
    ENGINE_KEYS,
    GROUP,
    JOB_KEYS,
    MANIFEST_KEYS,
    SINK_KEYS,
    Keys,
    group_of,
    identifier,
    placeholders,
)
from harness.engines.shipped import FILE, IDS, JOB, SHIPPED, VERSIONS, job_file, job_path, workloads_of
from harness.model import AD_IMPRESSIONS, EngineManifest, SinkClaim, UsageError
from harness.util import toml_reader
from harness.util.suggest import home, is_file, nearest, short
from harness.util.texts import shown
from harness.util.toml_reader import MistakeError, expected, parsed, text_of

VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")


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
    wanted = identifier("workload", table.get("workload", workload or AD_IMPRESSIONS))
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


def program_of(manifest: EngineManifest) -> Path:
    """Return the file of its job: the one in its command, or the shipped one."""
    beside = (Path(manifest.home) / word.replace("{home}/", "") for word in manifest.command)
    named = () if any("{job}" in word for word in manifest.command) else beside
    return next((path for path in named if path.is_file()), job_path(manifest))


def _refuse_without_job(engine: str, workload: str) -> None:
    if workload in workloads_of(engine):
        return
    able = [name for name in (*IDS, fake.FAKE) if workload in workloads_of(name)]
    told = f"Those that have one: {', '.join(able)}. Choose one of them, or" if able else "No shipped engine has one:"
    raise UsageError(
        f"The engine {engine} has no job for the workload {workload}. {told} give --engine the path of a "
        "manifest whose command names your own job."
    )


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
            f"of a {FILE}, of a folder that holds one, or of a job ({JOB}) beside one."
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
    if group := group_of(values.get("progress")):
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
    if not any("config" in placeholders("command", word) for word in manifest.command):
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
    is_table, by_query = manifest.in_table, manifest.results == "sql"
    if any(sink.whole_batches for sink in manifest.sinks) and not is_table:
        raise MistakeError(
            f"whole_batches = true, and results = {manifest.results!r}: only a table, such as 'delta:events', has "
            f"versions, and a reader sees one of them."
        )
    for name, value, may, must in (
        ("key", manifest.key, is_template, is_template),
        ("read", manifest.read, is_command, is_command),
        ("query", manifest.query, by_query, by_query),
        ("columns", manifest.columns, is_table, False),
        ("sums", manifest.sums, is_table, False),
    ):
        if (value and not may) or (must and not value):
            does = "needs" if must else "has no use for"
            raise MistakeError(f"results = {manifest.results!r} {does} the key {name!r}.")
