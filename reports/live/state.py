"""How a run stands, folded from the lines that it writes while it goes on. Pure, and the standard library only.

`RunState.take` takes one entry after the other: lines of live/lines.jsonl and history.jsonl as they are, and the other
files of the run as entries that reports/live/follow.py makes of them. Afterwards the attributes say how the run stands.
The live page gets `whole` once and then a `frame` for each change; metrics and lists read the attributes.

Until there is a verdict nothing here is one: a cell is right *so far*.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Entry = Mapping[str, Any]
Frame = dict[str, Any]

# Kinds of entries that are made of whole files, see reports/live/follow.py.
PLAN, SPEC, VERDICT, LOG, JUDGED, LINKS = "plan.json", "spec.json", "verdict.json", "log", "judged cells", "links"

STANDS = ("open", "right", "too many", "wrong")  # by number, as harness/runner/cells_so_far.py writes them
MEAN_OF_S = 5.0  # an engine with batches processes nothing in most seconds
PROBES_OF_S = 30.0  # the percentiles are those of the probes that appeared lately
KEPT_EVENTS = 50
# Columns of a row, one for each second: events per second, events, and milliseconds.
ROW = ("at_ms", "offered", "processed", "visible", "backlog", "p50_ms", "p99_ms")


@dataclass
class Phase:
    """A phase of the run. `ends_ms` is when it ends by the plan, or at the latest."""

    name: str
    waits_for: str
    began_ms: int
    ended_ms: int | None = None
    ends_ms: int | None = None
    at_most: bool = False


@dataclass
class Counts:
    """The newest totals. None: not known."""

    at_ms: int = 0
    offered: int = 0
    planned: int = 0
    processed: int | None = None
    visible: int | None = None

    @property
    def backlog(self) -> int | None:
        return None if self.processed is None else max(0, self.offered - self.processed)


@dataclass
class Rates:
    """Events per second, as a mean of the last seconds."""

    offered: float | None = None
    processed: float | None = None
    visible: float | None = None


@dataclass
class Part:
    """A part of the run: the cores that it used in the last second, its CPU seconds so far, and its memory."""

    name: str
    cpu_s: float
    rss_bytes: int
    cores: float | None = None


class RunState:
    """One run, as far as its entries tell."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}  # scenario, engine, sink, seed, disorder, fault, ...
        self.plan: dict[str, Any] = {}  # the line "load plan"
        self.epoch_ms: int | None = None
        self.now_ms = 0
        self.phases: list[Phase] = []
        self.counts, self.rates = Counts(), Rates()
        self.probes_seen = 0
        self.p50_ms: float | None = None
        self.p99_ms: float | None = None
        self.rows: list[tuple[int | float | None, ...]] = []  # see ROW
        self.cells: dict[tuple[int, int], int] = {}  # key and field -> number in STANDS
        self.numbers: dict[str, int] = {}  # how many cells stand in each way
        self.faults: list[dict[str, Any]] = []
        self.parts: list[Part] = []
        self.processes: list[dict[str, Any]] = []
        self.logs: dict[str, dict[str, Any]] = {}  # name -> its last lines, and the last exception in it
        self.events: list[dict[str, Any]] = []  # starts, ends and restarts of the engine
        self.verdict: dict[str, Any] | None = None
        self.ended = ""  # why it ended without a verdict
        self.cells_are_judged = False  # by the verdict, and not only so far
        self.links: dict[str, str] = {}  # text -> file beside the page
        self._patience, self._waits_s = 1.0, (0.0, 0.0)  # ready_s and drain_s
        self._load_ms: int | None = None
        self._parts_ms = 0
        self._recent = deque[Counts]()
        self._appeared = deque[tuple[int, float]]()
        self._pending = _Pending()
        self._takes: Mapping[str, Callable[[Entry], None]] = {
            PLAN: self._take_plan,
            SPEC: self._take_spec,
            VERDICT: self._take_verdict,
            LOG: self._take_log,
            JUDGED: self._take_judged,
            LINKS: self._take_links,
            "phase": self._take_phase,
            "load plan": self._take_load_plan,
            "second": self._take_second,
            "cells": self._take_cells,
            "faults": self._take_faults,
            "parts": self._take_parts,
            "epoch": self._take_epoch,
            "fault": self._take_fault_at_end,
            "ended early": self._take_early_end,
            **dict.fromkeys(SAID, self._take_event),
        }

    def take(self, entry: Entry) -> None:
        """Take an entry. One of an unknown kind, or that lacks what its kind has, changes nothing."""
        taken = self._takes.get(str(entry.get("kind")))
        if taken is None:
            return
        try:
            taken(entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        at_ms = entry.get("at_ms")
        if isinstance(at_ms, int) and entry.get("kind") in OF_THE_RUN:
            self.now_ms = max(self.now_ms, at_ms)

    @property
    def phase(self) -> Phase | None:
        """Return the phase that goes on; None before the first one and after the last one."""
        return self.phases[-1] if self.phases and self.phases[-1].ended_ms is None else None

    @property
    def over(self) -> bool:
        return self.verdict is not None or bool(self.ended)

    def frame(self) -> Frame | None:
        """Return what has changed since the frame before; None if nothing has."""
        pending, self._pending = self._pending, _Pending()
        if not (pending.keys or pending.rows or pending.cells or pending.use):
            return None
        found: Frame = {"at_ms": self.now_ms, "set": {key: self._shown(key) for key in sorted(pending.keys)}}
        if pending.rows:
            found["rows"] = pending.rows
        if pending.cells:
            found["cells"] = list(_grouped(pending.cells))
        if pending.use:
            found["use"] = pending.use
        return found

    def whole(self, use: Sequence[Any] = ()) -> Frame:
        """Return all of it, as one frame. `use` are the rows of CPU and memory in the frames so far."""
        found: Frame = {"at_ms": self.now_ms, "set": {key: self._shown(key) for key in SHOWN}, "use": list(use)}
        return found | {"rows": list(self.rows), "cells": list(_grouped(self.cells))}

    def _shown(self, key: str) -> Any:
        return SHOWN[key](self)

    def _change(self, *keys: str) -> None:
        self._pending.keys.update(keys)

    # Whole files.

    def _take_spec(self, entry: Entry) -> None:
        spec, tape = entry["content"], entry["content"]["tape"]
        self._patience = float(spec.get("patience", 1.0))
        self.about |= {
            "scenario": spec["scenario"],
            "engine": spec["engine"],
            "sink": spec["sink"],
            "workload": tape.get("workload", ""),
            "seed": tape["seed"],
            "disorder": spec.get("disorder_name", ""),
            "window_ms": spec.get("window_ms", 0),
        }
        if not self.faults:
            leaves = _leaves(spec["fault"])
            self.faults = [_fault(leaf["text"]) for leaf in leaves]
        self._change("about", "faults")

    def _take_plan(self, entry: Entry) -> None:
        content = entry["content"]
        manifest, warm_up = content["manifest"], content.get("warm_up") or {}
        self._waits_s = float(manifest.get("ready_s", 0)), float(manifest.get("drain_s", 0))
        self._load_ms = content["tape"]["duration_ms"]
        self.about |= {"load_ms": self._load_ms, "warm_up_ms": warm_up.get("duration_ms", 0)}
        self._plan_end()
        self._change("about")

    def _take_verdict(self, entry: Entry) -> None:
        content = entry["content"]
        checks = [
            {key: check[key] for key in ("name", "outcome", "sentence", "word")} for check in content.get("checks", ())
        ]
        self.verdict = {"outcome": content["outcome"], "sentence": content["sentence"], "checks": checks}
        self._end_phase(self.now_ms)
        for fault in self.faults:
            if fault["state"] == PLANNED:
                fault["state"] = DID_NOT
        self._change("verdict", "phases", "faults")

    def _take_log(self, entry: Entry) -> None:
        name = str(entry["name"])
        self.logs[name] = {"name": name, "lines": list(entry["lines"]), "exception": list(entry["exception"])}
        self._change("logs")

    def _take_judged(self, entry: Entry) -> None:
        """Take how cells stand by the verdict: those that are named, and all others right."""
        judged = {(key, field): stand for field, stand, keys in entry["groups"] for key in unranged(keys)}
        for cell in [*self.cells, *judged]:
            self._set(cell, judged.get(cell, STANDS.index("right")))
        self.numbers = dict.fromkeys(STANDS, 0)
        for stand in self.cells.values():
            self.numbers[STANDS[stand]] += 1
        self.cells_are_judged = True
        self._change("numbers", "verdict")

    def _take_links(self, entry: Entry) -> None:
        self.links = dict(entry["links"])
        self._change("links")

    # Lines.

    def _take_phase(self, entry: Entry) -> None:
        self._end_phase(entry["at_ms"])
        self.phases.append(Phase(str(entry["name"]), str(entry["waits_for"]), entry["at_ms"]))
        self._plan_end()
        self._change("phases")

    def _take_load_plan(self, entry: Entry) -> None:
        self.plan = {key: value for key, value in entry.items() if key not in ("kind", "at_ms")}
        self.epoch_ms = entry["epoch_ms"]
        self._plan_end()
        self._change("plan", "phases")

    def _take_epoch(self, entry: Entry) -> None:
        self.epoch_ms = entry["epoch_ms"]
        self._plan_end()
        self._change("plan", "phases")

    def _take_second(self, entry: Entry) -> None:
        at_ms: int = entry["at_ms"]
        now = Counts(at_ms, entry["offered"], entry["planned"], entry["processed"], entry["visible"])
        for each in entry["probes_ms"]:
            self._appeared.append((at_ms, float(each)))
        self.probes_seen += len(entry["probes_ms"])
        while self._appeared and self._appeared[0][0] < at_ms - PROBES_OF_S * 1000:
            self._appeared.popleft()
        lately = sorted(ms for _, ms in self._appeared)
        self.p50_ms, self.p99_ms = percentile(lately, 0.5), percentile(lately, 0.99)
        self.rates = self._rates(now)
        self.counts = now
        if numbers := entry.get("cells"):
            self.numbers = {str(name).replace("_", " "): int(count) for name, count in numbers.items()}
            self._change("numbers")
        rates = (self.rates.offered, self.rates.processed, self.rates.visible)
        row = (at_ms, *(None if each is None else round(each, 1) for each in rates), now.backlog)
        row += (self.p50_ms, self.p99_ms)
        self.rows.append(row)
        self._pending.rows.append(row)
        self._change("now")

    def _rates(self, now: Counts) -> Rates:
        before = self.counts
        while self._recent and self._recent[0].at_ms < now.at_ms - MEAN_OF_S * 1000:
            self._recent.popleft()
        first = self._recent[0] if self._recent else now
        self._recent.append(now)
        return Rates(
            _per_s(now.offered, before.offered, now.at_ms - before.at_ms) if before.at_ms else None,
            _per_s(now.processed, first.processed, now.at_ms - first.at_ms),
            _per_s(now.visible, first.visible, now.at_ms - first.at_ms),
        )

    def _take_cells(self, entry: Entry) -> None:
        for field, stand, keys in entry["groups"]:
            for key in unranged(keys):
                self._set((key, int(field)), int(stand))

    def _set(self, cell: tuple[int, int], stand: int) -> None:
        if self.cells.get(cell) != stand:
            self.cells[cell] = self._pending.cells[cell] = stand

    def _take_faults(self, entry: Entry) -> None:
        self.faults = [_fault(**report) for report in entry["reports"]]
        self._change("faults")

    def _take_fault_at_end(self, entry: Entry) -> None:
        """Take the last report on a fault: one that did not take effect by now never does."""
        report = entry["report"]
        for fault in self.faults:
            if fault["text"] == report["spec"]["text"]:
                told = {key: report[key] for key in ("landed", "healed", "replayed", "landed_ms", "healed_ms", "proof")}
                fault.update(_fault(report["spec"]["text"], **told))
                if fault["state"] == PLANNED:
                    fault.update(state=DID_NOT, proof=report["proof"])
        self._change("faults")

    def _take_parts(self, entry: Entry) -> None:
        before, was_ms = {part.name: part for part in self.parts}, self._parts_ms
        seconds = (entry["at_ms"] - was_ms) / 1000 if was_ms else 0.0
        self.parts = []
        for name, (cpu_s, rss_bytes) in entry["parts"].items():
            old = before.get(name)
            cores = max(0.0, cpu_s - old.cpu_s) / seconds if old and seconds > 0 else None
            self.parts.append(Part(str(name), float(cpu_s), int(rss_bytes), cores))
        self._parts_ms = entry["at_ms"]
        self.processes = [dict(zip(PROCESS, each, strict=True)) for each in entry["processes"]]
        told = {part.name: [round(part.cores or 0.0, 3), part.rss_bytes] for part in self.parts}
        self._pending.use.append([entry["at_ms"], told])
        self._change("parts", "processes")

    def _take_event(self, entry: Entry) -> None:
        self.events = [*self.events, {"at_ms": entry["at_ms"], "text": SAID[entry["kind"]](entry)}][-KEPT_EVENTS:]
        self._change("events")

    def _take_early_end(self, entry: Entry) -> None:
        self.ended = (str(entry.get("why", "")).splitlines() or [""])[0] or "it ended early"
        self._end_phase(self.now_ms)
        self._change("verdict", "phases")

    # Phases and their ends.

    def _end_phase(self, at_ms: int) -> None:
        if self.phases and self.phases[-1].ended_ms is None:
            self.phases[-1].ended_ms = at_ms

    def _plan_end(self) -> None:
        """Find out when the phase that goes on ends: by the plan, or at the latest."""
        phase, (ready_s, drain_s) = self.phase, self._waits_s
        if phase is None:
            return
        if phase.name in LIMITED:
            limit_s = (ready_s if phase.name == "engine" else drain_s) * self._patience
            phase.ends_ms, phase.at_most = (phase.began_ms + round(limit_s * 1000), True) if limit_s else (None, False)
        elif self.epoch_ms and phase.name == "load" and self._load_ms is not None and not self.plan.get("grows"):
            phase.ends_ms = self.epoch_ms + self._load_ms
        elif self.epoch_ms and phase.name == "warm-up":
            phase.ends_ms = self.epoch_ms
        elif self.epoch_ms and phase.name == "wait":
            phase.ends_ms = self.epoch_ms - int(self.about.get("warm_up_ms", 0))


class _Pending:
    """The changes since the last frame."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.rows: list[tuple[int | float | None, ...]] = []
        self.cells: dict[tuple[int, int], int] = {}
        self.use: list[Any] = []


PROCESS = ("pid", "name", "cpu_s", "rss_bytes")
LIMITED = ("engine", "drain")  # phases with a time limit
OF_THE_RUN = ("phase", "load plan", "second", "cells", "faults", "parts")  # their times are by the run's clock
PLANNED, TOOK_EFFECT, UNDONE, DID_NOT = "planned", "took effect", "undone", "did not take effect"
# What the history records of the engine, in words.
SAID: Mapping[str, Callable[[Entry], str]] = {
    "started": lambda entry: f"the engine was started ({entry['times']})",
    "ready": lambda entry: f"the engine answered after {entry['after_ms'] / 1000:.1f} s",
    "restart": lambda entry: f"the engine ended by itself (exit code {entry['exit_code']}) and was started again",
    "gone": lambda entry: f"the engine is {entry['state']}: {entry['detail']}",
    "loaded": lambda entry: (
        "the load ended on schedule" if entry["certificate"]["valid"] else "the load ended, not on schedule"
    ),
    "engine": lambda entry: f"the engine is {entry['report']['state']}: {entry['report']['detail']}",
}
# The parts of a frame that are sent whole when they change.
SHOWN: Mapping[str, Callable[[RunState], Any]] = {
    "about": lambda state: state.about,
    "plan": lambda state: {**state.plan, "epoch_ms": state.epoch_ms},
    "phases": lambda state: [asdict(phase) for phase in state.phases],
    "now": lambda state: {
        **asdict(state.counts),
        "backlog": state.counts.backlog,
        "rates": asdict(state.rates),
        "p50_ms": state.p50_ms,
        "p99_ms": state.p99_ms,
        "probes_seen": state.probes_seen,
    },
    "numbers": lambda state: state.numbers,
    "faults": lambda state: state.faults,
    "parts": lambda state: [asdict(part) for part in state.parts],
    "processes": lambda state: state.processes,
    "logs": lambda state: sorted(
        state.logs.values(), key=lambda log: (not log["name"].startswith("engine"), log["name"])
    ),
    "events": lambda state: state.events,
    "verdict": lambda state: {
        "judged": state.verdict,
        "ended": state.ended,
        "cells": state.cells_are_judged,
    },
    "links": lambda state: state.links,
}


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the percentile by nearest rank, as harness/util/nearest_rank.py does; None of no samples."""
    return ordered[max(1, math.ceil(share * len(ordered) - 1e-9)) - 1] if ordered else None


def unranged(text: str) -> Iterator[int]:
    """Read whole numbers from "0-4,7"."""
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


def _grouped(cells: Mapping[tuple[int, int], int]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the keys of cells by field and standing."""
    found: dict[tuple[int, int], list[int]] = {}
    for (key, field), stand in cells.items():
        found.setdefault((field, stand), []).append(key)
    for (field, stand), keys in sorted(found.items()):
        yield field, stand, keys


def _per_s(now: int | None, before: int | None, took_ms: int) -> float | None:
    return None if now is None or before is None or took_ms <= 0 else max(0.0, (now - before) / took_ms * 1000)


def _leaves(fault: Entry) -> list[Entry]:
    """Return the single faults of a plan that has any."""
    if fault.get("steps"):
        return [leaf for step in fault["steps"] for leaf in _leaves(step)]
    return [] if fault.get("action") == "none" else [fault]


def _fault(
    text: str,
    *,
    landed: bool = False,
    healed: bool = False,
    replayed: bool | None = None,
    reachable: bool = True,
    landed_ms: int = 0,
    healed_ms: int = 0,
    proof: str = "",
) -> dict[str, Any]:
    """Return a fault as the page shows it. One that has not landed has no proof yet, whatever its report says."""
    state = (UNDONE if healed and healed_ms else TOOK_EFFECT) if landed else PLANNED if reachable else DID_NOT
    return {
        "text": text,
        "state": state,
        "replayed": replayed,
        "landed_ms": landed_ms if landed else None,
        "healed_ms": healed_ms if landed and healed_ms else None,
        "proof": proof if landed or not reachable else "",
    }
