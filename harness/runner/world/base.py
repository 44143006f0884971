"""The interfaces between a run and everything outside of it: its parts, and the world that opens and closes them.

A class that gets a world takes the parts that it needs from it, and talks to those.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from harness.engines.base import Engine
from harness.faults.base import Fault
from harness.faults.run_at_poll import Field
from harness.host.cpu_starvation import Machine, Threads
from harness.host.oom_kills import Memory
from harness.model import Certificate, Change, Expiring, FileSeam, HarnessError, LoadStatus, Segment, Sentinel
from harness.results.base import HeldFile
from harness.results.redis_scan import Row
from harness.results.sampler import Sampled
from workloads.base import Columns


class ServiceGone(HarnessError):  # noqa: N818  (it reads as an event)
    """Kafka or Redis does not serve requests. The text names it, the symptom, and the place of its log."""


class Spoiled(NamedTuple):
    """Harm by an external server to the results, the log, and the pace of the load; "" without evidence."""

    results: str = ""
    log: str = ""
    load: str = ""


class Clock(Protocol):
    def now_ms(self) -> int: ...
    def pause(self, seconds: float) -> None: ...


class Results(Protocol):
    """The results of the engine, which an observer may poll. Requests raise ServiceGone if their store is gone."""

    def rows(self) -> list[Row]: ...
    def snapshot(self) -> object:
        """Return the results as a comparable value."""

    def expiring(self) -> Expiring | None:
        """Return the result keys with a time to live; None if results have none."""

    def layout(self) -> Sequence[HeldFile]:
        """Return the files of the table with the results, as they were read last; nothing if there is none."""

    def other_databases(self) -> Mapping[int, int]:
        """Return the number of keys in other databases of the same Redis, where no results are expected."""

    def start_observing(self) -> None:
        """Poll the results from now on."""

    def stop_observing(self) -> Sampled | None:
        """Poll once more and return the observations; None if there was no observer."""

    def changed(self) -> Change | None:
        """Return the last change of the results since the observing began, or None."""

    def shows(self, key: int, field: int) -> bool:
        """Return whether a reader has seen anything of this cell; True if no reader observes it."""

    def changes(self, since: int) -> Columns | None:
        """Return the changes that an observer saw from this one on, as columns of samples.parquet; None without one."""


class Fleet(Protocol):
    """The ad servers that send the load."""

    def gather(self) -> None:
        """Wait until all workers on other hosts have joined; only if there are any."""

    def await_ready(self) -> None:
        """Wait until all ad servers are up and wait for the load start."""

    def go(self, epoch_ms: int) -> None:
        """Start the load at this time."""

    def extend(self, segments: Sequence[Segment]) -> None:
        """Append segments; adaptive loads only."""

    def complete(self) -> None:
        """End the growth of the load."""

    def status(self) -> LoadStatus: ...
    def certify(self) -> Certificate:
        """Write sends.parquet, and return whether the fleet kept its schedule."""


class Log(Protocol):
    """The topic of the run. Requests raise ServiceGone if Kafka is gone."""

    def send(self, marks: Sequence[Sentinel]) -> None: ...
    def ends(self) -> Mapping[int, int]: ...
    def read(self) -> Generator[Mapping[str, Any]]:
        """Yield the whole topic as columns, in parts of any length and in its order."""

    def move_to_files(self, until_ms: int) -> FileSeam:
        """Turn events before that moment into the history, and add it to the engine's config."""


class Servers(Protocol):
    """Kafka and Redis."""

    @property
    def field(self) -> Field | None:
        """Return the services that faults may harm; None without services."""

    def reachable(self) -> bool:
        """Return whether results and log can be read: an active fault may make them unreachable."""

    def gone(self) -> str:
        """Return the service that does not serve us, in the words of ServiceGone, or ""."""

    def refused(self) -> str:
        """For a failed engine, return what an external Kafka or Redis refuses it now, or has deleted since the run
        began; "" if there is no evidence."""

    def spoiled(self) -> Spoiled:
        """Return what an external Kafka or Redis has deleted since the run began."""


class Host(Protocol):
    """The machine, and what the engine and the other parts use of it."""

    def threads(self) -> Threads:
        """Return the CPU time that each thread of the engine used, and waited for."""

    def machine(self) -> Machine:
        """Return the load of the machine."""

    def cpu_s(self, engine: Engine) -> float:
        """Return the CPU time of its last start so far."""

    def free(self) -> Mapping[str, int]:
        """Return the free bytes below each folder that a run, its services and its engine write to."""

    def memory(self) -> Memory:
        """Return the granted memory, and the kernel's count of OOM kills."""

    def start_accounting(self) -> None:
        """Meter each part's use until `stop_accounting`: resources.parquet and state.parquet."""

    def stop_accounting(self) -> None: ...


class World(Protocol):
    """Makes the parts of one run, opens and closes them. A run talks to the parts themselves."""

    @property
    def clock(self) -> Clock: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def results(self) -> Results: ...
    @property
    def fleet(self) -> Fleet: ...
    @property
    def log(self) -> Log: ...
    @property
    def fault(self) -> Fault: ...
    @property
    def servers(self) -> Servers: ...
    @property
    def host(self) -> Host: ...

    def open(self) -> None:
        """Open services, topic and ad table; start the fleet, and the engine as well if it can wait for services."""

    def count_again(self) -> Engine:
        """Empty the results; return the batch engine that recounts everything, ready to start."""

    def close(self) -> None: ...

    def stays(self) -> tuple[str, ...]:
        """Return, after `close`, what stays in an external Kafka or Redis, and how to remove it."""
