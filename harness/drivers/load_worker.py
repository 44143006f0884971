"""A worker of a load on another host, for `streamgauge worker`: it serves one run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generators.worker_files import Own
from harness.load.workers import start_worker, write_settings
from harness.model import HarnessError, KafkaAddress
from harness.services import children, kafka_security, owners
from harness.services.addresses import split
from harness.services.children import Child
from harness.terminal import console
from harness.util.texts import many
from harness.util.wait import wait_until

FOR_EVER_S = 30 * 86_400.0
LOOK_EVERY_S = 0.2
STOP_DEADLINE_S = 10.0


def work(master: str, kafka_config: Path | None) -> int:
    """Join the run at this address and send what it gives us. Return the number of records sent."""
    kafka = kafka_security.external("unused:1", kafka_config) if kafka_config else KafkaAddress("")
    with children.guard(), _own_folder() as folder:
        own = Own(folder)
        write_settings(own, kafka)
        console.say(f"Waiting for a run at {master}.")
        child = start_worker(split(master), folder, folder / "worker.log")
        try:
            return _watched(child, own, master)
        finally:
            child.stop(STOP_DEADLINE_S)  # it tells the run before it ends


def _watched(child: Child, own: Own, master: str) -> int:
    shown, last = 0, dict[str, Any]()

    def look() -> bool:
        nonlocal shown, last
        ended = not child.alive()
        for last in list(own.said())[shown:]:
            shown += 1
            if words := in_words(last, master):
                console.say(words)
        return ended

    wait_until(look, deadline_s=FOR_EVER_S, what="the run to end", every_s=LOOK_EVERY_S)
    if last.get("kind") == "ended":
        return int(last["sent"])
    raise HarnessError(f"{why(last, master)} {child.last_words()}")


def in_words(said: Mapping[str, Any], master: str) -> str:
    """Describe a step of a worker; "" for its end, which is the answer."""
    match said["kind"]:
        case "joined":
            return f"Joined the run at {master}. It starts when all of its workers are there."
        case "prepared":
            return (
                f"Ready to send to topic {said['topic']}. The run's clock is known to {said['error_us'] / 1000:g} ms."
            )
        case "started":
            servers = said["servers"]
            return f"Sending {many(len(servers), 'ad server')}: {', '.join(map(str, servers))}."
        case _:
            return ""


def why(last: Mapping[str, Any], master: str) -> str:
    """Return why a worker ended before its load did. `last` is the last that it said."""
    if not last:
        return (
            f"No run answered at {master}. Start it there with --workers N --bind {master}, and check that this host "
            f"reaches that address."
        )
    if last["kind"] == "failed":
        return f"This worker took no part, or not to the end: {last['why'].rstrip('.')}."
    return f"The run at {master} ended before its load did; its own screen says why."


@contextmanager
def _own_folder() -> Iterator[Path]:
    folder = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-worker-")))
    try:
        yield folder
    finally:
        owners.release_folder(folder)
