"""`streamgauge backlog`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from harness.cli.common_flags import Json, answer
from harness.cli.flags import takes
from harness.cli.scenario_flags import EVENTS, Scenario, usual
from harness.drivers import backlog as drive
from harness.host.disk_space import size_in_words
from harness.util.texts import many

SCENARIO = "catchup"
OWN = {key: value for key, value in usual(SCENARIO).items() if key in ("rate", "backlog", "disorder")}


@takes("rate", "backlog", *EVENTS, "kafka", "kafka_config", "master", "cluster", "conf", usual=OWN)
def backlog(
    scenario: Scenario = SCENARIO,
    *,
    topic: Annotated[
        str, typer.Option(metavar="NAME", help="A topic that does not exist yet.")
    ] = "streamgauge-backlog",
    until: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            help="The load start, in ms since 1970: event times lie before it. The same one makes the same bytes.",
            show_default="now",
        ),
    ] = None,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Let Spark write the backlog of a scenario into a new topic, with the records and the order of a run."""
    asked = drive.resolve(scenario, flags, topic, until, time.time_ns() // 1_000_000)
    drive.refuse(asked)
    filled = drive.fill(asked)
    answer(as_json, _as_object(asked, filled), "\n".join(_lines(asked, filled)))


def _as_object(asked: drive.Asked, filled: drive.Filled) -> dict[str, Any]:
    return {
        "command": "backlog",
        "kafka": asked.kafka.bootstrap,
        "topic": asked.topic,
        "records": filled.total,
        "partitions": list(filled.records.values()),
        "until_ms": asked.epoch_ms,
        "wall_s": round(filled.wall_s, 1),
        "jvm_cpu_s": round(filled.jvm_cpu_s, 1),
        "python_cpu_s": round(filled.python_cpu_s, 1),
        "peak_rss_bytes": filled.peak_rss_bytes,
        "plan": asked.plan.as_text(),
    }


def _lines(asked: drive.Asked, filled: drive.Filled) -> list[str]:
    parts = ", ".join(f"{count:,}" for count in filled.records.values())
    millions = filled.total / 1e6
    return [
        f"{many(filled.total, 'record')} are in topic {asked.topic} of Kafka at {asked.kafka.bootstrap}, each once",
        f"  partitions  {parts}",
        f"  until       {asked.epoch_ms} (--until: the load start, in ms since 1970)",
        f"  Spark       {filled.wall_s:.0f} s with its start, {filled.total / filled.wall_s:,.0f} records/s",
        f"  CPU         {filled.jvm_cpu_s / millions:.1f} s of JVMs and {filled.python_cpu_s / millions:.1f} s of "
        f"Python per million records",
        f"  memory      {size_in_words(filled.peak_rss_bytes)} at most",
    ]
