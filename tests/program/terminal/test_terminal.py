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
    def run(*arguments, size=(80, 24), **others):
        return small_terminal.run([*words, *arguments], tmp_path, {**env, **others}, size=size)

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


def last_screen(output):
    """What stands there in the end: all behind the last line that was drawn over, without its colours."""
    left = output.rpartition(small_terminal.REDRAWN)[2].replace("\r", "")
    return re.sub(r"\x1b\[[\d;]*m", "", left).splitlines()


@pytest.mark.parametrize(
    ("size", "others"),
    [
        ((0, 0), {}),
        ((80, 24), {"COLUMNS": "0"}),
        ((80, 24), {"COLUMNS": "0", "LINES": "0"}),
        ((80, 24), {"COLUMNS": "x"}),
    ],
    ids=["unknown", "columns 0", "both 0", "no number"],
)
def test_a_terminal_that_does_not_know_its_width_is_taken_for_one_of_80(size, others, on_terminal):
    code, output = on_terminal("run", *FAST, size=size, **others)

    seen = small_terminal.frames(output)
    assert code == 0
    assert any({"seal", "engine", "load"} <= phases_in(lines) for lines in seen), "the progress is drawn"
    left = last_screen(output)
    assert 60 < max(map(len, left)) <= 79


@pytest.mark.parametrize("columns", [40, 1], ids=str)
def test_on_a_narrow_terminal_the_text_stays_beside_its_name(columns, on_terminal):
    code, output = on_terminal("run", *FAST, "--sink", "increment", size=(columns, 24))

    left = [line for line in last_screen(output) if line.strip()]
    assert code == 1
    long = [line for line in left if len(line) > max(columns, 21)]
    assert all(" " not in line.strip() for line in long), "only a word that is longer"
    heads = {"run", "load", "fault", "sink", "speed", "checks", "slack"}
    assert {line.split()[0] for line in left} >= heads
    of_the_load = left.index(next(line for line in left if line.startswith("  load ")))
    assert left[of_the_load + 1].startswith(" " * 11), "it goes on below itself"


def test_columns_change_nothing_in_a_pipe(in_pipe, env):
    env["COLUMNS"] = "40"

    done = in_pipe("run", *FAST)

    assert 60 < max(map(len, done.stdout.splitlines())) <= 79


def test_the_end_of_a_run_rings_and_is_told_in_words_where_a_terminal_shows_them(on_terminal):
    without = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "TMUX": "", "STY": "", "VTE_VERSION": "", "TERM": "foot"}

    _, output = on_terminal("run", *FAST, "--sink", "increment", "--notify", **without)
    _, other = on_terminal("run", *FAST, **without)

    assert re.search(r"\x1b\]777;notify;streamgauge run;FAIL duplicated: [\d,]+ events too many .*\x1b\\\x07$", output)
    assert "\x07" not in other


def test_times_on_the_last_screen_are_those_of_the_reader(in_pipe, env, tmp_path):
    env["TZ"] = "Asia/Kolkata"

    done = in_pipe("run", *FAST, "--sink", "increment")

    (verdict,) = tmp_path.glob("runs/*/verdict.json")
    utc = re.search(r"window (\d\d):(\d\d):\d\d UTC", verdict.read_text())
    assert utc
    hour, minute = int(utc[1]), int(utc[2])
    minutes = (hour * 60 + minute + 330) % 1440
    assert " UTC" not in done.stdout
    assert f"{minutes // 60:02}:{minutes % 60:02}:" in done.stdout
    assert "+05:30" in done.stdout


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
