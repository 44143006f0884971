"""Refusals of a load of several workers that can't be sent, or not with the rest of the run."""

from __future__ import annotations

from harness.model import EngineManifest, RunSpec, UsageError
from harness.services.addresses import is_loopback, listens_on_loopback, split
from harness.util.suggest import wrong


def refuse(spec: RunSpec, manifest: EngineManifest) -> None:
    """Workers on other hosts can't reach loopback services, and are not ours to pause."""
    if spec.bind and not spec.workers:
        raise UsageError(f"bind = {spec.bind!r} is where workers join: also say how many, with --workers N.")
    if not spec.workers:
        return
    if manifest.simulated:
        raise UsageError(
            f"workers = {spec.workers}: {manifest.id} is simulated, and so is its load. Choose another engine."
        )
    if spec.workers > spec.tape.senders:
        raise UsageError(
            f"workers = {spec.workers}, but the load has {spec.tape.senders} ad servers, and each is sent by one "
            f"worker. Give at most {spec.tape.senders}, or raise servers in a scenario file."
        )
    if spec.bind:
        _refuse_other_hosts(spec)


def _refuse_other_hosts(spec: RunSpec) -> None:
    try:
        split(spec.bind)
    except ValueError:
        raise UsageError(wrong("bind", spec.bind, "HOST:PORT, an address of this machine,")) from None
    if spec.kafka and not is_loopback(spec.kafka):
        return
    if not listens_on_loopback(spec.bind):
        raise UsageError(
            f"bind = {spec.bind!r} lets workers of other hosts join, but "
            f"{f'--kafka {spec.kafka}' if spec.kafka else 'the embedded Kafka'} can be reached from this machine only. "
            f"Name a Kafka by an address that all of them reach, with --kafka HOST:PORT."
        )
