"""`streamgauge doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness.cli.common_flags import RUNS, Json, answer
from harness.config.scenario_keys import KEYS
from harness.install import doctor as examiner
from harness.install.doctor import Finding, State
from harness.model import Exit, HarnessError, UsageError, redacted
from harness.services import kafka_security
from harness.services.external import Wants, kafka_says, redis_says
from harness.services.redis import connect, external, find_server
from harness.util.texts import many

Kafka = Annotated[str, typer.Option("--kafka", metavar="HOST:PORT", help=f"Also check {KEYS['kafka'].help}.")]
Config = Annotated[str, typer.Option("--kafka-config", metavar="FILE", help=f"Use this {KEYS['kafka_config'].help}.")]
Redis = Annotated[str, typer.Option("--redis", metavar="URL", help=f"Also check {KEYS['redis'].help}.")]

Prefix = Annotated[str, typer.Option("--redis-prefix", metavar="TEXT", help=f"{KEYS['redis_prefix'].help}.")]


def doctor(
    kafka: Kafka = "", kafka_config: Config = "", redis: Redis = "", redis_prefix: Prefix = "", as_json: Json = False
) -> None:
    """Check this machine and the named servers. List what is missing and how to install it."""
    if kafka_config and not kafka:
        raise UsageError("--kafka-config needs the address of its Kafka: also give --kafka HOST:PORT.")
    if redis_prefix and not redis:
        raise UsageError("--redis-prefix needs the address of its Redis: also give --redis URL.")
    servers = _servers(kafka, kafka_config, redis, redis_prefix)
    findings = [*examiner.examine(RUNS, lambda: Path(find_server().path)), *servers]
    code = Exit.PASS if examiner.all_well(findings) else Exit.BROKEN
    told = {"command": "doctor", "findings": msgspec.to_builtins(findings)}
    answer(as_json, told, "\n".join(map(examiner.as_line, findings)), code)
    raise typer.Exit(code)


def _servers(kafka: str, kafka_config: str, redis: str, prefix: str) -> Iterator[Finding]:
    """Check rights and limits by trials on names of our own."""
    wants = Wants(transactions=True, scripts=True)
    if kafka:
        address = kafka_security.external(kafka, Path(kafka_config) if kafka_config else None)
        yield _finding("Kafka rights", address.bootstrap, lambda: [s.sentence for s in kafka_says(address, wants)])
    if redis:
        server = external(redis, prefix)

        def ask() -> list[str]:
            with connect(server) as client:
                return [each.sentence for each in redis_says(client, redacted(redis), wants)]

        yield _finding("Redis rights", redacted(redis), ask)


def _finding(what: str, server: str, ask: Callable[[], list[str]]) -> Finding:
    try:
        refused = ask()
    except HarnessError as error:
        return Finding(what, State.MISSING, f"{server} does not serve us", str(error))
    if refused:
        return Finding(what, State.WRONG, f"{server} refused {many(len(refused), 'trial')}", " ".join(refused))
    return Finding(what, State.OK, f"{server} let all be done that a run does")
