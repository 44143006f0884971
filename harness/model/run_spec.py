"""What is asked of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from harness.model.address import redacted
from harness.model.fault import FaultSpec
from harness.model.tape import TapeSpec
from harness.model.times import EVENT_TIME, Time

DEFAULT_SCENARIO = "ad-impressions"
Client = Literal["confluent", "kafka-python"]
# What a scenario may be about (harness/judging/scenario_conditions.py).
Required = Literal["late", "delayed", "outgrown-state", "backlog", "burst", "history", "backfill", "states", "readers"]
Cut = Literal["offset", "time"]  # by what files end and Kafka begins, where older events lie in files


@dataclass(frozen=True)
class RunSpec:
    """One run with every default resolved. Saved first, and enough to do the run again."""

    scenario: str
    engine: str
    sink: str
    tape: TapeSpec
    window_ms: int
    watermark_ms: int
    disorder_name: str
    late_dropped_max: int | None  # None: any number may be dropped, if each is explained
    fault: FaultSpec
    client: Client = "confluent"
    lag_budget_ms: float = 100.0
    objective_p99_ms: float | None = None  # None: no speed was asked for
    trigger: str = "0 seconds"
    master: str = "local[*]"
    checkpoint: str = ""  # "": a folder of the run
    conf: Mapping[str, str] = field(default_factory=dict)
    kafka: str = ""  # "": embedded
    kafka_config: str = ""  # path of a properties file; never its content
    redis: str = ""  # "": embedded; a password in it is never saved (see `public`)
    redis_prefix: str = ""  # all keys of the run begin with it
    reset: bool = False
    web: bool = False
    patience: float = 1.0  # all deadlines of the run are so many times as long
    archive: bool = False  # JVMs of ours start from archives of their classes where there are some
    time: Time = EVENT_TIME
    states: int = 0  # at so many batches its state is kept, and judged too
    seam: Cut = "offset"  # of older events in files
    backfill: str = ""  # the engine that counts all once more afterwards, as a batch; "": none
    backfill_kill: bool = False  # that one is killed when it has written half, and started again
    requires: tuple[Required, ...] = ()  # by the scenario: what has to be so, else the run is vacuous
    declared_in: str = ""  # the folder that declared the workload; "": it is a shipped one

    @property
    def workload(self) -> str:
        """The question that is asked."""
        return self.tape.workload

    @property
    def title(self) -> str:
        """What a run of it is called: by its scenario, and first by its workload where that is somebody's own."""
        if not self.declared_in:
            return self.scenario
        return self.workload if self.scenario == DEFAULT_SCENARIO else f"{self.workload}-{self.scenario}"

    def public(self) -> dict[str, Any]:
        """The spec as saved: nothing secret in it."""
        return {**asdict(self), "redis": redacted(self.redis)}
