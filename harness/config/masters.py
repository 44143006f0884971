"""Refusals of a Spark master that can't be used, or not with the rest of the run."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import (
    LOCAL_MASTER,
    MOST_WORKERS,
    EngineManifest,
    RunSpec,
    UsageError,
    is_remote_master,
    servers_of_master,
    workers_of_master,
)
from harness.services.addresses import is_loopback
from harness.util.suggest import wrong

LOCAL = "local[*]"  # the usual one
HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"


def refuse(spec: RunSpec, manifest: EngineManifest) -> None:
    """Executors on other machines can't reach loopback services or a folder of this one, and have to reach the driver,
    which listens on no outside address by default.
    """
    workers = workers_of_master(spec.master)
    if not (LOCAL_MASTER.fullmatch(spec.master) or is_remote_master(spec.master) or workers):
        allowed = "local[N], local[*], local-cluster[WORKERS,CORES,MIB], spark://, yarn or k8s://"
        raise UsageError(wrong("master", spec.master, allowed))
    if workers > MOST_WORKERS:
        raise UsageError(wrong("cluster", workers, f"at most {MOST_WORKERS} workers"))
    if workers and not (manifest.on_spark or manifest.on_task_managers):
        raise UsageError(
            f"cluster is one of Spark or of flink-standalone, and {manifest.id} runs on neither. Leave it out."
        )
    if manifest.on_task_managers:
        _refuse_for_flink(spec, manifest, workers)
    if spec.backfill and (workers or is_remote_master(spec.master)):
        raise UsageError(
            f"backfill compares the CPU time of a batch with that of the stream, and executors of {spec.master} are no "
            f"processes of either. Leave one of them out."
        )
    if not is_remote_master(spec.master) or is_here(spec.master):
        return
    missing = [flag for flag, value in _needed(spec, manifest) if not value]
    if missing:
        raise UsageError(
            f"master = {spec.master!r} runs on other machines, which can't reach the services and folders of this "
            f"one: also give {', '.join(missing)} (with the checkpoint on storage that the whole cluster can reach)."
        )
    for flag, value in _needed(spec, manifest):
        if flag != "--checkpoint" and is_loopback(value):
            raise UsageError(
                f"master = {spec.master!r} runs on other machines, but {flag} names a loopback address, which only "
                f"this machine can reach. Name the address by which the whole cluster reaches it."
            )
    refuse_unsaid_driver(spec)


def _refuse_for_flink(spec: RunSpec, manifest: EngineManifest, workers: int) -> None:
    if not workers and spec.master != LOCAL:
        raise UsageError(
            f"master = {spec.master!r} is one of Spark, and {manifest.id} starts its own cluster. Give the number of "
            f"its workers instead: --cluster 2."
        )
    if workers > spec.tape.partitions:
        raise UsageError(
            f"cluster = {workers} needs a topic of {workers} partitions, and this one has {spec.tape.partitions}: "
            f"{manifest.id} has no task without a partition, which would hold back the watermark. Give --partitions "
            f"{workers}."
        )


def is_here(name: str) -> bool:
    """Return whether a remote master is on this machine, with workers beside it."""
    servers = servers_of_master(name)
    return bool(servers) and all(map(is_loopback, servers))


def _needed(spec: RunSpec, manifest: EngineManifest) -> Iterator[tuple[str, str]]:
    yield from (("--kafka", spec.kafka), ("--redis", spec.redis), ("--checkpoint", spec.checkpoint))
    if manifest.source == "sql":
        yield "--sql", spec.sql


def refuse_unsaid_driver(spec: RunSpec) -> None:
    host = spec.conf.get(HOST, "")
    if not host:
        raise UsageError(
            f"master = {spec.master!r} runs on other machines, whose executors connect to the driver on this one. Name "
            f"the address at which they reach it: --conf {HOST}=ADDRESS. The driver listens there, or at {BIND}, and "
            f"nowhere else."
        )
    if is_loopback(f"{host}:0"):
        raise UsageError(
            f"{HOST} = {host} is no address at which executors of {spec.master} reach this machine. Name one of its "
            f"outside addresses; to listen on all of them, also give --conf {BIND}=0.0.0.0."
        )
