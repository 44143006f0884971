"""The specification of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from harness.model.address import WITH_SECRETS, redacted
from harness.model.fault import FaultSpec
from harness.model.tape import TapeSpec
from harness.model.times import EVENT_TIME, Time

DEFAULT_SCENARIO = "ad-impressions"
Client = Literal["confluent", "kafka-python"]
# The conditions that a scenario may require (harness/judging/scenario_conditions.py).
Required = Literal[
    "late", "delayed", "outgrown-state", "full-window", "backlog", "burst", "history", "backfill", "states", "readers"
]
RecountedBy = Literal["auto", "here", "spark"]  # who reads the log back
Cut = Literal["offset", "time"]  # how to split files from Kafka, if older events are in files


@dataclass(frozen=True)
class RunSpec:
    """One run with every default resolved. It is saved first, and suffices to repeat the run."""

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
    objective_p99_ms: float | None = None  # None: no speed objective
    trigger: str = "0 seconds"
    master: str = "local[*]"
    checkpoint: str = ""  # "": a folder of the run
    cores: int | float = 0  # that the engine may use, a part by a quota; 0: all of this machine
    conf: Mapping[str, str] = field(default_factory=dict)
    kafka: str = ""  # "": embedded
    kafka_config: str = ""  # path of a properties file; never its content
    redis: str = ""  # "": embedded; a password in it is never saved (see `public`)
    redis_prefix: str = ""  # all keys of the run begin with it
    sql: str = ""  # "": an embedded PostgreSQL, if the engine writes to one; a password in it is never saved
    reset: bool = False
    workers: int = 0  # processes that send the load; 0: one beside the harness
    bind: str = ""  # where workers of other hosts join; "": all of them are on this machine
    recount: RecountedBy = "auto"
    patience: float = 1.0  # factor on all deadlines of the run
    archive: bool = False  # our JVMs start from class archives where they exist
    time: Time = EVENT_TIME
    states: int = 0  # the state is kept, and judged, at this many batches
    seam: Cut = "offset"  # between older events in files and Kafka
    backfill: str = ""  # the engine that counts all events again afterwards, as a batch; "": none
    backfill_kill: bool = False  # the backfill is killed when half is written, and restarted
    requires: tuple[Required, ...] = ()  # the scenario's conditions; the run is vacuous unless they hold
    declared_in: str = ""  # the folder that declared the workload; "": a shipped one

    @property
    def workload(self) -> str:
        return self.tape.workload

    @property
    def title(self) -> str:
        """The name of a run: its scenario, preceded by its workload if a user declared that."""
        if not self.declared_in:
            return self.scenario
        return self.workload if self.scenario == DEFAULT_SCENARIO else f"{self.workload}-{self.scenario}"

    def public(self) -> dict[str, Any]:
        """Return the spec without secrets, to be saved."""
        return {**asdict(self), **{key: redacted(getattr(self, key)) for key in WITH_SECRETS}}
