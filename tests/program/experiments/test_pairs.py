"""`compare --pairs`, with starts that are made up: what is kept, how it goes on, its page, and what it refuses."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from harness.drivers import pairs
from harness.experiments.folder import Folder
from harness.experiments.gating import gate
from harness.experiments.gating.rounds import encoded
from harness.experiments.pairing import Pair
from harness.install import environment
from harness.model import Exit, HarnessError, Outcome, UsageError
from reports import paired, pairs_page
from tests.program.calls import invoked, only
from tests.quick.cases import SPEC
from tests.quick.experiments.test_pairing import RIGHT, rounds

COSTS = {"quix": 1.0, "flink": 2.0, "spark": 6.0}
WRONG = "wrong-engine"


class MadeUp:
    """Stands for the real sides: six rounds in no time."""

    breaks_at = 0  # a start, of all that were made
    made = 0

    def __init__(self, place, path, _kafka, _flags, _placed, *, start):
        self.path, self.start, self.names, self.engines = path, start, [], {}
        self.oddities, self.round_stretches = set(), 4
        MadeUp.made += 1

    def add(self, name, engine, _sink, _settings):
        self.names.append(name)
        self.engines[name] = engine

    @contextmanager
    def up(self, _settings):
        if MadeUp.made == MadeUp.breaks_at:
            raise MemoryError
        yield

    def rounds(self, _most):
        first, second = self.names
        times = COSTS.get(self.engines[first], 1.0) / COSTS.get(self.engines[second], 1.0)
        made = rounds(times, starts=self.start, pair=Pair(first, second))
        own = [each for each in made if each.start == self.start]
        self.path.write_bytes(encoded(own))
        if "breaking" in self.engines.values():
            raise HarnessError("The engine ended in the middle of a burst")
        yield own

    def judged(self):
        wrong = replace(RIGHT, outcome=Outcome.FAIL, sentence="lost: 3 events", run="runs/w")
        return {name: wrong if self.engines[name] == WRONG else RIGHT for name in self.names}


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", lambda: {"streamgauge": "0"})
    monkeypatch.setattr(pairs, "Sides", MadeUp)
    monkeypatch.setattr(pairs, "broker", lambda _: nullcontext())
    monkeypatch.setattr(pairs, "planned", lambda *_: (SPEC, None))
    monkeypatch.setattr(pairs, "write_archives", lambda *_: None)
    monkeypatch.setattr(gate, "planned", lambda *_: 4)
    monkeypatch.setattr(MadeUp, "made", 0)
    monkeypatch.setattr(MadeUp, "breaks_at", 0)
    return lambda *arguments: invoked("compare", *arguments)


def test_three_engines_are_measured_in_pairs_and_agree(call, tmp_path):
    done = call("spark", "flink", "quix", "--pairs", "all", "--json")
    answer = json.loads(done.stdout)

    assert done.exit_code == answer["exit"] == Exit.PASS
    found = {(each["pair"]["first"], each["pair"]["second"]): each["ratio"]["estimate"] for each in answer["pairs"]}
    assert found == pytest.approx({("spark", "flink"): 3.0, ("spark", "quix"): 6.0, ("flink", "quix"): 2.0}, rel=0.03)
    assert [each["agrees"] for each in answer["triangles"]] == [True]
    assert (only(tmp_path / "experiments") / "report.html").exists()


def test_each_and_the_first(call):
    answer = json.loads(call("spark", "flink", "quix", "--pairs", "first", "--json").stdout)

    assert [each["pair"]["second"] for each in answer["pairs"]] == ["flink", "quix"]


def test_it_fits_a_terminal(call):
    lines = call("spark", "flink", "quix", "--pairs", "all").stdout.splitlines()
    table = [line for line in lines if line.startswith(("engine", "spark ", "flink "))]

    assert len(table) == 4
    assert max(map(len, table)) <= 80


def test_what_was_interrupted_goes_on_where_it_was(call, tmp_path):
    MadeUp.breaks_at = 7  # the third start of the second pair
    with pytest.raises(MemoryError):
        call("spark", "flink", "quix", "--pairs", "all")
    MadeUp.breaks_at = 0
    path = only(tmp_path / "experiments")
    before = paired.read(Folder(path)).found
    again = call("--resume", str(path), "--json")

    assert [len(before.pairs), len(before.missing)] == [1, 2]
    assert before.outcome is Outcome.UNKNOWN
    answer = json.loads(again.stdout)
    assert [len(each["starts"]) for each in answer["pairs"]] == [4, 4, 4]
    assert MadeUp.made == 3 * 4 + 1


@pytest.mark.parametrize(
    ("engine", "exit_code", "said"),
    [(WRONG, Exit.FAIL, "lost: 3 events"), ("breaking", Exit.UNKNOWN, "in the middle of a burst")],
)
def test_no_cost_of_what_is_wrong_or_ended(call, tmp_path, engine, exit_code, said):
    done = call("quix", engine, "--pairs", "all", "--json")
    (pair,) = json.loads(done.stdout)["pairs"]

    assert done.exit_code == exit_code
    assert pair["ratio"] is None
    assert said in pair["sentence"]
    assert "no pair could be compared" in (only(tmp_path / "experiments") / "report.html").read_text()


def test_the_page_shows_both_directions(call, tmp_path):
    call("spark", "quix", "--pairs", "all")
    page = pairs_page.page_of(paired.read(Folder(only(tmp_path / "experiments"))))
    (matrix,) = (section.tables[0] for section in page.sections if section.id == "matrix")

    assert [row[0] for row in matrix.rows] == ["spark", "quix"]
    assert float(str(matrix.rows[0][2]).split()[0]) == pytest.approx(6.0, rel=0.03)
    assert float(str(matrix.rows[1][1]).split()[0]) == pytest.approx(1 / 6, rel=0.05)
    assert all(not section.missing for section in page.sections)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["quix", "--pairs", "all"], "2 to 4 engines"),
        (["quix", "spark", "--budget", "3"], "--budget can't be given without --pairs"),
        (["quix", "spark", "--pairs", "all", "--quick"], "--quick can't be given with --pairs"),
        (["quix", "spark", "--pairs", "all", "--kafka", "h:1"], "--kafka can't be given with --pairs"),
        (["quix", "spark", "--pairs", "all", "--rate", "5"], "--rate can't be given with --pairs"),
    ],
)
def test_what_it_refuses(call, arguments, said):
    with pytest.raises(UsageError, match=said):
        call(*arguments)
