"""The Flink job: the reads of each section by three policies for late ones, with Flink's own windows, into Redis.

    python flink.py CONFIG.json

`ignore` is a window as it is, `again` one with `allowed_lateness`, and `aside` one with `side_output_late_data`.

Flink keeps its watermark in no checkpoint. After a restart there is none until reads have come, and until then no read
is late: one for a window that was over, and was cleared, begins it anew, and its result is that one read. So a state
behind the windows keeps what each emitted. A window that begins anew does not replace its result; by `aside`, its
reads are added to it, as if they had come by the side output. The sink `windows` leaves that out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pyflink.common import JobClient, Time, Types
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows
from pyflink.table import StreamTableEnvironment

from workloads.jobs.flink_process import run_embedded
from workloads.jobs.flink_sql import configuration_of, connection, event_time_of_windows, source
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import write_fields
from workloads.jobs.run_config import Config, read_config
from workloads.readers_late.jobs.policies import AGAIN, AGAIN_MS, ASIDE, ASIDE_MS, FIRST, LENGTH_MS, READS, emitted

KEPT = "kept"  # the sink that keeps what was emitted
READ = Types.TUPLE([Types.STRING(), Types.LONG()])  # section, time
# Policy, section, start of the window, count, and where it comes from (`emitted`).
FIRED = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()])
RESULT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])  # key, start of the window, count

Fired = tuple[str, str, int, int, str]


class CountReads(ProcessWindowFunction):  # type: ignore[misc]  # PyFlink has no types
    """The count of a window whenever it fires: for the first time, or again for a late read."""

    def __init__(self, policy: str) -> None:
        self._policy = policy

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Fired]:
        fired = context.window_state().get_state(ValueStateDescriptor("fired", Types.BOOLEAN()))
        yield self._policy, key, context.window().start, len(list(elements)), AGAIN if fired.value() else FIRST
        fired.update(True)

    def clear(self, context: Any) -> None:
        context.window_state().get_state(ValueStateDescriptor("fired", Types.BOOLEAN())).clear()


class Results(KeyedProcessFunction):  # type: ignore[misc]
    """The results of a window by a policy: its first one, and all that is known."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps

    def open(self, runtime_context: RuntimeContext) -> None:
        self._counts = runtime_context.get_state(ValueStateDescriptor("counts", Types.TUPLE([Types.LONG()] * 2)))

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str, int, int]]:
        policy, section, opens, count, source = value
        counts = emitted(self._counts.value(), policy, count, source, keeps=self._keeps)
        self._counts.update(counts)
        ctx.timer_service().register_event_time_timer(opens + LENGTH_MS + ASIDE_MS)
        for part, known in zip(("first", "all"), counts, strict=True):
            if (policy, part) != ("ignore", "all"):
                yield f"{READS}:{policy}:{part}:{section}", opens, known

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[str, int, int]]:  # noqa: ARG002
        self._counts.clear()
        return iter(())


class WriteResult(MapFunction):  # type: ignore[misc]
    """Writes a result as it is. After a crash it comes again from the state of the newest checkpoint."""

    def __init__(self, config: Config) -> None:
        self._place = config["redis"], config["redis_prefix"]

    def map(self, value: Any) -> int:
        key, opens, count = value
        pipeline = connection(*self._place).pipeline(transaction=False)
        write_fields(pipeline, key, {str(opens): count}, now_ms())
        pipeline.execute()
        return int(count)


def start_query(config: Config, settings: dict[str, str]) -> JobClient:
    flink = StreamExecutionEnvironment.get_execution_environment(configuration_of(settings))
    counts = counted(reads_of(flink, config)).key_by(lambda each: f"{each[0]}:{each[1]}:{each[2]}", Types.STRING())
    results = counts.process(Results(keeps=config["sink"] == KEPT), RESULT)
    results.map(WriteResult(config), Types.LONG())
    return flink.execute_async(settings["pipeline.name"])


def counted(reads: DataStream) -> DataStream:
    sections = reads.key_by(lambda read: read[0], Types.STRING())

    def windows() -> Any:
        return sections.window(TumblingEventTimeWindows.of(Time.milliseconds(LENGTH_MS)))

    # Its type is its own, since one that was used refers to Java, and can't go to a worker.
    late = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG()]))
    ignoring = windows().process(CountReads("ignore"), FIRED)
    again = windows().allowed_lateness(AGAIN_MS).process(CountReads("again"), FIRED)
    first = windows().side_output_late_data(late).process(CountReads("aside"), FIRED)
    return ignoring.union(again, first, first.get_side_output(late).map(put_aside, FIRED))


def put_aside(read: tuple[str, int]) -> Fired:
    section, read_at = read
    return ASIDE, section, read_at - read_at % LENGTH_MS, 1, ASIDE


def reads_of(flink: StreamExecutionEnvironment, config: Config) -> DataStream:
    """Return section and time of each read. A record that is no event lacks one."""
    tables = StreamTableEnvironment.create(flink)
    columns = f"section STRING, read_at BIGINT, {event_time_of_windows('read_at', config)}"
    tables.execute_sql(source("events", config, columns))
    usable = tables.sql_query(
        "SELECT section, read_at, happened_at FROM events WHERE section IS NOT NULL AND read_at IS NOT NULL"
    )
    return tables.to_data_stream(usable).map(lambda row: (row[0], row[1]), READ)


if __name__ == "__main__":
    sys.exit(run_embedded(read_config(sys.argv[1]), start_query))
