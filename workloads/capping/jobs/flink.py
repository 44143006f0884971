"""The Flink job of capping: an action for each request of a user, into a Kafka topic.

    python flink.py CONFIG.json

A `KeyedProcessFunction` holds the state of a user: its waiting requests, the ads of this hour, and when the hour and
the cool-down end. One timer of Flink stands for the earliest of these times. A request whose time is not after the
watermark is late: it is dropped, and named in late.jsonl.

Both ends are tables. The sink's transactions are committed when a checkpoint is complete, so an action is in the
topic once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pyflink.common import JobClient, Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from workloads.capping.jobs.capped import Cap, User, read_caps
from workloads.jobs.flink_late import late_table
from workloads.jobs.flink_process import run_embedded
from workloads.jobs.flink_sql import (
    HAS_NUMBER,
    event_time,
    insert_together,
    keyed_source,
    make_stream_environment,
    output_topic,
)
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config, read_config

LATE = 0  # instead of an action
OUTPUT = Types.ROW_NAMED(
    ["user_id", "event", "action", "shown", "source_partition", "source_offset"],
    [Types.STRING(), Types.LONG(), Types.INT(), Types.INT(), Types.INT(), Types.LONG()],
)
USABLE = f"""
SELECT user_id, asked_at, record_key, source_partition, source_offset, happened_at FROM requests
WHERE user_id IS NOT NULL AND asked_at IS NOT NULL AND {HAS_NUMBER}
"""
ACTIONS = f"""
INSERT INTO actions
SELECT user_id, event, ROW(action, shown) FROM outputs WHERE action <> {LATE}
"""
NAMES = f"INSERT INTO late SELECT source_partition, source_offset FROM outputs WHERE action = {LATE}"


class Capping(KeyedProcessFunction):  # type: ignore[misc]  # PyFlink has no types here
    """The state of a user. A user without waiting requests and timers has none."""

    def __init__(self, caps: Mapping[str, Cap]) -> None:
        self._caps = dict(caps)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("user", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        name, at_ms, key, partition, offset, _ = value
        if name not in self._caps:
            return
        if at_ms <= ctx.timer_service().current_watermark():
            yield Row(name, int(key, 16), LATE, 0, partition, offset)
            return
        user = self._known(name)
        user.ask(at_ms, int(key, 16))
        self._keep(user, ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        name = ctx.get_current_key()
        user = self._known(name)
        answers = user.fire(timestamp)
        self._keep(user, ctx)
        for event, action, shown in answers:
            yield Row(name, event, action, shown, 0, 0)

    def _known(self, name: str) -> User:
        return User(self._caps[name], *(self._state.value() or ()))

    def _keep(self, user: User, ctx: KeyedProcessFunction.Context) -> None:
        if user.next_ms is None:
            self._state.clear()
            return
        self._state.update((user.shown, user.hour_ends, user.cools_until, user.waiting))
        ctx.timer_service().register_event_time_timer(user.next_ms)


def start_query(config: Config, settings: dict[str, str]) -> JobClient:
    tables = make_stream_environment(settings)
    actions = output_topic("actions", config, "`output` ROW<`action` INT, shown INT>")
    for statement in (requests(config), actions, late_table(config)):
        tables.execute_sql(statement)
    caps = read_caps(cast(dict[str, str], connect(config).hgetall("rules")))
    usable = tables.to_data_stream(tables.sql_query(USABLE))
    outputs = usable.key_by(user_of, Types.STRING()).process(Capping(caps), OUTPUT)
    tables.create_temporary_view("outputs", outputs)
    return insert_together(tables, ACTIONS, NAMES)


def user_of(request: Any) -> str:
    return cast(str, request[0])


def requests(config: Config) -> str:
    """Return the statement for the table of requests. `user` is a reserved word."""
    columns = f"""
        `user` STRING,
        asked_at BIGINT,
        user_id AS `user`,{event_time("asked_at", config["watermark_ms"])}"""
    return keyed_source("requests", config, columns)


if __name__ == "__main__":
    sys.exit(run_embedded(read_config(sys.argv[1]), start_query, names_late=True))
