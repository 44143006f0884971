"""Whole commands on a terminal of 80 x 24 and in a pipe: what stands on the screen meanwhile and afterwards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import small_terminal
from tests.program.small_terminal import SmallTerminal

ROOT = Path(__file__).resolve().parents[3]
FAST = ["--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]
# Simulated time takes none: the run is held up in two phases, so that they are drawn.
SLOW = """
import time
from harness.drivers import one_run
from harness.runner.world.fake import FakeWorld
begin, certify = FakeWorld.await_ready, FakeWorld.certify
def slowly(do):
    def slow(world):
        time.sleep(0.6)
        return do(world)
    return slow
FakeWorld.await_ready, FakeWorld.certify = slowly(begin), slowly(certify)
one_run.write_page = lambda *_: None
"""


@pytest.fixture
def words():
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{SLOW}\nfrom harness.__main__ import main; main()"
    return [sys.executable, "-E", "-c", code]


@pytest.fixture
def env(tmp_path):
    others = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    return {**others, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "xterm"}


@pytest.fixture
def on_terminal(words, env, tmp_path):
    def run(*arguments):
        return small_terminal.run([*words, *arguments], tmp_path, env)

    return run


@pytest.fixture
def in_pipe(words, env, tmp_path):
    def run(*arguments):
        return subprocess.run(
            [*words, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def phases_in(lines):
    """The names of the phases, which stand behind their times."""
    return {line.split()[2] for line in lines if re.match(r" +[\d.:]+ (s|min)  ", line)}


def test_a_run_stays_in_place_and_its_verdict_is_what_is_left(on_terminal):
    code, output = on_terminal("run", *FAST)

    terminal = SmallTerminal()
    terminal.take(output)
    seen = small_terminal.frames(output)
    assert code == 0
    assert terminal.lines[0].startswith("PASS  "), "nothing of the progress is left"
    assert not terminal.scrolled
    assert any(re.search(r" s  fleet     waits for \d+ ad servers?", line) for lines in seen for line in lines)
    assert any({"seal", "services", "engine", "fleet", "load"} <= phases_in(lines) for lines in seen)
    assert "\x1b[?25l" not in output, "no cursor was hidden"


def test_done_never_exceeds_sent_on_the_screen(on_terminal):
    _, output = on_terminal("run", *FAST)

    shown = "\n".join(line for lines in small_terminal.frames(output) for line in lines)
    counts = re.findall(r"sent ([\d,]+) of [\d,]+ .*\n +done ([\d,]+) ", shown)
    assert counts
    for sent, done in counts:
        assert int(done.replace(",", "")) <= int(sent.replace(",", ""))


def test_an_experiment_stays_in_place_with_the_notes_on_its_runs(on_terminal):
    code, output = on_terminal("run", *FAST, "--repeat", "3")

    terminal = SmallTerminal()
    terminal.take(output)
    seen = small_terminal.frames(output)
    assert code == 0
    left = [*terminal.scrolled, *terminal.lines]
    assert left[0].startswith("PASS  3 rounds of ")
    assert not any("waits for" in line for line in left), "nothing of the progress is left"
    notes = ["round 1 of 3, seed 1", "round 2 of 3, seed 2"]
    assert not {*notes} & {*left}
    assert any(lines[:2] == notes and any("waits for" in line for line in lines) for lines in seen)


def test_a_pipe_gets_plain_lines_and_the_verdict_alone_on_stdout(in_pipe):
    done = in_pipe("run", *FAST)

    assert done.stdout.startswith("PASS  ")
    assert phases_in(done.stderr.splitlines()) >= {
        *("seal", "services", "engine", "fleet", "load", "drain", "read", "judge", "measure")
    }
    assert all("waits for" in line or "sent" in line for line in done.stderr.splitlines())
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("flags", [["--quiet"], ["--json"], ["--json", "--quiet"]], ids=" ".join)
def test_quiet_says_nothing_but_the_verdict_and_json_is_alone_on_stdout(flags, in_pipe, tmp_path):
    done = in_pipe(*flags, "run", *FAST, "--sink", "increment")

    (run,) = (tmp_path / "runs").iterdir()
    assert done.returncode == 1
    assert ("--quiet" in flags) is (done.stderr == "")
    if "--json" in flags:
        assert json.loads(done.stdout)["verdict"] == "FAIL"
    else:
        first, *_, last = done.stdout.splitlines()
        assert first.startswith("FAIL  duplicated: ")
        assert last == f"  runs/{run.name}"
        assert len(done.stdout.splitlines()) <= 6


def test_on_a_terminal_quiet_draws_nothing(on_terminal):
    code, output = on_terminal("run", *FAST, "--quiet")

    terminal = SmallTerminal()
    terminal.take(output)
    assert code == 0
    assert small_terminal.REDRAWN not in output
    assert [line[:6] for line in terminal.lines if line] == ["PASS  ", "  runs"]


def test_the_list_of_scenarios_fits_with_its_prompt(on_terminal):
    code, output = on_terminal("run", "--list")

    lines = output.splitlines()
    assert code == 0
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["group", "scenario", "what"]


def test_the_terminal_of_these_tests_knows_what_a_program_does_to_it():
    terminal = SmallTerminal(columns=5, rows=3)
    terminal.take("one\r\ntwo\x1b[1A\r\x1b[2KTHE\r\n\r\nfour\r\nfive!six")

    assert terminal.scrolled == ["THE", "two"]
    assert terminal.lines == ["four", "five!", "six"]
