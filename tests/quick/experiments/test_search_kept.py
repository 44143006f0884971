"""What a search keeps of its reference engine: it is measured twice, and each of them costs minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.drivers import search as drive_search
from harness.engines import fake
from harness.experiments.curve.plateau import Latencies
from harness.experiments.folder import Folder
from harness.experiments.searching import search
from harness.experiments.searching.search import Unit
from harness.experiments.searching.searched import Searched
from harness.install import environment
from harness.model import HarnessError, Outcome, RunSpec
from reports import curve
from tests.program import pages

NONE = np.zeros(0)
UNITS = [Unit(10_000.0, 20.0, 2_000.0), Unit(11_000.0, 21.0, 2_000.0)]
ELSEWHERE: RunSpec = replace(pages.search_spec(), kafka="broker:9092")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "describe", dict)
    folder = Folder.create(tmp_path, "search-spark")
    spec = pages.search_spec()
    folder.save("search", settings=search.of(spec, search.WHOLE, None), spec=spec.public(), units=[], lives=[])
    return folder


def searching(place: Folder, *, spec: RunSpec | None = None, simulated: bool = False) -> drive_search._Search:
    manifest = fake.MANIFEST if simulated else replace(fake.MANIFEST, command=("a-job",))
    return drive_search._Search(place, spec or pages.search_spec(), manifest)


def giving(unit: Unit) -> Callable[[Path], Unit]:
    return lambda _: unit


def test_each_unit_is_kept_as_soon_as_it_is_measured(place):
    begun = searching(place)
    for number, unit in enumerate(UNITS, start=1):
        begun._measure_unit(giving(unit))
        assert Folder(place.path).load("units", list[Unit]) == UNITS[:number]


def test_a_unit_that_could_not_be_measured_ends_no_search(place):
    def fails(_: object) -> Unit:
        raise HarnessError("no reference here")

    begun = searching(place)
    begun._measure_unit(giving(UNITS[0]))
    begun._measure_unit(fails)

    assert Folder(place.path).load("units", list[Unit]) == UNITS[:1]


@pytest.mark.parametrize("elsewhere", [{"simulated": True}, {"spec": ELSEWHERE}], ids=["simulated", "of another's"])
def test_where_the_reference_says_nothing_it_is_not_run(place, elsewhere):
    searching(place, **elsewhere)._measure_unit(lambda _: pytest.fail("it was run"))

    assert Folder(place.path).load("units", list[Unit]) == []


def test_rates_without_a_latency_give_no_answer_and_no_crash(tmp_path):
    spec = pages.search_spec()
    silent = tuple(replace(each, events=Latencies.of(NONE, NONE, each.plateau)) for each in pages.curve())
    life = search.Lived("run", Outcome.PASS, "all counts are right", 60.0, whole=True)
    settings = search.of(spec, search.QUICK, None)
    searched = Searched(tmp_path, spec, "fake", settings, {}, (), (life,), (silent,))

    assert (searched.found.outcome, "no latency of an event" in searched.found.sentence) == (Outcome.UNKNOWN, True)
    assert curve.rows(searched) == []
    assert searched.load_s()
