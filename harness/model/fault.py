"""A planned fault, and the report of what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

CrashPoint = Literal["c1", "c2", "c3", "c4"]
CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)
HALF_WRITTEN: CrashPoint = "c2"


@dataclass(frozen=True)
class When:
    """The moment for which a fault waits. `relative`: it counts from the start of the wait, not from the load start."""

    kind: Literal["now", "point", "batch", "offset", "time"] = "now"
    point: CrashPoint | Literal[""] = ""
    batch: int = 0  # the least batch number; with a point: the first batch from this one on that has something to write
    share: float = 0.0  # of all planned records of the load
    seconds: float = 0.0  # since the load start
    relative: bool = False


@dataclass(frozen=True)
class FaultSpec:
    """One fault as the user wrote it, such as `kill@c3:batch=3`, or a plan of several, such as `kill@t>=5s; ...`."""

    text: str
    action: str = "none"  # "none", or the name of a fault, or of a combinator, which has steps
    when: When = When()
    options: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[FaultSpec, ...] = ()

    @property
    def planned(self) -> bool:
        return self.action != "none"

    @property
    def leaves(self) -> tuple[FaultSpec, ...]:
        """The single faults of the plan, in the order in which they are written."""
        return tuple(leaf for step in self.steps for leaf in step.leaves) if self.steps else (self,)


@dataclass(frozen=True)
class FaultReport:
    """The result of one planned fault. `landed` requires `proof`."""

    spec: FaultSpec
    landed: bool
    healed: bool
    proof: str
    at_ms: int = 0  # when it was done
    batch: int | None = None
    replayed: bool | None = None  # None: not applicable at this point or for this engine
    reachable: bool = True  # False: the engine has no such point; prints n/a, never PASS
    landed_ms: int = 0  # when its effect was observed
    healed_ms: int = 0  # when it was undone, and that was observed
    colour: str = "tab:red"
    refused: str = ""  # how the engine stopped because of the fault, so that it had to be undone
    ignored: str = ""  # the part of a change that had no effect
    # For an engine that was changed: by partition, the first offset that is not in the state with which the new job
    # began, and the first one that the old job can't have written.
    restored: tuple[int, ...] = ()  # (): unknown
    written: tuple[int, ...] = ()
    stateless: bool = False  # the old job left no state that could be copied
