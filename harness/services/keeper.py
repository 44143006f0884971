"""`streamgauge up` and `down`: embedded Kafka and Redis that stay until they are stopped.

They belong to a separate process, the keeper, which outlives the command that started it. So ownership works as for a
run: the next sweep removes everything that belongs to a dead keeper.

    python -m harness.services.keeper FOLDER JARS JAVA      the keeper itself; `up` starts it
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.install.origin import ROOT
from harness.model import Exit, HarnessError
from harness.services.children import detach, guard
from harness.services.kafka import EmbeddedKafka
from harness.services.owners import is_alive, locked, owner_mark, start_of, sweep
from harness.services.redis import EmbeddedRedis
from harness.terminal.command_end import state_folder
from harness.util.wait import DeadlinePassed, wait_until

UP_DEADLINE_S = 300.0
DOWN_DEADLINE_S = 30.0


@dataclass(frozen=True)
class Services:
    """The running services, as the keeper recorded them when it was ready."""

    kafka: str  # bootstrap servers
    redis: str  # URL
    folder: str  # the folder of the logs
    owner: str  # the keeper's mark

    @property
    def keeper_pid(self) -> int:
        return int(self.owner.partition(":")[0])


def status() -> Services | None:
    """Return the running services, or None."""
    with suppress(OSError, ValueError, TypeError):
        services = Services(**json.loads(_note().read_text()))
        return services if is_alive(services.owner) else None
    return None


def up(jars: Path, java: str | Path) -> tuple[Services, bool]:
    """Start the services unless they run. Return them, and whether they were started now."""
    with locked("up"):
        if services := status():
            return services, False
        _note().unlink(missing_ok=True)
        folder = _note().parent
        for old in folder.glob("*.log"):
            old.unlink()
        log = folder / "keeper.log"
        argv = [sys.executable, "-m", "harness.services.keeper", str(folder), str(jars), str(java)]
        pid = detach(argv, log=log, cwd=ROOT)
        return wait_until(
            lambda: _ready(pid, log),
            deadline_s=UP_DEADLINE_S,
            what="Kafka and Redis to be up",
            state=lambda: f"keeper {pid} {'runs' if start_of(pid) else 'is gone'}, its log is {log}.",
        ), True


def down() -> bool:
    """Stop the services and wait until all are gone. Return False if none ran."""
    with locked("up"):
        services = status()
        if services is None:
            return False
        os.kill(services.keeper_pid, signal.SIGTERM)
        try:
            wait_until(lambda: not is_alive(services.owner), deadline_s=DOWN_DEADLINE_S, what="the keeper to end")
        except DeadlinePassed:
            os.kill(services.keeper_pid, signal.SIGKILL)
            wait_until(
                lambda: not is_alive(services.owner), deadline_s=DOWN_DEADLINE_S, what="the killed keeper to end"
            )
            sweep()
        return True


def keep(folder: Path, jars: Path, java: str) -> None:
    """Start both, record them, and stay until SIGTERM or until one of them ends by itself."""
    with guard():
        kafka, redis = EmbeddedKafka(folder, jars, java), EmbeddedRedis(folder)
        services = Services(kafka.start().bootstrap, redis.start().url, str(folder), owner_mark())
        draft = _note().with_suffix(".draft")
        draft.write_text(json.dumps(asdict(services)))
        draft.replace(_note())
        try:
            wait_until(
                lambda: [child for child in (kafka.child, redis.child) if not child.alive()],
                deadline_s=math.inf,
                what="the end",
                every_s=0.5,
            )
            raise HarnessError(
                f"Kafka or Redis ended by itself. {kafka.child.last_words()}\n{redis.child.last_words()}"
            )
        finally:
            _note().unlink(missing_ok=True)
            kafka.stop()
            redis.stop()


def attached(jars: Path, java: str | Path, ready: Callable[[str, str], None]) -> None:
    """Start a Kafka and a Redis for the process at the other end of standard input. They end with it, however it ends:
    then the kernel closes what it had open.
    """
    with guard(), tempfile.TemporaryDirectory(prefix="streamgauge-up-") as place:
        folder = Path(place)
        kafka, redis = EmbeddedKafka(folder, jars, str(java)), EmbeddedRedis(folder)
        try:
            ready(kafka.start().bootstrap, redis.start().url)
            while sys.stdin.buffer.read(1):
                pass
        finally:
            kafka.stop()
            redis.stop()


def _ready(pid: int, log: Path) -> Services | None:
    services = status()
    if services is None and not start_of(pid):
        raise HarnessError(f"Kafka and Redis did not come up. {log} says:\n{log.read_text(errors='replace')}")
    return services


def _note() -> Path:
    folder = state_folder() / "up"
    folder.mkdir(exist_ok=True)
    return folder / "up.json"


def main(arguments: list[str]) -> int:
    folder, jars, java = arguments
    try:
        keep(Path(folder), Path(jars), java)
    except HarnessError as error:
        print(error, file=sys.stderr)
        return Exit.BROKEN
    return Exit.PASS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
