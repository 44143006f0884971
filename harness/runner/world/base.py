"""The seam between a run and everything outside of it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from harness.engines.base import Engine
from harness.faults.base import Fault
from harness.faults.moment import Field
from harness.host.cpu_starvation import Machine, Threads
from harness.host.oom_kills import Memory
from harness.model import Certificate, Change, Expiring, FileSeam, HarnessError, LoadStatus, Segment, Sentinel
from harness.results.redis_scan import Row
from harness.results.sampler import Sampled


class ServiceGone(HarnessError):  # noqa: N818  (it is what happened)
    """Kafka or Redis does not do what it is asked. The text says which, what was seen, and where its log lies."""


class Spoiled(NamedTuple):
    """What a server of others did to the results, to the log, and to the pace of the load; "" where nothing says so."""

    results: str = ""
    log: str = ""
    load: str = ""


class World(Protocol):
    """All that a run touches. Whatever asks Kafka or Redis raises ServiceGone when they don't answer."""

    @property
    def engine(self) -> Engine: ...
    @property
    def fault(self) -> Fault: ...
    @property
    def field(self) -> Field | None:
        """What faults may harm; None where there are no services."""

    def now_ms(self) -> int: ...
    def pause(self, seconds: float) -> None: ...
    def open(self) -> None:
        """Services, topic and ad table, a fleet on its way up, and an engine that has started beside them if it can."""

    def await_fleet(self) -> str:
        """Return when all ad servers are up and wait for the epoch: the address of their page, empty without one."""

    def send_marks(self, marks: Sequence[Sentinel]) -> None: ...
    def start_load(self, epoch_ms: int) -> None: ...
    def extend_load(self, segments: Sequence[Segment]) -> None:
        """Append segments; adaptive loads only."""

    def complete_load(self) -> None:
        """It grows no further."""

    def load_status(self) -> LoadStatus: ...
    def certify(self) -> Certificate:
        """Write sends.parquet, and say whether the fleet kept its schedule."""

    def start_accounting(self) -> None:
        """From now on until `stop_accounting` count what each part uses: resources.parquet and state.parquet."""

    def stop_accounting(self) -> None: ...
    def start_observing(self) -> None:
        """From now on look at the results, again and again."""

    def stop_observing(self) -> Sampled | None:
        """After one last look: what was seen. None: nobody looked."""

    def changed(self) -> Change | None:
        """When the results changed last, since the observing began; None: not yet."""

    def shows(self, key: int, field: int) -> bool:
        """Whether a reader has seen anything of this cell; true where nobody looks at it."""

    def threads(self) -> Threads:
        """What each thread of the engine has used of the CPU, and waited for it."""

    def machine(self) -> Machine:
        """How busy the machine is."""

    def free(self) -> Mapping[str, int]:
        """The free bytes below each folder to which a run, its services and its engine write."""

    def memory(self) -> Memory:
        """How much there may be, and how many processes the kernel has killed for it."""

    def move_to_files(self, until_ms: int) -> FileSeam:
        """What was sent so far and lies before that moment becomes the history, of which the engine's orders tell."""

    def count_again(self) -> Engine:
        """The one that counts all once more, as a batch; the results are empty, and it is ready to start."""

    def cpu_s(self, engine: Engine) -> float:
        """What its last start has used of the CPU so far."""

    def end_offsets(self) -> Mapping[int, int]: ...
    def reachable(self) -> bool:
        """Whether results and log can be looked at: a fault in its middle may keep them from everybody."""

    def gone(self) -> str:
        """Which service does not serve us, in the words of ServiceGone; "" while both do."""

    def snapshot(self) -> object:
        """The results as something that can be compared."""

    def results(self) -> list[Row]: ...
    def expiring(self) -> Expiring | None:
        """Which keys of the results have a time to live; None where results have none."""

    def other_databases(self) -> Mapping[int, int]:
        """How many keys there are in those databases of the same Redis in which no results are expected."""

    def read_log(self) -> Generator[Mapping[str, Any]]:
        """The whole topic as columns, in parts of any length and in its order."""

    def close(self) -> None: ...

    def refused(self) -> str:
        """Of an engine that has failed: what a Kafka or a Redis of others refuses it now, or has thrown away since the
        run began; "" where nothing is known of that kind."""

    def spoiled(self) -> Spoiled:
        """What a Kafka or a Redis of others has thrown away since the run began."""

    def stays(self) -> tuple[str, ...]:
        """After `close`: what stays in a Kafka or a Redis of others, and how to remove it."""
