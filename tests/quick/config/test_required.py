"""What a scenario is about is refused where its run can't have it, and a run that did not have it is UNKNOWN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from harness.config import plan
from harness.config.preconditions import POSSIBLE
from harness.engines.manifest import load
from harness.judging.scenario_conditions import BOUND, MET, WHAT, in_a_second, unmet
from harness.model import Required, UsageError
from tests.quick.cases import SPEC, case

# A shipped scenario, and what takes away what it is about.
WITHOUT: dict[str, tuple[dict[str, Any], str]] = {
    "late": ({"disorder": "mobile"}, "needs an event after the watermark, and disorder = 'mobile' reaches 7900 ms"),
    "storm": ({"watermark": "2m"}, "which the watermark of 120000 ms allows"),
    "page-visits-late": ({"rate": "5", "duration": "20s"}, "late_share = 0.005 makes 0.5 events late. Raise --rate"),
    "page-visits-sliding": ({"disorder": "none"}, "needs an event after the watermark"),
    "page-visits-sessions": ({"disorder": "none"}, "needs an event after the watermark"),
    "readers-late": ({"disorder": "none"}, "needs an event after the watermark"),
    "enrichment-late": ({"disorder": "mobile"}, "needs an event that comes 10 s late, and disorder = 'mobile' reaches"),
    "big-state": ({"rate": "1000"}, "at most about 31,500 cells need less than 3.8 MiB, where 8 MiB is the limit"),
    "readers-week": ({"backlog": "5s"}, "all events are from 89 s, where a window and its lateness are 94 s"),
    "catchup": ({"backlog": "900ms"}, "9,027 events would wait, which is less than a second of the load"),
    "bursts": ({"profile": "steady"}, "needs a burst in the load, and the profile has none"),
    "square-wave": ({"profile": {"kind": "burst", "factor": 1.9}}, "needs a burst in the load"),
    "history": ({"history": "0s"}, "needs older events in files, and history is 0"),
    "bootstrap": ({"history": "0s"}, "needs older events in files"),
    "backfill": ({"backfill": ""}, "needs a batch job that counts all events again"),
    "state": ({"states": "0"}, "needs a state that is read and judged"),
    "readers": ({"fault": "none"}, "needs another reader of the results, and the fault is 'none'"),
}
# They are about a rate, a kill or a control: a check of its own judges whether there was one.
ABOUT_NOTHING_ELSE = {
    *("ad-impressions", "calm", "steady", "yahoo", "enrichment", "enrichment-calm", "etl", "etl-calm"),
    *("capping", "capping-calm", "readers-distinct", "readers-join", "readers-join-calm", "readers-week-calm"),
    *("pattern", "pattern-calm", "top-pages", "top-pages-calm"),
    *("page-visits", "page-visits-sessions-calm"),
}


@pytest.fixture(scope="module")
def shipped():
    """The keys of each shipped scenario."""
    return {name: plan.read_scenario(name)[1] for name in plan.scenarios()}


def test_each_shipped_scenario_resolves_and_says_what_it_is_about_and_can_have_it(shipped):
    assert {*WITHOUT, *ABOUT_NOTHING_ELSE} == {*shipped}
    for name, keys in shipped.items():
        spec, _ = plan.resolve(name, keys, {}, load)
        assert bool(spec.requires) == (name in WITHOUT), name
        assert spec.tape.servers == 10, name


@pytest.mark.parametrize("scenario", WITHOUT)
def test_a_scenario_without_what_it_is_about_is_refused(scenario):
    flags, said = WITHOUT[scenario]
    with pytest.raises(UsageError) as refused:
        plan.resolve(*plan.read_scenario(scenario), flags, load)

    assert f"The scenario {scenario} needs" in str(refused.value)
    assert said in str(refused.value)


def test_each_requirement_is_one_of_a_shipped_scenario(shipped):
    named = {name for keys in shipped.values() for name in keys.get("requires", ())}

    assert {*WHAT} == {*POSSIBLE} == {*get_args(Required)} == named
    assert {*MET} < named


@pytest.mark.parametrize(
    ("mib", "why"),
    [
        (9, []),
        (5, ["its state grew to 5.0 MiB, and 8 MiB is the limit"]),
        (0, ["the engine does not report the size of its state"]),
    ],
)
def test_a_state_that_stayed_below_its_limit_was_not_outgrown(mib, why):
    spec = replace(SPEC, requires=("outgrown-state",), conf={BOUND: "8"})
    told = tuple(replace(line, state_bytes=mib << 20) for line in case().told)

    found = [*unmet(case(spec=spec, told=told))]
    assert found == [f"the scenario needs a state that exceeds its limit, and {each}" for each in why]


def test_in_a_second_of_no_load_no_event_is_due():
    assert in_a_second(replace(SPEC, tape=replace(SPEC.tape, profile=()))) == 0
