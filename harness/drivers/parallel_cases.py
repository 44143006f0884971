"""Cases of a chaos that run at the same time, each in a process of its own: see harness/drivers/chaos_worker.py.

The next case starts as soon as an engine is gone, because judging and drawing a run need no engine or services.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from harness.experiments import chaos
from harness.experiments.chaos import ChaosCase, Ran, Seen
from harness.experiments.folder import Folder
from harness.install.origin import ROOT
from harness.model import UsageError
from harness.services import children, owners
from harness.terminal import console
from harness.terminal.command_end import ONCE_MORE, short_path
from harness.util.texts import many
from harness.util.wait import DeadlinePassed, wait_until

POLL_EVERY_S = 0.1
STOP_DEADLINE_S = 60.0


class Told(msgspec.Struct, frozen=True):
    """The state of a worker's run, as the worker reports it."""

    line: str = ""
    closed: bool = False  # its engine and its services are gone
    ran: Ran | None = None
    refused: str = ""  # why it can't be done, if only the run could detect that


class Worker:
    """One case, and its process."""

    def __init__(self, experiment: Folder, number: int, case: ChaosCase, twin: Path | None, told: Path) -> None:
        self.case, self.beside = case, False
        self._name, self._told = f"case {number + 1}", told
        words = [str(experiment.path), str(number), str(twin or ""), str(told), str(Path.cwd())]
        self._child = children.spawn(
            [sys.executable, "-m", "harness.drivers.chaos_worker", *words],
            name=self._name,
            log=experiment.path / "logs" / f"case-{number + 1}.log",
            cwd=ROOT,
        )

    @property
    def told(self) -> Told:
        with suppress(FileNotFoundError):
            return msgspec.json.decode(self._told.read_bytes(), type=Told)
        return Told("starting")

    @property
    def line(self) -> str:
        return f"{self._name}: {self.told.line.strip()}"

    def alive(self) -> bool:
        return self._child.alive()

    def terminate(self) -> None:
        self._child.terminate()

    def ran(self) -> Ran:
        """Return the result of an ended worker. One that ended without a result counts as a broken harness."""
        told, code = self.told, self._child.returncode()
        self._child.kill_group()
        self._told.unlink(missing_ok=True)  # the same case may be made again
        if told.refused:
            raise UsageError(told.refused)
        why = f"the harness broke: the process of this run ended with {code}, its log is {short_path(self._child.log)}"
        return replace(told.ran or Ran(self.case, Seen.UNKNOWN, why, broken=True), beside=self.beside)


class Beside:
    """The parallel execution of all pending cases. `keep` stores a result, `twin` finds a case's baseline run."""

    def __init__(
        self,
        experiment: Folder,
        wanted: Sequence[ChaosCase],
        done: Sequence[Ran],
        keep: Callable[[Ran], None],
        twin: Callable[[ChaosCase], Path | None],
    ) -> None:
        self._experiment, self._wanted, self._done, self._keep, self._twin = experiment, wanted, done, keep, twin
        self._workers: list[Worker] = []

    def drive(self, jobs: int) -> None:
        with children.guard(), console.progress() as screen, self._in_order():
            folder = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-chaos-")))
            while True:
                self._collect()
                self._begin(jobs, folder)
                if not self._workers:
                    return
                screen.show([worker.line for worker in self._workers])
                time.sleep(POLL_EVERY_S)

    def _collect(self) -> None:
        for worker in [each for each in self._workers if not each.alive()]:
            self._workers.remove(worker)
            self._keep(worker.ran())

    def _begin(self, jobs: int, folder: Path) -> None:
        """Begin cases, with at most one worker more than `jobs`: those that only judge need memory too."""
        while len(self._workers) <= jobs:
            judged = [each.case for each in self._workers if each.told.closed]
            going = [each.case for each in self._workers if each.case not in judged]
            case = chaos.next_of(self._wanted, self._done, going, judged) if len(going) < jobs else None
            if case is None:
                return
            number = self._wanted.index(case)
            console.note(chaos.announced(case, self._wanted))
            self._workers.append(Worker(self._experiment, number, case, self._twin(case), folder / f"{number}.json"))
            for worker in self._workers if len(self._workers) > 1 else ():
                worker.beside = True

    @contextmanager
    def _in_order(self) -> Iterator[None]:
        """If the experiment ends early, stop its runs in an orderly way, all at the same time."""
        try:
            yield
        except BaseException:
            alive = [worker for worker in self._workers if worker.alive()]
            console.say(f"{many(len(alive), 'run')} to stop; {ONCE_MORE}")
            for worker in alive:
                worker.terminate()
            with suppress(DeadlinePassed):  # the rest is killed
                wait_until(
                    lambda: not any(worker.alive() for worker in alive), deadline_s=STOP_DEADLINE_S, what="the runs"
                )
            raise
