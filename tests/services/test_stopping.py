"""A run on a terminal: Ctrl-C once and twice, Ctrl-Z and `fg`, and a terminal that is closed in the middle."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.util.wait import wait_until
from tests.services.terminals import Terminal

ROOT = Path(__file__).resolve().parents[2]
FAST = ["run", "--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]
# The fake world is held up in the middle, with a real child, until it is told to go on; and at its end, if asked to.
HELD = """
import signal, sys, time
from pathlib import Path
from harness.drivers import one_run
from harness.services import children
from harness.runner.world.fake import FakeWorld
def until(name):
    while not Path(name).exists(): time.sleep(0.01)
begin, close = FakeWorld.await_ready, FakeWorld.close
def held(world):
    child = children.spawn([sys.executable, "-c", "import time; time.sleep(600)"], name="child", log=Path("child.log"))
    Path("child.part").write_text(str(child.pid)); Path("child.part").rename("child")
    until("go")
    return begin(world)
def closing(world):
    Path("closing").touch()
    until("closed")
    close(world)
one_run.write_page = lambda *_: None
FakeWorld.await_ready, FakeWorld.close = held, closing
"""
NOHUP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"


class Held:
    """A run on a terminal that is in the middle of its load."""

    def __init__(self, folder: Path, before: str = "") -> None:
        self.folder = folder
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{before}{HELD}\nfrom harness.__main__ import main; main()"
        )
        env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm"}
        self.terminal = Terminal([sys.executable, "-E", "-c", code, *FAST], folder, env)
        self.pid = int(self.terminal.wait("pid"))
        self._await("child")
        self.child = psutil.Process(int((folder / "child").read_text()))

    def tell(self, *names: str) -> None:
        for name in names:
            (self.folder / name).touch()

    def await_closing(self) -> None:
        self._await("closing")

    def _await(self, name: str) -> None:
        wait_until(
            (self.folder / name).exists,
            deadline_s=60,
            what=f"the run to be at {name}",
            state=lambda: self.terminal.shown,
        )

    def ended(self) -> int:
        """Its exit code. Whatever it is, nothing that it started is left."""
        code = int(self.terminal.wait("ended"))
        wait_until(lambda: not self.child.is_running(), deadline_s=30, what="the child's end")
        return code

    @property
    def verdict(self) -> str:
        (file,) = self.folder.glob("runs/*/verdict.json")
        return str(json.loads(file.read_text())["outcome"])

    @property
    def why(self) -> str:
        """Why it ended early, by its history."""
        (file,) = self.folder.glob("runs/*/history.jsonl")
        lines: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
        return next((str(line["why"]) for line in lines if line["kind"] == "ended early"), "")


@pytest.fixture
def held(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Held]:
    run = Held(tmp_path, getattr(request, "param", ""))
    yield run
    run.terminal.close()
    for pid in (run.pid, run.child.pid):
        if psutil.pid_exists(pid):
            psutil.Process(pid).kill()


def test_ctrl_c_stops_all_in_order_and_says_how_to_go_faster(held):
    held.terminal.press("C")
    held.await_closing()
    wait_until(lambda: "Ctrl-C once more" in held.terminal.shown, deadline_s=30, what="what one can do meanwhile")
    held.tell("closed")

    assert held.ended() == 130
    assert held.why == "by Ctrl-C"
    assert "Stopped by Ctrl-C. Everything it started has been stopped." in held.terminal.shown
    assert "so there is nothing to judge" in held.terminal.shown
    assert "\x1b[?25l" not in held.terminal.shown, "no cursor was hidden"


def test_a_second_ctrl_c_ends_all_at_once_and_what_comes_after_it_changes_nothing(held):
    held.terminal.press("C")
    held.await_closing()
    for _ in range(20):
        held.terminal.press("C")

    assert held.ended() == 130
    assert held.why == "by Ctrl-C, a second signal"
    assert (
        "Stopped by Ctrl-C, a second signal: not everything ended in order. Everything it started has"
        in held.terminal.shown
    )
    assert "Traceback" not in held.terminal.shown


def test_ctrl_z_stops_the_harness_alone_and_it_goes_on_in_the_foreground(held):
    held.terminal.press("Z")
    held.terminal.wait("stopped")
    shown = held.terminal.shown
    assert shown.rfind("\x1b[?25l") <= shown.rfind("\x1b[?25h"), "a hidden cursor would stay so if it were killed now"
    assert held.child.status() != psutil.STATUS_STOPPED, "what is measured goes on"
    held.tell("go", "closed")
    held.terminal.foreground()

    assert held.ended() == 0
    assert (held.verdict, held.why) == ("PASS", "")


def test_a_closed_terminal_ends_the_run_in_order_and_a_second_sighup_is_no_hurry(held):
    """A shell and the kernel both send one when a terminal is closed."""
    held.terminal.hang_up()
    held.await_closing()
    psutil.Process(held.pid).send_signal(1)
    held.tell("closed")

    assert held.ended() == 129
    assert held.why == "by SIGHUP"


@pytest.mark.parametrize("held", [NOHUP], indirect=True, ids=["nohup"])
def test_a_run_that_ignores_sighup_goes_on_without_its_terminal(held):
    held.terminal.hang_up()
    held.tell("go", "closed")

    assert held.ended() == 0
    assert (held.verdict, held.why) == ("PASS", "")
