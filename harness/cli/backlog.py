"""`streamgauge backlog`."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from harness.cli.common_flags import Json, answer, conclude
from harness.cli.flags import takes
from harness.cli.scenario_flags import EVENTS, Scenario, usual
from harness.drivers import backlog as drive
from harness.host.disk_space import size_in_words
from harness.metering.job_cost import Used
from harness.model import Outcome, UsageError
from harness.util.suggest import short
from harness.util.texts import many

SCENARIO = "catchup"
CHECKS = ("here", "spark")
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
    check: Annotated[
        str,
        typer.Option(
            metavar="here|spark",
            help="Write nothing: compare a topic that exists with the plan, record by record, here or by Spark.",
            show_default=False,
        ),
    ] = "",
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Let Spark write the backlog of a scenario into a new topic, with the records and the order of a run."""
    if check and check not in CHECKS:
        raise UsageError(f"--check is {' or '.join(CHECKS)}, and not {short(check)}.")
    if check and until is None:
        raise UsageError("--check needs the --until with which the topic was written, and its other flags.")
    asked = drive.resolve(scenario, flags, topic, until, time.time_ns() // 1_000_000)
    drive.refuse(asked, checks=bool(check))
    if check:
        checked = drive.check(asked, by_spark=check == "spark")
        outcome = Outcome.FAIL if checked.others else Outcome.PASS
        told = _as_object(asked, checked.total, [*map(asdict, checked.partitions)], checked.used)
        told |= {"verdict": outcome.value, "exit": outcome.exit_code}
        conclude(as_json, told, _checked_lines(asked, checked, outcome), outcome)
    filled = drive.fill(asked)
    told = _as_object(asked, filled.total, [*filled.records.values()], filled.used)
    answer(as_json, told | {"plan": asked.plan.as_text()}, "\n".join(_lines(asked, filled)))


def _as_object(asked: drive.Asked, records: int, partitions: list[Any], used: Used) -> dict[str, Any]:
    return {
        "command": "backlog",
        "kafka": asked.kafka.bootstrap,
        "topic": asked.topic,
        "until_ms": asked.epoch_ms,
        "records": records,
        "partitions": partitions,
        "wall_s": round(used.wall_s, 1),
        "cpu_s": round(used.cpu_s, 1),
        "peak_rss_bytes": used.peak_rss_bytes,
    }


def _lines(asked: drive.Asked, filled: drive.Filled) -> list[str]:
    return [
        f"{many(filled.total, 'record')} are in topic {asked.topic} of Kafka at {asked.kafka.bootstrap}, each once",
        f"  partitions  {', '.join(f'{count:,}' for count in filled.records.values())}",
        f"  until       {asked.epoch_ms} (--until: the load start, in ms since 1970)",
        *_cost_lines(filled.used, filled.total),
    ]


def _checked_lines(asked: drive.Asked, checked: drive.Checked, outcome: Outcome) -> list[str]:
    place = f"topic {asked.topic} of Kafka at {asked.kafka.bootstrap}"
    if not checked.others:
        first = f"{outcome}  {many(checked.total, 'record')} in {place} are those of the plan, in its order"
        return [first, *_cost_lines(checked.used, checked.total)]
    differing = [
        f"  partition {each.partition}: {each.records:,} of {each.planned:,} records, {each.extra:,} that the plan "
        f"does not have, {each.missing:,} missing; the first difference is at offset {each.first:,}"
        for each in checked.others
    ]
    first = (
        f"{outcome}  {many(len(checked.others), 'partition')} of {place} {_differ(len(checked.others))} from the plan"
    )
    return [first, *differing, *_cost_lines(checked.used, checked.total)]


def _differ(count: int) -> str:
    return "differs" if count == 1 else "differ"


def _cost_lines(used: Used, records: int) -> list[str]:
    millions = max(1, records) / 1e6
    return [
        f"  time        {used.wall_s:.0f} s in all, {records / max(used.wall_s, 1e-9):,.0f} records/s",
        f"  CPU         {used.cpu_s:.1f} s, {used.cpu_s / millions:.1f} s per million records",
        f"  memory      {size_in_words(used.peak_rss_bytes)} at most",
    ]
